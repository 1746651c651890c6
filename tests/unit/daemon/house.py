"""A stub server, an engine, a daemon and its clients in one process, joined by real sockets."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from adapter.config import Settings
from adapter.daemon.daemon import Daemon, Terms
from adapter.daemon.listening import Listener, listen
from adapter.engine.engine import Engine
from adapter.engine.observer import Observer
from contract.attach import ACCEPTED, HELLO
from contract.reads import AssistantRow
from stubs.server import Settings as StubSettings
from stubs.server import StubServer
from stubs.waiting import until

Json = dict[str, Any]
T = TypeVar("T")
IDLE = {"sessions": 0, "followed": 0, "watched": 0, "attachments": 0, "turns": 0, "calls": 0}
NOBODY = {"arriving": 0, "clients": 0, "leaving": 0}


def hello(**fields: str) -> bytes:
    """The line of a relay; `set_NAME` stands for the field `set:NAME`."""
    named = {key.replace("set_", "set:", 1): value for key, value in fields.items()}
    return "\0".join([HELLO, *(f"{key}={value}" for key, value in named.items())]).encode() + b"\n"


def _connected(path: Path) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.connect(str(path))
    except OSError:
        sock.close()
        raise
    sock.setblocking(False)
    return sock


class Caller:
    """A client as the relay makes it: one socket, a hello, lines."""

    def __init__(self, path: Path) -> None:
        self.socket = _connected(path)
        self.lines: list[Json] = []
        self.ended = False
        self._news = asyncio.Event()
        self._last = 0
        self._data = b""
        self._reading: asyncio.Task[None] | None = None

    async def greet(self, line: bytes | None = None) -> bytes:
        """The answer to the hello; empty at EOF."""
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(self.socket, hello() if line is None else line)
        return await self.answer_line()

    async def greet_or_hear(self) -> bytes:
        """The same for one that may have been sent away before it said anything."""
        try:
            return await self.greet()
        except BrokenPipeError:
            return await self.answer_line()

    async def answer_line(self) -> bytes:
        """The next line, to be used before anything reads."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(10):
            while b"\n" not in self._data:
                more = await loop.sock_recv(self.socket, 4096)
                if not more:
                    return self._data
                self._data += more
        line, _, self._data = self._data.partition(b"\n")
        return line + b"\n"

    def read(self) -> None:
        """Take whatever comes from now on."""
        self._reading = asyncio.create_task(self._read())

    @contextmanager
    def not_reading(self) -> Iterator[None]:
        """Leave what comes to the socket for a while."""
        if self._reading is not None:
            self._reading.cancel()
        yield
        self.read()

    async def _read(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            *whole, self._data = self._data.split(b"\n")
            self.lines += [json.loads(line) for line in whole]
            self._news.set()
            more = await loop.sock_recv(self.socket, 1 << 16)
            self._data += more
            if not more:
                self.ended = True
                self._news.set()
                return

    async def _until(self, what: str, reached: Callable[[], T | None]) -> T:
        """The first result that is neither None nor False, looked for at whatever comes."""
        try:
            async with asyncio.timeout(10):
                while not (result := reached()):
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise TimeoutError(f"did not come: {what}") from None
        return result

    async def send(self, method: str, **params: Any) -> int:
        """The id of the request."""
        self._last += 1
        await self.say({"jsonrpc": "2.0", "id": self._last, "method": method, "params": params})
        return self._last

    async def say(self, message: Json) -> None:
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(self.socket, json.dumps(message).encode() + b"\n")

    async def line(self, wanted: Callable[[Json], bool]) -> Json:
        return await self._until("a line", lambda: next(filter(wanted, self.lines), None))

    async def answer(self, ident: int) -> Json:
        """The whole answer."""
        return await self.line(lambda line: "method" not in line and line.get("id") == ident)

    async def call(self, method: str, **params: Any) -> Json:
        """The result."""
        answer = await self.answer(await self.send(method, **params))
        assert "result" in answer, answer
        result: Json = answer["result"]
        return result

    async def new(self, directory: Path) -> str:
        return str((await self.call("session/new", cwd=str(directory), mcpServers=[]))["sessionId"])

    async def prompt(self, session: str, text: str) -> int:
        block = {"type": "text", "text": text}
        return await self.send("session/prompt", sessionId=session, prompt=[block])

    async def stop_reason(self, ident: int) -> str:
        """Of a prompt that ends well."""
        answer = await self.answer(ident)
        assert "result" in answer, answer
        return str(answer["result"]["stopReason"])

    def text(self, session: str) -> str:
        """What the agent has said in the session."""
        updates = (
            line["params"]["update"]
            for line in self.lines
            if line.get("method") == "session/update" and line["params"]["sessionId"] == session
        )
        return "".join(
            update["content"]["text"]
            for update in updates
            if update["sessionUpdate"] == "agent_message_chunk"
        )

    async def until_text(self, session: str, words: str) -> None:
        await self._until(f"the text {words!r}", lambda: words in self.text(session))

    async def hang_up(self) -> None:
        """Half-close, as a relay does whose client has closed its input."""
        self.socket.shutdown(socket.SHUT_WR)
        await self.over()

    async def over(self) -> None:
        """Wait until the daemon has closed the connection."""
        await self._until("the end", lambda: self.ended)

    async def aclose(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait({self._reading})
        self.socket.close()


@asynccontextmanager
async def visitors(path: Path) -> AsyncIterator[Callable[[], Caller]]:
    """Makes clients that have not said anything, and closes them in the end."""
    async with AsyncExitStack() as stack:

        def come() -> Caller:
            caller = Caller(path)
            stack.push_async_callback(caller.aclose)
            return caller

        yield come


class House:
    """A daemon with all that belongs to it."""

    def __init__(
        self, stub: StubServer, engine: Engine, daemon: Daemon, root: Path, stack: AsyncExitStack
    ) -> None:
        self.stub = stub
        self.engine = engine
        self.daemon = daemon
        self.root = root
        self.path = Path(daemon.listener.path)
        self._stack = stack

    async def caller(self) -> Caller:
        """One that has not said anything."""
        caller = Caller(self.path)
        self._stack.push_async_callback(caller.aclose)
        return caller

    async def client(self, line: bytes | None = None) -> Caller:
        """One that was accepted and reads."""
        caller = await self.caller()
        assert await caller.greet(line) == ACCEPTED
        caller.read()
        return caller

    def asked(self, method: str, path: str) -> list[str]:
        """The requests that the server saw, by method and the end of their path."""
        return [
            one.path for one in self.stub.log if one.method == method and one.path.endswith(path)
        ]

    async def until_asked(self, method: str, path: str, number: int = 1) -> None:
        async def seen() -> bool:
            return len(self.asked(method, path)) >= number

        await until(f"{number} {method} …{path}", seen)

    async def until_finished(self, session: str) -> None:
        """The server has ended the session's newest turn by itself."""

        async def finished() -> bool:
            rows, _ = await self.engine.server.rows_back_to(session, frozenset({"none"}))
            return any(isinstance(row, AssistantRow) and row.finish == "stop" for row in rows)

        await until("the turn has ended on the server", finished)

    async def until_empty(self) -> None:
        """Nothing of any client is left."""

        async def empty() -> bool:
            return self.engine.tables() == IDLE and self.daemon.tables() == NOBODY

        await until("nothing is left", empty)


@asynccontextmanager
async def house(
    root: Path,
    terms: Terms | None = None,
    permission: Json | None = None,
    *,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    clock: Callable[[], float] = time.monotonic,
    observer: Observer | None = None,
    listener: Listener | None = None,
    **settings: Any,
) -> AsyncIterator[House]:
    """A project at `root` with these permissions; the daemon makes its socket, or has `listener`.

    The others but `terms` are the engine's.
    """
    config = {"permission": permission or {}}
    (root / "opencode.json").write_text(json.dumps(config), encoding="utf-8")
    shape = StubSettings(
        project=str(root), request_delay=0, first_request_delay=0, delta_interval=0.01
    )
    listener = listener or listen(str(root / "run" / "acp.sock"))
    async with (
        StubServer(shape) as stub,
        Engine(
            Settings(server=stub.url, **settings), clock=clock, sleep=sleep, observer=observer
        ) as engine,
        Daemon(engine, listener, terms or Terms()) as daemon,
        AsyncExitStack() as stack,
    ):
        yield House(stub, engine, daemon, root, stack)
