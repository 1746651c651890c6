"""The third transport: every agent of the scenarios is a relay to a daemon.

`AGENT_TRANSPORT=daemon` in the environment turns it on for a whole run. A scenario says how an
agent is started in its own process; here that command is taken apart into a daemon with the same
flags and environment, and a relay to it.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Final

from adapter.commands.inquiry import STATE, get
from adapter.daemon.admin.shapes import State
from contract.attach import admin_socket
from stubs.client import AcpClient
from stubs.parts import ROOT
from stubs.waiting import until

COMMAND: Final = str(ROOT / ".venv" / "bin" / "opencode-acp")
IMPATIENT: Final = str(ROOT / "tests" / "support" / "impatient.py")
TRANSPORT: Final = "AGENT_TRANSPORT"
# Daemons that are kept although no agent uses them: the shared server's, and one more.
IDLE: Final = 2
# Seconds until a daemon must have put in order what clients have left.
REST: Final = 30.0


def by_daemon() -> bool:
    """Whether this run is one of the third transport."""
    return os.environ.get(TRANSPORT) == "daemon"


@dataclass(eq=False)
class LentDaemon:
    """One daemon process; its agents see its standard error as theirs."""

    path: str
    argv: Sequence[str]
    env: Mapping[str, str]
    process: asyncio.subprocess.Process
    agents: list[AcpClient] = field(default_factory=list)
    users: int = 0
    stderr: bytes = b""
    ending: int = 0
    """Its exit code, in the end."""
    tables: dict[str, int] = field(default_factory=dict)
    """As it told them last."""

    async def read(self) -> None:
        assert self.process.stderr is not None
        while chunk := await self.process.stderr.read(64 * 1024):
            self.stderr += chunk
            for agent in self.agents:
                agent.stderr += chunk

    async def listens(self) -> bool:
        assert self.process.returncode is None, self.stderr.decode()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
            # One that was killed has left its socket.
            return await asyncio.to_thread(sock.connect_ex, self.path) == 0

    def kill(self) -> None:
        """As kill -9."""
        self.process.kill()
        self.ending = -signal.SIGKILL

    async def is_at_rest(self) -> bool:
        """Whether its tables hold nothing of any client but what is owed to the server."""
        assert self.process.returncode is None, self.stderr.decode()
        answer = await asyncio.to_thread(get, admin_socket(self.path), STATE)
        state = State.model_validate_json(answer)
        self.tables = dict(state.tables)
        owing = state.sessions and all(session.owes for session in state.sessions)
        passed_over = ("sessions", "followed", "watched") if owing else ()
        return not any(size for name, size in self.tables.items() if name not in passed_over)

    async def rests(self) -> None:
        """Wait until it is; what it holds all the same is told."""
        try:
            await until("nothing is left of any client", self.is_at_rest, REST)
        except TimeoutError as error:
            raise AssertionError(f"the daemon still holds {self.tables}") from error

    async def end(self) -> None:
        """It ends by SIGTERM, unless it was killed, and without a fault of its own."""
        if not self.ending:
            with suppress(ProcessLookupError):
                self.process.terminate()
        async with asyncio.timeout(30):
            code = await self.process.wait()
        shutil.rmtree(Path(self.path).parent)
        assert code == self.ending, self.stderr.decode()
        assert b"Traceback" not in self.stderr, self.stderr.decode()


Key = tuple[tuple[str, ...], tuple[tuple[str, str], ...]]


class Daemons:
    """A daemon for each set of flags and environment; the ones used last are kept."""

    shared: ClassVar[Daemons | None] = None

    def __init__(self) -> None:
        self._daemons: dict[Key, LentDaemon] = {}
        self._readers: set[asyncio.Task[None]] = set()
        self._starting = asyncio.Lock()

    @asynccontextmanager
    async def lent(self, argv: Sequence[str], env: Mapping[str, str]) -> AsyncIterator[LentDaemon]:
        """The daemon for an agent that would be started so."""
        key = (tuple(argv), tuple(sorted(env.items())))
        async with self._starting:
            daemon = self._daemons.pop(key, None)
            if daemon is not None and daemon.process.returncode is not None:
                await daemon.end()
                daemon = None
            if daemon is None:
                daemon = await self._start(argv, env)
            self._daemons[key] = daemon
            daemon.users += 1
        try:
            yield daemon
            # It counts as used meanwhile, so that nobody ends it.
            if daemon.users == 1 and daemon.process.returncode is None:
                await daemon.rests()
        finally:
            daemon.users -= 1
        await self._end_idle(IDLE)

    async def aclose(self) -> None:
        """End them all."""
        await self._end_idle(0)
        for reader in self._readers:
            reader.cancel()
        if self._readers:
            await asyncio.wait(self._readers)

    async def _start(self, argv: Sequence[str], env: Mapping[str, str]) -> LentDaemon:
        # A socket's path has 107 bytes at most, which a test's own directory may exceed.
        path = str(Path(tempfile.mkdtemp(prefix="acp-")) / "s.sock")
        level = [] if "--log-level" in argv else ["--log-level", "warning"]
        # A daemon without a terminal would write JSON.
        level += [] if "--log-format" in argv else ["--log-format", "text"]
        flags = [flag for flag in argv if flag != "--no-daemon"]
        command = (
            *(flags[:1] if flags[0] == COMMAND else flags[:2]),
            "serve",
            "--socket",
            path,
            *(flags[1:] if flags[0] == COMMAND else flags[2:]),
            *level,
        )
        daemon = LentDaemon(path, command, env, await _run(command, env))
        await self._begun(daemon)
        return daemon

    async def again(self, daemon: LentDaemon) -> None:
        """Start one that was killed once more, at the same place."""
        await daemon.process.wait()
        daemon.process, daemon.ending = await _run(daemon.argv, daemon.env), 0
        await self._begun(daemon)

    async def _begun(self, daemon: LentDaemon) -> None:
        reader = asyncio.create_task(daemon.read())
        self._readers.add(reader)
        reader.add_done_callback(self._readers.discard)
        await until("the daemon listens", daemon.listens)

    async def _end_idle(self, kept: int) -> None:
        idle = [key for key, daemon in self._daemons.items() if not daemon.users]
        for key in idle[: max(0, len(idle) - kept)]:
            await self._daemons.pop(key).end()


async def _run(argv: Sequence[str], env: Mapping[str, str]) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *argv, env=env, stdin=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
    )


def relay_argv(argv: Sequence[str], path: str) -> list[str]:
    """The relay for an agent that would be started by `argv`."""
    flags = list(argv[2:] if argv[0] == sys.executable else argv[1:])
    flags = [flag for flag in flags if flag != "--no-daemon"]
    return [COMMAND, "--socket", path, "--daemon", "require", *flags]


@asynccontextmanager
async def launched(
    argv: Sequence[str], env: Mapping[str, str]
) -> AsyncIterator[tuple[Sequence[str], LentDaemon | None]]:
    """How an agent is started on this run's transport: its command, and its daemon if any."""
    if Daemons.shared is None or argv[0] not in (COMMAND, sys.executable):
        yield argv, None
        return
    async with Daemons.shared.lent(argv, env) as daemon:
        yield relay_argv(argv, daemon.path), daemon
