"""The doctor and the real server: all is well (O-27)."""

from __future__ import annotations

from pathlib import Path

import pytest

from adapter.doctor.examine import examine
from adapter.doctor.findings import State
from adapter.doctor.server import ALL, TESTED
from adapter.options import Options
from stubs.real_server import PASSWORD, real_server

pytestmark = pytest.mark.real


async def test_a_server_in_order(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "OPENCODE_SERVER_PASSWORD": PASSWORD}
    environ["XDG_RUNTIME_DIR"] = str(tmp_path)
    async with real_server(tmp_path) as server:
        options = Options({"server": server.url})
        found = {one.name: one for one in await examine(options, environ, str(server.project))}
    names = ("configuration", "files", "daemon", "url", *ALL, "descriptors")
    assert {name: found[name] for name in names if found[name].state is not State.OK} == {}
    assert TESTED in found["version"].sentence
