"""EOF on stdin to the exit of the adapter: with an idle session, and with a turn in flight."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from typing import Final

from stubs.client import AcpClient, AcpClientError, AgentGone
from stubs.server import Settings, StubServer
from tests.bench.report import COMMAND, report

BOUND_MS: Final = 100.0
ROUNDS: Final = 10


async def leave(stub: StubServer, *, in_turn: bool) -> float:
    """Milliseconds from EOF to the exit. A turn in flight must reach the server as stopped."""
    project = stub.host.settings.directory
    async with AcpClient.spawn([str(COMMAND), "--server", stub.url]) as client:
        await client.initialize()
        session = await client.new_session(project)
        if not in_turn:
            return await _hang_up(client)
        turn = asyncio.create_task(client.prompt(session, "@@text 1000 20@@"))
        await client.wait_for(lambda: bool(client.transcript(session).text()))
        taken = await _hang_up(client)
        await asyncio.wait({turn})
        assert isinstance(turn.exception(), AgentGone | AcpClientError)
    assert any(seen.path.endswith(f"{session}/interrupt") for seen in stub.log)
    return taken


async def _hang_up(client: AcpClient) -> float:
    start = time.perf_counter()
    code = await client.hang_up()
    assert code == 0, client.stderr.decode()
    return (time.perf_counter() - start) * 1000


async def measure() -> bool:
    """Whether both keep within the bound."""
    with tempfile.TemporaryDirectory() as project:
        async with StubServer(Settings(project=project)) as stub:
            idle = [await leave(stub, in_turn=False) for _ in range(ROUNDS)]
            busy = [await leave(stub, in_turn=True) for _ in range(ROUNDS)]
    kept = report("EOF to exit, session idle", idle, "ms", BOUND_MS)
    return report("EOF to exit, turn in flight", busy, "ms", BOUND_MS) and kept


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(measure()) else 1)
