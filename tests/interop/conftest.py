"""The servers that the clients share: the stub, and the real one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.scenarios.backends import Backend, backend_of

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents and isinstance(item, pytest.Function):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(
    scope="package",
    loop_scope="session",
    params=["stub", pytest.param("real", marks=pytest.mark.real)],
)
async def backend(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Backend]:
    async with backend_of(request.param, tmp_path_factory.mktemp(request.param)) as backend:
        yield backend
