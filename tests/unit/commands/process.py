"""`opencode-acp serve` as a process."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from stubs.waiting import until

LISTENS = "00010000"
"""The flags of a socket in /proc/net/unix that takes connections."""
COMMAND = (sys.executable, "-m", "adapter.cli", "serve")
ACTIVATED = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ["LISTEN_PID"] = str(os.getpid())
os.execv(sys.argv[2], sys.argv[2:])
"""
"""Puts a descriptor where the service manager would, and becomes the process that it meant."""


def plain(more: Mapping[str, str]) -> dict[str, str]:
    """The environment without a setting of the adapter, and with these."""
    kept = ("PATH", "HOME", "LANG")
    return {name: value for name, value in os.environ.items() if name in kept} | dict(more)


@dataclass(frozen=True)
class Served:
    """A daemon's process; `log` is what it has written to its standard error."""

    process: asyncio.subprocess.Process
    path: Path
    log_file: Path

    @property
    def log(self) -> str:
        return self.log_file.read_text(encoding="utf-8")

    async def end(self) -> int:
        """Its exit code, once SIGTERM has ended it."""
        self.process.terminate()
        async with asyncio.timeout(30):
            return await self.process.wait()


@asynccontextmanager
async def serving(
    root: Path, url: str, *flags: str, environ: Mapping[str, str] | None = None
) -> AsyncIterator[Served]:
    """A daemon that listens below `root`; it is killed at the end if it still runs."""
    served = await start(root, url, *flags, environ=environ)
    try:
        await until("the daemon listens", lambda: _listens(served))
        yield served
    finally:
        if served.process.returncode is None:
            served.process.kill()
        await served.process.wait()


async def start(
    root: Path,
    url: str,
    *flags: str,
    path: Path | None = None,
    environ: Mapping[str, str] | None = None,
    passed: int | None = None,
) -> Served:
    """The process, whether it comes to listen at `path` or not.

    `passed`: the descriptor that the service manager hands on.
    """
    path = path or root / "run" / "acp.sock"
    log = root / "log"
    argv = [*COMMAND, "--server", url, "--socket", str(path), *flags]
    if passed is not None:
        argv = [sys.executable, "-c", ACTIVATED, str(passed), *argv]
    with log.open("wb") as stderr:
        process = await asyncio.create_subprocess_exec(
            *argv,
            stderr=stderr,
            env=plain(environ or {}),
            pass_fds=() if passed is None else (passed,),
        )
    return Served(process, path, log)


async def _listens(served: Served) -> bool:
    if served.process.returncode is not None:
        raise AssertionError(f"the daemon has ended: {served.log}")
    return is_listening(served.path)


def is_listening(path: Path) -> bool:
    """Whether somebody listens there, unlike a socket that is bound only; nobody is disturbed."""
    sockets = (line.split() for line in Path("/proc/net/unix").read_text().splitlines()[1:])
    return any(one[3] == LISTENS and one[7:] == [str(path)] for one in sockets)
