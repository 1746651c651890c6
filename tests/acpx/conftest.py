"""The real server, shared by the tests of this folder, and acpx with a HOME of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from stubs.processes import kill_processes_of_home
from stubs.real_server import RealServer, real_server
from tests.acpx.acpx import Acpx
from tests.scenarios.stage import FrontEnd, agent_env
from tests.support.daemons import COMMAND, Daemons, LentDaemon, by_daemon, launched, relay_argv

HERE = Path(__file__).parent
OWN_DAEMON = "test_daemon.py"
"""It has a daemon of its own on either transport, so one of them is enough."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents and isinstance(item, pytest.Function):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)
            item.add_marker(pytest.mark.real)
            if by_daemon() and item.path.name == OWN_DAEMON:
                item.add_marker(pytest.mark.long)


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RealServer]:
    async with real_server(tmp_path_factory.mktemp("acpx")) as server:
        yield server


@pytest_asyncio.fixture(loop_scope="session")
async def front(server: RealServer) -> AsyncIterator[FrontEnd]:
    async with server.client() as http:
        yield FrontEnd(http)


@pytest_asyncio.fixture(loop_scope="session")
async def acpx(server: RealServer, tmp_path: Path) -> AsyncIterator[Acpx]:
    async with (
        launched(_argv(server), agent_env(server.password)) as (command, _),
        _at_home(server, tmp_path, command) as acpx,
    ):
        yield acpx


@pytest_asyncio.fixture(loop_scope="session")
async def daemons() -> AsyncIterator[Daemons]:
    """Of this test alone."""
    daemons = Daemons()
    yield daemons
    await daemons.aclose()


@pytest_asyncio.fixture(loop_scope="session")
async def daemon(server: RealServer, daemons: Daemons) -> AsyncIterator[LentDaemon]:
    async with daemons.lent(_argv(server), agent_env(server.password)) as daemon:
        yield daemon


@pytest_asyncio.fixture(loop_scope="session")
async def relayed(server: RealServer, daemon: LentDaemon, tmp_path: Path) -> AsyncIterator[Acpx]:
    """acpx whose agents are relays to `daemon`."""
    command = relay_argv(_argv(server), daemon.path)
    async with _at_home(server, tmp_path, command) as acpx:
        yield acpx


def _argv(server: RealServer) -> Sequence[str]:
    return [COMMAND, "--server", server.url]


@asynccontextmanager
async def _at_home(server: RealServer, root: Path, command: Sequence[str]) -> AsyncIterator[Acpx]:
    """acpx in a project whose shell and edits are asked for."""
    home = root / "home"
    home.mkdir()
    project = server.add_project(root.name, {"shell": "ask", "edit": "ask"})
    try:
        yield Acpx(home, project, server.url, server.password, command)
    finally:
        await asyncio.to_thread(kill_processes_of_home, home)
