"""The daemon started as its unit says, with sockets passed to it and a socket that it notifies.

`systemd-socket-activate` passes the sockets as the service manager does. The environment is the
unit's and nothing else, the credential stands where the unit has it, and the unit's filter of
system calls is on.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from contract import attach
from stubs.client import AcpClient
from stubs.parts import ROOT
from stubs.server import Settings, StubServer
from stubs.waiting import until
from tests.deploy.units import PASSWORD, UNITS, House, Unit, parse, placed
from tests.scenarios.stage import words

PROGRAMS: Final = ROOT / ".venv" / "bin"
SECRET: Final = "swordfish-of-the-unit"
SECONDS: Final = 20.0


class Started:
    """A daemon that the first client starts, and what it tells its service manager."""

    def __init__(self, house: House, notified: socket.socket) -> None:
        self.house = house
        self.socket = attach.default_socket(str(house.runtime), 0)
        self.states: list[str] = []
        self.stderr = b""
        self.process: asyncio.subprocess.Process | None = None
        self._notified = notified

    def heard(self) -> list[str]:
        """Every assignment of its notifications so far, in their order."""
        while True:
            try:
                self.states += self._notified.recv(4096).decode().splitlines()
            except BlockingIOError:
                return self.states

    async def until_heard(self, state: str) -> None:
        async def probe() -> bool:
            return state in self.heard()

        await until(f"{state} in {self.states}", probe, SECONDS)

    async def ended(self) -> int:
        assert self.process is not None
        async with asyncio.timeout(SECONDS):
            return await self.process.wait()

    def client(self) -> list[str]:
        return [str(PROGRAMS / "opencode-acp"), "--socket", self.socket, "--daemon", "require"]


@pytest.fixture
def house() -> Iterator[House]:
    # A socket's path has 107 bytes at most, which a test's own directory may exceed.
    root = Path(tempfile.mkdtemp(prefix="acp-"))
    house = House(root / "home", root / "run")
    (house.home / ".local").mkdir(parents=True)
    (house.home / ".local" / "bin").symlink_to(PROGRAMS)
    house.runtime.mkdir(mode=0o700)
    yield house
    shutil.rmtree(root)


def unit_of(house: House, flavour: str, extra: dict[str, str]) -> Unit:
    """The unit as installed, with what a drop-in of the operator adds."""
    source = house.home / "password"
    source.write_text(f"{SECRET}\n")
    config = house.home / "config.toml"
    shipped = UNITS / "system" / "config.toml"
    config.write_text(shipped.read_text().replace("1000", str(os.getuid())))
    unit = parse(placed(UNITS / flavour / "opencode-acp.service", house.home, PROGRAMS))
    unit["Service", "LoadCredential"] = [f"{PASSWORD}:{source}"]
    own = unit.setdefault(("Service", "Environment"), [])
    own[:] = [line.replace("/etc/opencode-acp/config.toml", str(config)) for line in own]
    own += [f"{name}={value}" for name, value in extra.items()]
    return unit


@asynccontextmanager
async def started(
    house: House, flavour: str, extra: dict[str, str], mode: int = 0o400
) -> AsyncIterator[Started]:
    """The daemon of that flavour, waiting for its first client; it is killed at the end."""
    unit = unit_of(house, flavour, extra)
    path = house.runtime / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notified:
        notified.bind(str(path))
        notified.setblocking(False)
        daemon = Started(house, notified)
        env = house.environment(unit) | {
            "CREDENTIALS_DIRECTORY": str(house.credentials(unit, mode)),
            "NOTIFY_SOCKET": str(path),
            # A second in place of 30: the daemon is to feed it in half of what it is told.
            "WATCHDOG_USEC": "1000000",
        }
        admin = attach.admin_socket(daemon.socket)
        activate = shutil.which("systemd-socket-activate")
        assert activate is not None
        argv = [activate, "-l", daemon.socket, "-l", admin, "--fdname=acp:admin"]
        argv += [f"-E{name}={value}" for name, value in env.items()]
        confined = ["-m", "tests.deploy.confined", *unit["Service", "SystemCallFilter"], "--"]
        daemon.process = await asyncio.create_subprocess_exec(
            *(sys.executable, *confined, *argv, *house.command(unit)),
            cwd=ROOT,
            stdin=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        reading = asyncio.create_task(_read(daemon))
        try:
            await until("the sockets are there", partial(_exists, admin), SECONDS)
            yield daemon
        finally:
            if daemon.process.returncode is None:
                daemon.process.kill()
                await daemon.process.wait()
            await reading


async def _read(daemon: Started) -> None:
    assert daemon.process is not None and daemon.process.stderr is not None
    while chunk := await daemon.process.stderr.read(65536):
        daemon.stderr += chunk


async def _exists(path: str) -> bool:
    return await asyncio.to_thread(os.path.exists, path)


@pytest.mark.parametrize("flavour", ["user", "system"])
async def test_a_client_starts_the_daemon_and_is_served(
    flavour: str, house: House, tmp_path: Path
) -> None:
    async with StubServer(Settings(password=SECRET, project=str(tmp_path))) as stub:
        extra = {"OPENCODE_ACP_SERVER": stub.url}
        async with started(house, flavour, extra) as daemon:
            async with AcpClient.spawn(daemon.client()) as client:
                await client.initialize()
                session = await client.new_session(tmp_path)
                result = await client.prompt(session, "Hi @@text 5@@")
                assert result["stopReason"] == "end_turn", daemon.stderr.decode()
                assert client.transcript(session).text() == words(5)
            await daemon.until_heard("READY=1")
            await daemon.until_heard("WATCHDOG=1")
            assert daemon.process is not None
            daemon.process.send_signal(signal.SIGTERM)
            await daemon.until_heard("STOPPING=1")
            assert await daemon.ended() == attach.OK
            assert SECRET not in daemon.stderr.decode()
            assert b"Traceback" not in daemon.stderr
        # The service manager keeps its sockets: those who come now wait for the next daemon.
        assert await _exists(daemon.socket)


async def test_a_directory_that_the_daemon_cannot_see_is_served(
    house: House, tmp_path: Path
) -> None:
    """The system unit closes the homes to it, and has a /tmp of its own."""
    project = Path("/home/nobody-of-this-machine/project")
    settings = Settings(password=SECRET, project=str(tmp_path), unseen=frozenset({str(project)}))
    async with StubServer(settings) as stub:
        extra = {"OPENCODE_ACP_SERVER": stub.url}
        async with (
            started(house, "system", extra) as daemon,
            AcpClient.spawn(daemon.client()) as client,
        ):
            await client.initialize()
            session = await client.new_session(project)
            result = await client.prompt(session, "Hi @@text 5@@")
            assert result["stopReason"] == "end_turn", daemon.stderr.decode()
            await client.resume(session, project)
