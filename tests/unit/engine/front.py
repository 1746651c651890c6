"""A client in memory, an engine and a stub server in one process; every line is held to ACP."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

from adapter.acp.peer import Peer, PeerLimits
from adapter.config import Settings
from adapter.engine.connection import Connection
from adapter.engine.engine import Engine
from stubs.server import Settings as StubSettings
from stubs.server import StubServer
from stubs.waiting import until
from tests.support.oracle import Oracle
from tests.unit.acp.pair import MemoryTransport, note, req

Json = dict[str, Any]
ALLOW: Final[Json] = {"outcome": {"outcome": "selected", "optionId": "allow_once"}}
SHELL: Final = 'tool shell {"command":"echo hi"}'
ASK: Final = {"shell": "ask"}
REJECT: Final[Json] = {"outcome": {"outcome": "selected", "optionId": "reject_once"}}


def words(count: int) -> str:
    """What the action `text` streams."""
    return "".join(f"w{number} " for number in range(count))


class AnswerError(Exception):
    """The error answer of the agent."""

    def __init__(self, error: Json) -> None:
        super().__init__(str(error))
        self.code: int = error["code"]
        self.message: str = error["message"]
        self.data: Json = error.get("data", {})


class Front:
    """One connection. `call` waits for an answer, `send` does not."""

    def __init__(self, engine: Engine) -> None:
        self.wire = MemoryTransport()
        self.connection = Connection(engine)
        limits = PeerLimits.of(engine.settings.limits)
        count = engine.counters.hit
        inbound = engine.inbound
        self.peer = Peer(
            self.wire, self.connection, time.monotonic, limits, count=count, inbound=inbound
        )
        self.connection.bind(self.peer)
        self.oracle = Oracle()
        self._running = asyncio.create_task(self.peer.run())
        self._last = 0

    async def close(self) -> None:
        self.wire.hang_up()
        await self._running
        await self.connection.leave()
        await self.peer.aclose()
        for line in self.lines:
            self.oracle.received(line)
        assert self.oracle.faults == []

    @property
    def lines(self) -> list[Json]:
        return self.wire.lines

    def send(self, method: str, **params: Any) -> int:
        """The id of the request."""
        self._last += 1
        message = req(self._last, method, **params)
        self.oracle.sent(message)
        self.wire.say(message)
        return self._last

    def notify(self, method: str, **params: Any) -> None:
        self.wire.say(note(method, **params))

    async def answer(self, ident: int) -> Json:
        """The result. Raises AnswerError."""

        def is_answer(line: Json) -> bool:
            return "method" not in line and line.get("id") == ident

        answer = await self.line(is_answer)
        if "error" in answer:
            raise AnswerError(answer["error"])
        result: Json = answer["result"]
        return result

    async def call(self, method: str, **params: Any) -> Json:
        return await self.answer(self.send(method, **params))

    async def new(self, directory: Path, **more: Any) -> str:
        result = await self.call("session/new", cwd=str(directory), mcpServers=[], **more)
        return str(result["sessionId"])

    def prompt(self, session: str, text: str) -> int:
        block = {"type": "text", "text": text}
        return self.send("session/prompt", sessionId=session, prompt=[block])

    async def line(self, wanted: Callable[[Json], bool], number: int = 1) -> Json:
        """Wait for the line that is wanted, or the second, third of its kind."""

        async def found() -> Json | None:
            await asyncio.sleep(0)
            fitting = [line for line in self.lines if wanted(line)]
            return fitting[number - 1] if len(fitting) >= number else None

        return await until("a line", found)

    async def ask(self, number: int = 1) -> Json:
        """The permission request of that number."""
        return await self.line(
            lambda line: line.get("method") == "session/request_permission", number
        )

    def reply(self, ask: Json, result: object) -> None:
        self.wire.say({"jsonrpc": "2.0", "id": ask["id"], "result": result})

    def updates(self, session: str, kind: str) -> list[Json]:
        return [
            line["params"]["update"]
            for line in self.lines
            if line.get("method") == "session/update"
            and line["params"]["sessionId"] == session
            and line["params"]["update"]["sessionUpdate"] == kind
        ]

    def text(self, session: str) -> str:
        chunks = self.updates(session, "agent_message_chunk")
        return "".join(chunk["content"]["text"] for chunk in chunks)

    async def until_text(self, session: str, words: str) -> None:
        async def come() -> bool:
            return words in self.text(session)

        await until(f"the text {words!r}", come)


class Stage:
    """A stub, one engine on it, and connections to it."""

    def __init__(self, stub: StubServer, engine: Engine, root: Path, stack: AsyncExitStack) -> None:
        self.stub = stub
        self.engine = engine
        self.root = root
        self._stack = stack

    async def front(self) -> Front:
        front = Front(self.engine)
        self._stack.push_async_callback(front.close)
        return front

    def asked(self, method: str, path: str) -> list[Any]:
        """The bodies of requests that the server saw, by the end of their path."""
        return [
            json.loads(seen.body or "null")
            for seen in self.stub.log
            if seen.method == method and seen.path.endswith(path)
        ]

    async def until_asked(self, method: str, path: str, number: int = 1) -> list[Any]:
        async def seen() -> bool:
            return len(self.asked(method, path)) >= number

        await until(f"{number} {method} …{path}", seen)
        return self.asked(method, path)

    async def until_up(self) -> None:
        async def up() -> bool:
            return self.engine.feed.is_connected

        await until("the feed is up", up)


@asynccontextmanager
async def stage(
    root: Path, permission: Json | None = None, stub: StubSettings | None = None, **settings: Any
) -> AsyncIterator[Stage]:
    """A project at `root` with these permissions; `settings` are the engine's."""
    config = {"permission": permission or {}}
    (root / "opencode.json").write_text(json.dumps(config), encoding="utf-8")
    shape = stub or StubSettings(
        project=str(root), request_delay=0, first_request_delay=0, delta_interval=0.01
    )
    async with (
        StubServer(shape) as server,
        Engine(Settings(server=server.url, **settings)) as engine,
        AsyncExitStack() as stack,
    ):
        yield Stage(server, engine, root, stack)
