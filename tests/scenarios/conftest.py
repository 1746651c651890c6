"""Fixtures of the scenarios. All tests of this folder share one loop, and so the servers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import pytest_asyncio

from tests.scenarios.backends import Backend, backend_of
from tests.scenarios.stage import Stage
from tests.support.daemons import by_daemon

HERE = Path(__file__).parent
# Files that are run on the real server by `make test-long` alone: what they look at is the
# adapter's own, or is held to the real server route by route in test_session_routes.py.
STUB_FIRST = frozenset(
    {
        "test_delete.py",
        "test_generations.py",
        "test_limits.py",
        "test_list.py",
        "test_mcp_secrets.py",
        "test_open_forms.py",
        "test_resumed_calls.py",
    }
)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """One loop for all; on the real server only a scenario's first case, and not of every file.

    A directory that the real server has not seen takes it a second to boot. The stub sees every
    case, and `tests/scenarios/test_session_routes.py` and its like hold it to the real server.
    """
    if by_daemon():
        left_out = [item for item in items if item.get_closest_marker("in_process")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
    seen: set[tuple[Path, str]] = set()
    for item in items:
        if HERE not in item.path.parents or not isinstance(item, pytest.Function):
            continue
        item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)
        if item.get_closest_marker("real") is None:
            continue
        scenario = (item.path, item.originalname)
        if scenario in seen or item.path.name in STUB_FIRST:
            item.add_marker(pytest.mark.long)
        seen.add(scenario)


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
    await backend.rest()
    async with AsyncExitStack() as stack:
        yield Stage(backend, stack)


@pytest_asyncio.fixture(
    loop_scope="session", params=["stub", pytest.param("real", marks=pytest.mark.real)]
)
async def own_stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stage]:
    """A server of this test alone, which it may kill."""
    async with backend_of(request.param, tmp_path) as backend, AsyncExitStack() as stack:
        yield Stage(backend, stack)
