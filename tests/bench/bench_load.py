"""session/load of a long conversation on the real server, against the server's own reads.

Each round reads the pages as the adapter reads them (down to the oldest, and up again) by plain
HTTP, and then loads the session with a new adapter: what the load takes beyond the reads is the
adapter's, its writing and the client's parsing included.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import Final

import httpx

from stubs.client import AcpClient
from stubs.longsession import long_session
from stubs.real_server import PASSWORD, RealServer, real_server
from tests.bench.report import COMMAND, report

BOUND_SECONDS: Final = 2.0
# A load is written page by page: what it takes is a page, not the conversation.
BOUND_MB: Final = 160.0
TURNS: Final = 500
ROUNDS: Final = 5
# (what, tools of each answer, characters of each result)
KINDS: Final = (("small", 0, 0), ("3 tools of 8 kB each", 3, 8000))


async def read_all(http: httpx.AsyncClient, session: str) -> float:
    """Seconds of the reads alone."""
    path = f"/api/session/{session}/message"
    start = time.monotonic()
    pages = [(await http.get(path, params={"limit": 200})).json()]
    while len(pages) < 2 * TURNS // 200:
        pages.append(await _page(http, path, pages[-1]["cursor"]["next"]))
    page = pages[-1]
    while page["data"]:
        page = await _page(http, path, page["cursor"]["previous"])
    return time.monotonic() - start


async def _page(http: httpx.AsyncClient, path: str, cursor: str) -> dict[str, object]:
    answer = await http.get(path, params={"limit": 200, "cursor": cursor})
    page: dict[str, object] = answer.json()
    return page


async def load(server: RealServer, session: str, project: Path) -> tuple[float, int]:
    """Seconds of one load by a new adapter, and the greatest memory of it in kB."""
    env = {"PATH": os.environ["PATH"], "OPENCODE_SERVER_PASSWORD": PASSWORD}
    argv = [str(COMMAND), "--server", server.url]
    async with AcpClient.spawn(argv, env=env) as client:
        await client.initialize()
        await client.new_session(project)
        start = time.monotonic()
        await client.load(session, project)
        taken = time.monotonic() - start
        return taken, _peak(client.process.pid)


def _peak(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


async def measure() -> bool:
    """Whether every median keeps within the bound."""
    kept = True
    with tempfile.TemporaryDirectory() as folder:
        async with real_server(Path(folder)) as server:
            project = server.add_project("long")
            auth = httpx.BasicAuth("opencode", PASSWORD)
            async with httpx.AsyncClient(base_url=server.url, auth=auth, timeout=60.0) as http:
                for what, tools, size in KINDS:
                    session = f"ses_{uuid.uuid4().hex}"
                    body = long_session(session, str(project), TURNS, tools=tools, size=size)
                    answer = await http.post("/api/experimental/session/import", json=body)
                    answer.raise_for_status()
                    reads, loads, peaks = [], [], []
                    for _ in range(ROUNDS):
                        reads.append(await read_all(http, session))
                        taken, peak = await load(server, session, project)
                        loads.append(taken)
                        peaks.append(peak / 1024)
                    beyond = [taken - own for taken, own in zip(loads, reads, strict=True)]
                    report(f"1,000 messages, {what}: the server's reads", reads, "s")
                    kept &= report(f"1,000 messages, {what}: beyond", beyond, "s", BOUND_SECONDS)
                    kept &= report(f"1,000 messages, {what}: most memory", peaks, "MB", BOUND_MB)
    return kept


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(measure()) else 1)
