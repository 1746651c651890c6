"""A client that stops reading in mid-turn gets every character once it reads again."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

from adapter.acp.peer import Peer, PeerLimits
from adapter.config import Settings
from adapter.engine.connection import Connection
from adapter.engine.engine import Engine
from stubs.server import StubServer
from stubs.server.config import Settings as StubSettings
from stubs.waiting import until
from tests.unit.acp.pair import MemoryTransport

STEP = 'think 50 && text 8000 && tool shell {"command":"echo hi"}'
SCRIPT = f"@@{' || '.join([STEP] * 8)} || text 10@@"
OUTBOX = 64 * 1024


async def answer(transport: MemoryTransport, ident: int) -> dict[str, Any]:
    async def found() -> dict[str, Any] | None:
        await asyncio.sleep(0)
        lines = (line for line in transport.lines if "method" not in line)
        return next((line for line in lines if line.get("id") == ident), None)

    return await until(f"an answer to {ident}", found, 20)


async def test_text_is_exact_after_a_pause_of_the_client(tmp_path: Path) -> None:
    (tmp_path / "opencode.json").write_text("{}")
    transport = MemoryTransport()
    async with (
        StubServer(StubSettings(project=str(tmp_path), delta_interval=0.01)) as stub,
        Engine(Settings(server=stub.url)) as engine,
    ):
        connection = Connection(engine)
        peer = Peer(transport, connection, time.monotonic, PeerLimits(outbox=OUTBOX))
        connection.bind(peer)
        running = asyncio.create_task(peer.run())
        new = {"cwd": str(tmp_path), "mcpServers": []}
        transport.say({"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": new})
        session = (await answer(transport, 1))["result"]["sessionId"]
        block = {"type": "text", "text": SCRIPT}
        prompt = {"sessionId": session, "prompt": [block]}
        with transport.not_reading():
            transport.say({"jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": prompt})

            async def settled() -> bool:
                rows = (await engine.server.rows_back_to(session, frozenset({"none"})))[0]
                return bool(rows) and rows[-1].type == "idle"

            await until("the server has ended the turn", settled, 20)
            assert peer.queued_bytes < OUTBOX * 3
        ended = await answer(transport, 2)
        assert ended["result"]["stopReason"] == "end_turn"
        assert connection.owed == 0
        transport.hang_up()
        await running
        await connection.leave()
        await peer.aclose()
    texts: dict[str, dict[str, str]] = {"agent_message_chunk": {}, "agent_thought_chunk": {}}
    tools: dict[str, str] = {}
    lines: list[dict[str, Any]] = transport.lines
    for line in lines:
        update = line.get("params", {}).get("update", {})
        into = texts.get(update.get("sessionUpdate"))
        if into is not None:
            key = update["messageId"]
            into[key] = into.get(key, "") + update["content"]["text"]
        elif "toolCallId" in update:
            tools[update["toolCallId"]] = update["status"]
    words = "".join(f"w{number} " for number in range(8000))
    assert list(texts["agent_message_chunk"].values()) == [words] * 8 + [words[:30]]
    thoughts = "".join(f"think{number} " for number in range(50))
    assert list(texts["agent_thought_chunk"].values()) == [thoughts] * 8
    assert list(tools.values()) == ["completed"] * 8
    assert lines[-1]["id"] == 2
