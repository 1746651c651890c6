"""What a client that left leaves to be stopped, where events of its turn are missing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from adapter.engine.leaving import stop_by_reads
from contract.calls import mention
from stubs.waiting import until
from tests.unit.engine.front import Stage, stage
from tests.unit.engine.rig import Told

X = "msg_acp_x"
LONG = "@@text 400 25@@"


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Stage]:
    async with stage(tmp_path) as scene:
        text = '{"command": {"helper": {"template": "$ARGUMENTS", "subtask": true}}}'
        (tmp_path / "opencode.json").write_text(text, encoding="utf-8")
        yield scene


async def test_the_sub_agent_of_a_command_is_found_by_its_mark(scene: Stage) -> None:
    server = scene.engine.server
    session = await server.create_session(str(scene.root))
    body = {"name": "helper", "text": LONG, "agents": [mention(X)]}
    async with httpx.AsyncClient(base_url=scene.stub.url) as http:
        await http.post(f"/api/session/{session.id}/command", json=body)

        async def at_work() -> str | None:
            active = await server.active()
            children = await server.children(session.id)
            return next((child.id for child in children if child.id in active), None)

        child = await until("the sub-agent works", at_work)
        await stop_by_reads(Told().services(server), session.id, X)
        assert await scene.until_asked("POST", f"{child}/interrupt")
        assert scene.asked("POST", f"{session.id}/interrupt") == []
