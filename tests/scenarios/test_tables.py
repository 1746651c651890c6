"""Nothing is kept of a turn that is over, whatever its end. In process, to see the tables."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from adapter.acp.transport import Call
from adapter.config import load
from adapter.engine.connection import Connection
from adapter.engine.engine import Engine
from adapter.options import Options
from contract.errors import AcpError
from stubs.waiting import until
from tests.scenarios.backends import Backend
from tests.scenarios.stage import ASKS, FrontEnd, Json, Stage, shell

LONG = "@@text 300 30@@"


class Inside:
    """An engine with one connection and one session."""

    def __init__(self, engine: Engine, connection: Connection, front: FrontEnd) -> None:
        self.engine = engine
        self.front = front
        self.session = ""
        self._connection = connection

    async def call(self, method: str, params: Json) -> Json:
        return await self._connection.request(Call(1, method, params))

    def prompt(self, text: str) -> asyncio.Task[Json]:
        blocks = [{"type": "text", "text": text}]
        params: Json = {"sessionId": self.session, "prompt": blocks}
        return asyncio.create_task(self.call("session/prompt", params))

    def cancel(self) -> None:
        self._connection.notification("session/cancel", {"sessionId": self.session})

    async def until_delivered(self) -> None:
        async def delivered() -> bool:
            return bool(await self.front.rows(self.session, "user"))

        await until("the prompt is delivered", delivered)


@asynccontextmanager
async def inside(backend: Backend, project: Path) -> AsyncIterator[Inside]:
    settings = load(
        Options({"server": backend.url}), {"OPENCODE_SERVER_PASSWORD": backend.password}
    )
    async with Engine(settings) as engine, backend.client() as http:
        one = Inside(engine, Connection(engine), FrontEnd(http))
        answer = await one.call("session/new", {"cwd": str(project), "mcpServers": []})
        one.session = str(answer["sessionId"])
        yield one


@pytest.mark.parametrize(
    "end",
    ["answered", "refused", "failed", "cancelled", "cancelled in an ask", "stopped", "deleted"],
)
async def test_the_tables_are_empty_after_a_turn(stage: Stage, end: str) -> None:
    async with inside(stage.backend, stage.project(ASKS)) as one:
        session = await one.engine.server.session(one.session)
        hub = one.engine.hub(session, "")
        scripts = {
            "answered": "@@think 3 && text 20@@",
            "refused": f"@@text 2 && {shell('echo hi')} || text 3@@",
            "failed": "@@text 2 && error 400 always@@",
            "cancelled in an ask": f"@@{shell('echo hi')}@@",
        }
        prompt = one.prompt(scripts.get(end, LONG))
        if end not in ("answered", "refused", "failed"):
            await one.until_delivered()
        match end:
            case "cancelled" | "cancelled in an ask":
                one.cancel()
            case "stopped":
                await one.front.post(f"session/{one.session}/interrupt")
            case "deleted":
                await one.front.delete(f"session/{one.session}")
            case _:
                pass
        await asyncio.wait([prompt])
        failed = isinstance(prompt.exception(), AcpError)
        assert failed == (end in ("failed", "stopped", "deleted"))

        async def empty() -> bool:
            return not any(hub.core.tables().values())

        await until(f"the tables are empty: {hub.core.tables()}", empty)
        assert len(one.engine.offsets) == 0
