"""Fixtures of the scenarios. All tests of this folder share one loop, and so the servers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import pytest_asyncio

from tests.scenarios.backends import Backend, backend_of, given
from tests.scenarios.in_process import IN_PROCESS
from tests.scenarios.stage import Stage
from tests.support.daemons import by_daemon

HERE = Path(__file__).parent
# Files that are run on the real server by `make test-long` alone: what they look at is the
# adapter's own, or is held to the real server route by route in test_session_routes.py.
STUB_FIRST = frozenset(
    {
        "test_ambient.py",
        "test_compaction.py",
        "test_delete.py",
        "test_every_cut.py",
        "test_generations.py",
        "test_limits.py",
        "test_list.py",
        "test_mcp.py",
        "test_mcp_secrets.py",
        "test_open_forms.py",
        "test_pushes.py",
        "test_resumed.py",
        "test_resumed_calls.py",
    }
)
# Files whose cases on the stub are run through a daemon alone although the real server is left
# out of `make test`, too: what they look at lies behind the connection, which is the same in both.
DAEMON_FIRST = frozenset(
    {
        "test_ambient.py",
        "test_children.py",
        "test_commands.py",
        "test_compaction.py",
        "test_delete.py",
        "test_detach.py",
        "test_elicited.py",
        "test_fork.py",
        "test_forms.py",
        "test_generations.py",
        "test_list.py",
        "test_load.py",
        "test_mcp.py",
        "test_mcp_secrets.py",
        "test_open_forms.py",
        "test_pushes.py",
        "test_resumed.py",
        "test_resumed_calls.py",
    }
)
# Of the real server through a daemon `make test` runs this, and cells of tests/matrix.
REAL_BY_DAEMON = frozenset({"test_turns.py"})
LONG_BY_DAEMON = frozenset({"test_every_cut.py", "test_relay.py"})


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """One loop for all, and what is left to `make test-long`.

    An agent in its own process takes most of a second to start, a relay next to nothing, and a
    directory that the real server has not seen a second to boot. So every case is run on the stub
    through a daemon, and by an agent in its own process only the first case of a scenario, on the
    real server, or on the stub where a file is left out there.
    `tests/scenarios/test_session_routes.py` and its like hold the stub to the real server.
    """
    if by_daemon():
        in_process = [item for item in items if is_in_process(item)]
        config.hook.pytest_deselected(items=in_process)
        items[:] = [item for item in items if item not in in_process]
    if given() is not None:
        kept = [item for item in items if "own_stage" in getattr(item, "fixturenames", ())]
        config.hook.pytest_deselected(items=kept)
        items[:] = [item for item in items if item not in kept]
    seen: set[tuple[Path, str, bool]] = set()
    for item in items:
        if HERE not in item.path.parents or not isinstance(item, pytest.Function):
            continue
        item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)
        real = item.get_closest_marker("real") is not None
        scenario = (item.path, item.originalname, real)
        if by_daemon():
            left = item.path.name in LONG_BY_DAEMON or (
                real and (scenario in seen or item.path.name not in REAL_BY_DAEMON)
            )
        elif is_in_process(item) and not real:
            left = False
        elif real:
            left = scenario in seen or item.path.name in STUB_FIRST
        else:
            elsewhere = item.path.name not in STUB_FIRST or item.path.name in DAEMON_FIRST
            left = scenario in seen or elsewhere
        if left:
            item.add_marker(pytest.mark.long)
        seen.add(scenario)


def is_in_process(item: pytest.Item) -> bool:
    """Whether it looks at the agent's own process."""
    name = item.originalname if isinstance(item, pytest.Function) else item.name
    return item.path.parent == HERE and (item.path.name, name) in IN_PROCESS


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
