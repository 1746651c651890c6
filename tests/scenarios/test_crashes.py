"""A fault of ours tells no secret, not even at the level `debug`, which quotes all (X-01).

On the stub alone: the faults are put into the program, which is an agent or a daemon.
"""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from stubs.client import AcpClient
from stubs.server import Settings
from stubs.waiting import until
from tests.scenarios.backends import stub_backend
from tests.scenarios.stage import agent_env, fails
from tests.support.daemons import relay_argv

PASSWORD: Final = "cAnary-of-the-server-5Wx"
BASIC: Final = base64.b64encode(f"opencode:{PASSWORD}".encode()).decode()
ENTRUSTED: Final = "cAnary-of-the-client-3Jd"
# Two faults whose texts hold all that is at hand.
FAULTY: Final = """
import sys
from unittest import mock
from adapter import cli
from adapter.acp.mcpservers import wanted
from adapter.engine.engine import Engine
from adapter.engine.mcp import Registrations

def opens(self, session, directory):
    raise RuntimeError(f"{self.settings!r} {vars(self)!r} {self._services!r}")

def takes(self, raw):
    if raw:
        raise RuntimeError(repr(wanted("register", raw)))
    return ()

with mock.patch.object(Engine, "hub", opens), mock.patch.object(Registrations, "wanted", takes):
    sys.exit(cli.main(sys.argv[1:]))
"""
PAIR: Final = {"name": "KEY", "value": ENTRUSTED}
SERVERS: Final = [
    {"name": "local", "command": f"/{ENTRUSTED}", "args": [ENTRUSTED], "env": [PAIR]},
    {"name": "web", "type": "http", "url": f"http://a/?k={ENTRUSTED}", "headers": [PAIR]},
]


@asynccontextmanager
async def crashing(
    root: Path, url: str, env: dict[str, str], *, daemon: bool
) -> AsyncIterator[tuple[AcpClient, Path]]:
    """A client of the program, and the file with its log."""
    program, log, socket = root / "faulty.py", root / "log", root / "run" / "s"
    program.write_text(FAULTY)
    flags = ["--server", url, "--log-level", "debug"]
    command = [sys.executable, str(program)]
    log.touch()
    if not daemon:
        async with AcpClient.spawn([*command, *flags, "--daemon", "never"], env=env) as client:
            yield client, log
            assert await client.hang_up() == 0
        log.write_bytes(client.stderr)
        return
    argv = [*command, "serve", "--socket", str(socket), *flags]
    with log.open("wb") as stderr:
        served = await asyncio.create_subprocess_exec(*argv, env=env, stderr=stderr)
    try:

        async def listens() -> bool:
            assert served.returncode is None, log.read_text()
            return socket.is_socket()

        await until("the daemon listens", listens)
        relay = relay_argv([*command, *flags], str(socket))
        async with AcpClient.spawn(relay, env=env) as client:
            yield client, log
            assert await client.hang_up() == 0
        served.terminate()
        async with asyncio.timeout(30):
            assert await served.wait() == 0
    finally:
        if served.returncode is None:
            served.kill()
            await served.wait()
    with log.open("ab") as more:
        more.write(client.stderr)


@pytest.mark.parametrize("daemon", [False, True], ids=["agent", "daemon"])
async def test_a_crash_of_ours_tells_no_secret_at_any_level(tmp_path: Path, daemon: bool) -> None:
    async with stub_backend(tmp_path, Settings(password=PASSWORD)) as backend:
        env = agent_env(PASSWORD) | {"OPENCODE_ACP_MCP": "register"}
        project = backend.project()
        async with crashing(tmp_path, backend.url, env, daemon=daemon) as (client, log):
            await client.initialize()
            async with fails(-32603) as opening:
                await client.new_session(project)
            async with fails(-32603) as taking:
                await client.new_session(project, mcpServers=SERVERS)
        told = json.dumps([[one.message, one.data] for one in (opening(), taking())])
        told += log.read_text()
    # The faults are told of in full.
    assert "RuntimeError: Settings(server=" in told
    assert "Variable(name='KEY')" in told.replace("\\'", "'")
    assert [one for one in (PASSWORD, BASIC, ENTRUSTED) if one in told] == []
