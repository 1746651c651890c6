"""One client of the daemon, from its hello until nothing of it is left."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

from adapter.acp.peer import Peer, PeerLimits
from adapter.daemon.hello import Credentials, Hello
from adapter.daemon.link import Link
from adapter.engine.connection import Connection
from adapter.engine.engine import Engine

logger = logging.getLogger(__name__)

# Seconds to be told what becomes of its prompts, for a client that we send away: a turn that is
# stopped is answered within two.
FAREWELL: Final = 2.5
# Seconds to take what is queued: for a client that we send away, and for one that has left, whose
# relay waits no longer for it.
FLUSH: Final = 1.0
FLUSH_LEFT: Final = 0.05


class Client:
    """A peer and its connection on the engine of all. `number` is never used again."""

    def __init__(
        self, number: int, engine: Engine, link: Link, credentials: Credentials, hello: Hello
    ) -> None:
        self.number = number
        self.hello = hello
        self.credentials = credentials
        self.since = engine.clock()
        """On the engine's clock, in seconds."""
        self._link = link
        self._flush_seconds = FLUSH_LEFT
        self._sent_away = False
        self._interrupts = False
        self._connection = Connection(engine, number=number)
        limits = PeerLimits.of(self._connection.limits)
        count = engine.counters.hit
        self._peer = Peer(
            link, self._connection, engine.clock, limits, count=count, inbound=engine.inbound
        )
        self._connection.bind(self._peer)

    @property
    def name(self) -> str:
        """What it calls itself in `initialize`, with its version; empty before."""
        return self._connection.client_name

    @property
    def turns(self) -> int:
        """Its prompts in flight."""
        return self._connection.turns

    @property
    def queued(self) -> int:
        """Those of them that the server has not begun to answer."""
        return self._connection.queued

    @property
    def owed(self) -> int:
        """Updates that wait outside of the outbox for a client that does not read."""
        return self._connection.owed

    @property
    def queued_bytes(self) -> int:
        """Bytes in the outbox that it has not taken."""
        return self._peer.queued_bytes

    @property
    def open_sessions(self) -> frozenset[str]:
        """What it has open, put aside or not."""
        return self._connection.open_sessions

    @property
    def owners(self) -> Mapping[str, int]:
        """The number of each opening of these, by session."""
        return self._connection.owners

    @property
    def holds(self) -> int:
        """Sessions whose updates wait for the end of a replay."""
        return self._connection.holds

    @property
    def calls(self) -> int:
        """Its requests that have no answer yet."""
        return self._peer.calls

    @property
    def answering(self) -> frozenset[asyncio.Task[None]]:
        """These requests, each a task that is done once its answer is queued."""
        return self._peer.answering

    def hang_up(self, *, interrupt: bool) -> None:
        """End the connection once the client has what is queued: it counts as one that left.

        The last it hears is what becomes of its turns: they are stopped if `interrupt`, else they
        go on.
        """
        self._flush_seconds = FLUSH
        self._sent_away, self._interrupts = True, interrupt
        self._link.end()

    async def serve(self) -> None:
        """Until the client is gone, what was queued is flushed, and its link is closed."""
        parent = f" of {self.hello.client_pid}" if self.hello.client_pid else ""
        logger.info("client %d is here: process %d%s", self.number, self.credentials.pid, parent)
        try:
            ending = await self._peer.run()
            logger.info("client %d has left: %s", self.number, ending.value)
            if self._sent_away:
                await self._take_leave()
        finally:
            await self._peer.aclose(self._flush_seconds)

    async def _take_leave(self) -> None:
        """What it has in flight is stopped, or left to the server, and answered so."""
        try:
            async with asyncio.timeout(FAREWELL):
                if self._interrupts:
                    await self._connection.stop_turns()
                else:
                    await self._connection.leave_running()
                await self._peer.answered()
        except TimeoutError:
            logger.info("client %d could not be told of all its prompts", self.number)

    async def depart(self, *, interrupt: bool) -> None:
        """Nothing of it is left behind in the engine; to be called once `serve` is over."""
        await self._connection.depart(interrupt=interrupt)
