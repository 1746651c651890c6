"""Runs of the real acpx 0.19.1."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from stubs.parts import acpx
from stubs.processes import processes_of_home
from tests.support.daemons import COMMAND

DEADLINE: Final = 60.0


@dataclass(frozen=True, slots=True)
class Ran:
    """How a run ended; `err` is shown by a failing assertion."""

    code: int
    out: str
    err: str


@dataclass(frozen=True, slots=True)
class Acpx:
    """acpx with a HOME of its own in a project directory."""

    home: Path
    project: Path
    url: str
    password: str
    command: Sequence[str]
    """How acpx starts its agent."""

    async def run(self, *arguments: str) -> Ran:
        """One command, with the adapter as its agent."""
        async with self.start(*arguments) as process:
            return await finish(process)

    @asynccontextmanager
    async def start(self, *arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
        """One command that goes on; killed at the end if it is still there."""
        agent = shlex.join(self.command)
        argv = [*acpx(), "--cwd", str(self.project), "--agent", agent, *arguments]
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *argv,
            cwd=self.project,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self.home),
                "OPENCODE_SERVER_PASSWORD": self.password,
            },
            stdin=asyncio.subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
        )
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
                await process.communicate()

    def agents(self) -> list[int]:
        """The ids of the adapter processes that acpx keeps."""
        return [pid for pid in processes_of_home(self.home) if _is_adapter(pid)]


async def finish(process: asyncio.subprocess.Process) -> Ran:
    """Wait for a command to end."""
    async with asyncio.timeout(DEADLINE):
        out, err = await process.communicate()
    assert process.returncode is not None
    return Ran(process.returncode, out.decode(), err.decode())


def _is_adapter(pid: int) -> bool:
    try:
        argv = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return os.fsencode(COMMAND) in argv[:2]
