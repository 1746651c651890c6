"""A daemon's memory, as it is installed: idle, watched, and for each client that only stands by.

All four paths of the admin socket are asked for, since the first request loads its HTTP server. The
environment of the tests is no measure: where click and pygments are installed, httpx imports them
for its command line. It asks the package index that pip is told of.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

from adapter.commands.inquiry import get
from adapter.daemon.admin.app import HEALTH, METRICS, READINESS, STATE
from contract.attach import ACCEPTED, HELLO, admin_socket
from contract.routes import EVENT
from stubs.server import Settings, StubServer
from stubs.waiting import until
from tests.bench.bench_daemon import resident
from tests.bench.report import report
from tests.support import installs

DAEMON_MB: Final = 60.0
CLIENT_KB: Final = 100.0
CLIENTS: Final = 200
ROUNDS: Final = 3
INITIALIZE: Final = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\n'
)


@asynccontextmanager
async def daemon(command: Path, folder: Path) -> AsyncIterator[tuple[int, str]]:
    """A daemon on a stub: its process id, and its socket."""
    path = str(folder / "s.sock")
    async with StubServer(Settings(project=str(folder))) as stub:
        argv = (command, "serve", "--server", stub.url, "--socket", path, "--log-level", "warning")
        env = {"PATH": os.environ["PATH"]}
        process = await asyncio.create_subprocess_exec(*argv, env=env)
        try:

            async def is_ready() -> bool:
                assert process.returncode is None
                heard = any(seen.path == EVENT.path for seen in stub.log)
                return heard and await asyncio.to_thread(os.path.exists, path)

            await until("the daemon hears the server", is_ready)
            yield process.pid, path
        finally:
            if process.returncode is None:
                process.terminate()
            await process.wait()


async def attach(path: str) -> asyncio.StreamWriter:
    """A client that has said hello and been answered, as a relay hands it over."""
    reader, writer = await asyncio.open_unix_connection(path)
    writer.write(HELLO.encode() + b"\n" + INITIALIZE)
    assert await reader.readline() == ACCEPTED
    await reader.readline()
    return writer


async def one_round(command: Path, folder: Path) -> tuple[float, float, float]:
    """Megabytes idle and watched, and kilobytes for a client."""
    async with daemon(command, folder) as (pid, path), AsyncExitStack() as stack:
        idle = resident(pid)
        for route in (HEALTH, READINESS, STATE, METRICS):
            await asyncio.to_thread(get, admin_socket(path), route)
        watched = resident(pid)
        for _ in range(CLIENTS):
            stack.callback((await attach(path)).close)
        return idle, watched, (resident(pid) - watched) * 1024 / CLIENTS


def main() -> int:
    """Measure, print, and fail past a bound."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        command = installs.uv(installs.build(home), home)
        rounds = [asyncio.run(one_round(command, home)) for _ in range(ROUNDS)]
    idle, watched, each = zip(*rounds, strict=True)
    kept = report("daemon, idle", idle, "MB", DAEMON_MB)
    kept &= report("daemon, watched", watched, "MB", DAEMON_MB)
    kept &= report(f"each of {CLIENTS} idle clients", each, "kB", CLIENT_KB)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
