"""The daemon: it accepts clients, serves each on the one engine, and lets go of those that leave.

A client that comes is held to the allowed users before a byte of it is read. Its hello has a few
seconds; a client that is refused is told why in one line.

Its door stays open until all that it had to do is done: whoever comes to a daemon that ends is told
so, and is not left to find nobody, who might still be there.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import socket
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Self

from adapter.daemon import ending
from adapter.daemon.arrivals import Arrivals
from adapter.daemon.clients import Client
from adapter.daemon.door import Door
from adapter.daemon.hello import Credentials, Differs, Hello, credentials, read_hello
from adapter.daemon.link import Link
from adapter.daemon.listening import Listener
from adapter.daemon.process import ARRIVING, Room
from adapter.daemon.refusal import Refusal
from adapter.engine.engine import Engine
from adapter.engine.tasks import Tasks
from adapter.limits import DEFAULTS, Bound
from contract.attach import ACCEPTED, ANSWER_SECONDS, AUTH, FAULT, TEMPORARY, USAGE
from contract.words import counted

logger = logging.getLogger(__name__)

# Seconds between two looks at whether all turns are over.
DRAINED: Final = 0.05
# Seconds for everything that clients leave behind when the daemon ends.
LEAVING: Final = 4.0

SHORT: Final = "The daemon has no descriptor left for another client; try again in a moment."
FAILED: Final = "The daemon failed at the hello of this client; its log says where."
CROWD: Final = "Too many clients are about to come; try again in a moment."


class State(StrEnum):
    """In this order."""

    STARTING = "starting"
    SERVING = "serving"
    DRAINING = "draining"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class Terms:
    """Whom the daemon serves, besides the limit `connections` of its engine."""

    allowed_uids: frozenset[int] = field(default_factory=lambda: frozenset({os.getuid()}))
    room: Room = field(default_factory=lambda: Room(DEFAULTS.connections, ARRIVING))
    """Clients for whom there are descriptors, with a hello and without one so far."""
    hello_seconds: float = ANSWER_SECONDS
    differs: Differs = lambda _: None


class Daemon:
    """Serves clients from its beginning as a context until its end, which gives up its place.

    The engine is the caller's: it begins before the daemon and ends after it.
    """

    def __init__(self, engine: Engine, listener: Listener, terms: Terms) -> None:
        self.engine = engine
        self.listener = listener
        self.terms = terms
        self.state = State.STARTING
        refusal = Refusal(TEMPORARY, SHORT).line()
        self._door = Door(listener, self._arrived, refusal, engine.sleep)
        self._arriving = Tasks()
        self._silent = Arrivals[Link]()
        self._served: dict[int, Client] = {}
        self._serving = Tasks()
        self._leaving = Tasks()
        self._numbers = itertools.count(1)
        # None: as the engine's settings say.
        self._interrupts: bool | None = None
        self._drained_by: float | None = None
        self._closing = Tasks()
        self._close: asyncio.Task[None] | None = None
        self._over = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._door.open()
        self.state = State.SERVING
        return self

    async def __aexit__(self, *_: object) -> None:
        try:
            await self.close()
        finally:
            await self._closing.aclose()
            await self._door.aclose(self._is_ending().line())

    @property
    def drain_seconds(self) -> float | None:
        """How long turns in flight still have while it drains; None else."""
        if self.state is not State.DRAINING or self._drained_by is None:
            return None
        return max(0.0, self._drained_by - self.engine.clock())

    @property
    def clients(self) -> tuple[Client, ...]:
        """Those that are served, in the order in which they came."""
        return tuple(self._served.values())

    def tables(self) -> dict[str, int]:
        """Sizes of what is kept for clients here; the engine has its own."""
        return {
            "arriving": len(self._arriving),
            "clients": len(self._served),
            "leaving": len(self._leaving),
        }

    async def run(self) -> None:
        """Wait until the daemon is closed."""
        await self._over.wait()

    async def drain(self, seconds: float) -> bool:
        """Take no client and no prompt any more, and wait so long for the turns in flight.

        And for the requests that are open now: those that come meanwhile are served, but whoever
        sends one after the other holds up nothing. Whether all had their end and answer in time.
        `close` follows.
        """
        asked = [task for client in self.clients for task in client.answering]
        if self.state is State.SERVING:
            self.state = State.DRAINING
            self.engine.draining = True
            self._drained_by = self.engine.clock() + seconds
        try:
            async with asyncio.timeout(seconds):
                while self.engine.turns or not all(task.done() for task in asked):
                    await self.engine.sleep(DRAINED)
        except TimeoutError:
            turns = counted(self.engine.turns, "turn")
            open_yet = counted(sum(not task.done() for task in asked), "request")
            logger.warning(
                "the wait is over after %g s: %s in flight, %s without an answer",
                seconds,
                turns,
                open_yet,
            )
            return False
        return True

    async def close(self, *, interrupt: bool = False) -> None:
        """End every connection; turns in flight are stopped if `interrupt`, else they go on.

        From here on those who come to a socket that was passed wait in its queue for the next
        daemon, which is started soon; there is nobody else who would answer at one of ours.

        It is done once: who calls it again waits for the same end, and who stops to wait for it
        stops nothing.
        """
        if self._close is None:
            self.state = State.CLOSED
            self._interrupts = interrupt
            if not self.listener.is_ours:
                self._door.shut()
            self._close = self._closing.start(self._end(interrupt), "end of the daemon")
        await asyncio.shield(self._close)

    async def _end(self, interrupt: bool) -> None:
        try:
            await self._arriving.aclose()
            for client in self.clients:
                client.hang_up(interrupt=interrupt)
            try:
                async with asyncio.timeout(LEAVING):
                    while rest := frozenset({*self._serving, *self._leaving}):
                        await asyncio.wait(rest)
            except TimeoutError:
                logger.warning("some of what clients have left could not be put in order in time")
        finally:
            await self._serving.aclose()
            await self._leaving.aclose()
            self._over.set()

    # --- those who come -------------------------------------------------------------------

    def _arrived(self, sock: socket.socket) -> None:
        link = Link(sock)
        try:
            who = credentials(sock)
            self._check(who)
        except Refusal as refusal:
            self._send_away(link, refusal)
        except OSError as error:
            logger.info("a client that came has left again: %s", error)
            link.close()
        else:
            self._silent.add(link, who)
            self._arriving.start(self._greet(link, who), f"hello of process {who.pid}")
            while len(self._silent) > self.terms.room.arriving:
                crowding = self._silent.crowding()
                self._silent.discard(crowding)
                # Its reader finds it closed.
                self._send_away(crowding, Refusal(TEMPORARY, CROWD))

    def _check(self, who: Credentials) -> None:
        if who.uid not in self.terms.allowed_uids:
            logger.warning("a process of user %d was refused", who.uid)
            raise Refusal(
                AUTH, f"The daemon does not serve user {who.uid}; its operator has allowed_uids."
            )
        if self.state is not State.SERVING:
            raise self._is_ending()

    async def _greet(self, link: Link, who: Credentials) -> None:
        """Hear the hello; the client is served from then on, or told why not."""
        client = None
        try:
            hello = await read_hello(link, self.terms.hello_seconds)
            self._silent.discard(link)
            if hello is not None:
                self._admit(hello)
                client = Client(next(self._numbers), self.engine, link, who, hello)
                link.write(ACCEPTED)
                self._served[client.number] = client
                self._serving.start(self._serve(client), f"client {client.number}")
        except Refusal as refusal:
            self._send_away(link, refusal)
        except asyncio.CancelledError:
            self._send_away(link, self._is_ending())
            raise
        except Exception:
            logger.exception("the hello of process %d", who.pid)
            self._send_away(link, Refusal(FAULT, FAILED))
        finally:
            self._silent.discard(link)
            if client is None:
                link.close()

    def _admit(self, hello: Hello) -> None:
        if self.state is not State.SERVING:
            raise self._is_ending()
        # What those that leave have left behind is still at work, and bounded likewise.
        limit = min(self.engine.settings.limits.connections, self.terms.room.clients)
        if len(self._served) >= limit or len(self._leaving) >= limit:
            self.engine.counters.hit(Bound.CONNECTIONS)
            most = counted(limit, "client")
            raise Refusal(TEMPORARY, f"The daemon serves {most} at most; try again later.")
        difference = self.terms.differs(hello)
        if difference is not None:
            raise Refusal(USAGE, difference)

    def _is_ending(self) -> Refusal:
        left = self.drain_seconds
        turns = 0 if left is None else self.engine.turns
        return Refusal(TEMPORARY, ending.sentence(self.listener.path, turns, left or 0))

    @staticmethod
    def _send_away(link: Link, refusal: Refusal) -> None:
        """The line fits into the buffer of a socket that is new."""
        logger.info("a client was refused: %s", refusal)
        link.write(refusal.line())
        link.close()

    # --- those who are here, and those who leave ------------------------------------------

    async def _serve(self, client: Client) -> None:
        try:
            await client.serve()
        finally:
            del self._served[client.number]
            interrupts = self._interrupts
            if interrupts is None:
                interrupts = self.engine.settings.interrupt_on_exit
            work = client.depart(interrupt=interrupts)
            self._leaving.start(work, f"departure of client {client.number}")
