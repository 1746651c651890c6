"""Fixtures of the scenarios. All tests of this folder share one loop, and so the servers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import pytest_asyncio

from tests.scenarios.backends import Backend, backend_of
from tests.scenarios.stage import Stage

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents and isinstance(item, pytest.Function):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(
    scope="session",
    loop_scope="session",
    params=["stub", pytest.param("real", marks=pytest.mark.real)],
)
async def backend(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Backend]:
    """A server that several tests share."""
    async with backend_of(request.param, tmp_path_factory.mktemp(request.param)) as backend:
        yield backend


@pytest_asyncio.fixture(loop_scope="session")
async def stage(backend: Backend) -> AsyncIterator[Stage]:
    """The shared server with adapters of this test alone; they are checked at the end."""
    async with AsyncExitStack() as stack:
        yield Stage(backend, stack)


@pytest_asyncio.fixture(
    loop_scope="session", params=["stub", pytest.param("real", marks=pytest.mark.real)]
)
async def own_stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stage]:
    """A server of this test alone, which it may kill."""
    async with backend_of(request.param, tmp_path) as backend, AsyncExitStack() as stack:
        yield Stage(backend, stack)
