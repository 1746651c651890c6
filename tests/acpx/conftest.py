"""The real server, shared by the tests of this folder, and acpx with a HOME of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from stubs.processes import kill_processes_of_home
from stubs.real_server import RealServer, real_server
from tests.acpx.acpx import Acpx
from tests.scenarios.stage import agent_env
from tests.support.daemons import COMMAND, launched

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents and isinstance(item, pytest.Function):
            item.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)
            item.add_marker(pytest.mark.real)


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RealServer]:
    async with real_server(tmp_path_factory.mktemp("acpx")) as server:
        yield server


@pytest_asyncio.fixture(loop_scope="session")
async def acpx(server: RealServer, tmp_path: Path) -> AsyncIterator[Acpx]:
    """acpx in a project whose shell and edits are asked for."""
    home = tmp_path / "home"
    home.mkdir()
    project = server.add_project(tmp_path.name, {"shell": "ask", "edit": "ask"})
    argv, env = [COMMAND, "--server", server.url], agent_env(server.password)
    async with launched(argv, env) as (command, _):
        try:
            yield Acpx(home, project, server.url, server.password, command)
        finally:
            await asyncio.to_thread(kill_processes_of_home, home)
