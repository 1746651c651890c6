"""An in-memory transport and a scripted handler, so that tests hold both ends of a connection."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

from adapter.acp.inbound import Inbound
from adapter.acp.jsonrpc import JsonObject
from adapter.acp.peer import Ending, Peer, PeerLimits
from adapter.acp.transport import Call
from adapter.limits import Bound

DEADLINE = 5.0


class MemoryTransport:
    """The agent's transport; the test is the client: `say`, `hang_up`, `lines`, `wait_lines`."""

    def __init__(self) -> None:
        self._inbound: asyncio.Queue[bytes] = asyncio.Queue()
        self._open = asyncio.Event()
        self._open.set()
        self._arrived = asyncio.Condition()
        self.writes: list[bytes] = []
        self.closed = False
        self.refuses = False

    async def read(self) -> bytes:
        if self.closed:
            return b""
        return await self._inbound.get()

    def write(self, data: bytes) -> None:
        self.writes.append(data)

    async def drain(self) -> None:
        await self._open.wait()
        if self.refuses:
            raise BrokenPipeError("the reader is gone")
        async with self._arrived:
            self._arrived.notify_all()

    def close(self) -> None:
        self.closed = True
        self._inbound.put_nowait(b"")

    def say(self, *messages: JsonObject | bytes) -> None:
        """All messages arrive in one read."""
        self._inbound.put_nowait(
            b"".join(
                m if isinstance(m, bytes) else json.dumps(m).encode() + b"\n" for m in messages
            )
        )

    def hang_up(self) -> None:
        self._inbound.put_nowait(b"")

    @contextmanager
    def not_reading(self) -> Iterator[None]:
        self._open.clear()
        try:
            yield
        finally:
            self._open.set()

    @property
    def lines(self) -> list[JsonObject]:
        return [json.loads(line) for line in b"".join(self.writes).splitlines()]

    async def wait_lines(self, count: int) -> list[JsonObject]:
        async with asyncio.timeout(DEADLINE), self._arrived:
            await self._arrived.wait_for(lambda: len(self.lines) >= count)
        return self.lines


@dataclass
class ScriptedHandler:
    """Methods are coroutines of the test; every notification is kept."""

    methods: dict[str, Callable[[Call], Awaitable[JsonObject]]] = field(default_factory=dict)
    notified: list[tuple[str, JsonObject]] = field(default_factory=list)
    on_notification: Callable[[str, JsonObject], None] | None = None

    async def request(self, call: Call) -> JsonObject:
        return await self.methods[call.method](call)

    def notification(self, method: str, params: JsonObject) -> None:
        self.notified.append((method, params))
        if self.on_notification is not None:
            self.on_notification(method, params)


@dataclass
class HandClock:
    """A clock that stands still until the test moves it."""

    now: float = 100.0

    def read(self) -> float:
        return self.now


def req(ident: object, method: str, **params: object) -> JsonObject:
    return {"jsonrpc": "2.0", "id": ident, "method": method, "params": params}


def note(method: str, **params: object) -> JsonObject:
    return {"jsonrpc": "2.0", "method": method, "params": params}


class Connection:
    """A running peer with everything that the test holds of it."""

    def __init__(self, limits: PeerLimits, inbound: Inbound) -> None:
        self.wire = MemoryTransport()
        self.handler = ScriptedHandler()
        self.clock = HandClock()
        self.counted: list[Bound] = []
        self.peer = Peer(
            self.wire,
            self.handler,
            self.clock.read,
            limits,
            count=self.counted.append,
            inbound=inbound,
        )
        self.running = asyncio.create_task(self.peer.run())

    async def ended(self) -> Ending:
        async with asyncio.timeout(DEADLINE):
            return await self.running


@asynccontextmanager
async def connected(
    limits: PeerLimits | None = None, inbound: Inbound | None = None
) -> AsyncIterator[Connection]:
    connection = Connection(limits or PeerLimits(), inbound or Inbound())
    try:
        yield connection
    finally:
        connection.wire.hang_up()
        async with asyncio.timeout(DEADLINE):
            await connection.running
            await connection.peer.aclose()


async def echo(call: Call) -> JsonObject:
    return dict(call.params)
