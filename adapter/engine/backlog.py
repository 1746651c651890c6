"""What a client that cannot take updates now is still owed, kept without its text.

lifecycle.md, "A client that does not read": past the bound of a connection's outbox, text is kept
as a reference (message, part, from, to) and fetched from the server when its turn comes; tools and
usage keep the latest value per key; notices are kept all. The order of first sight is kept within
a session; sessions do not wait for each other.

A session that is being loaded is held: what happens meanwhile is owed until the replay is out, and
its text is kept up to a bound, so that a running turn goes on streaming afterwards.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from adapter.core.values import Chunk
from adapter.engine.owed import Json, Queue, Shown, Ways
from adapter.engine.tasks import log_fault
from adapter.limits import DEFAULTS, Limits

logger = logging.getLogger(__name__)

# Entries of one connection; the parts and tools of its turns stay far below. Past it, or past so
# many characters in them, the client counts as one that left: twice what a turn may show.
ENTRIES: Final = 50_000
CHARACTERS: Final = 128 * 1024 * 1024


@dataclass(frozen=True, slots=True, eq=False)
class Hold:
    """One load's: `released` once it is over."""

    released: asyncio.Event


class Backlog:
    """One connection's: a queue and a task a session, and one bound over all.

    `send` queues an update on the outbox, `fetch` reads a message's row, `relaxed` waits for room
    in the outbox, `give_up` ends the connection, `sleep` takes seconds, `gone` is told of
    characters that the server no longer had.
    """

    def __init__(
        self,
        send: Callable[[str, Json], None],
        fetch: Callable[[str, str], Awaitable[object]],
        relaxed: Callable[[], Awaitable[None]],
        give_up: Callable[[], None],
        sleep: Callable[[float], Awaitable[None]],
        *,
        gone: Callable[[int], None],
        limits: Limits = DEFAULTS,
    ) -> None:
        self._ways = Ways(send, fetch, relaxed, sleep, limits)
        self._give_up = give_up
        self._gone = gone
        self._queues: dict[str, Queue] = {}
        self._drains: dict[str, asyncio.Task[None]] = {}
        self._holds: dict[str, Hold] = {}
        self._serial = 0
        self._closed = False

    def __len__(self) -> int:
        return sum(len(queue.entries) for queue in self._queues.values())

    @property
    def characters(self) -> int:
        """Of the updates that are kept."""
        return sum(queue.size for queue in self._queues.values())

    @property
    def holds(self) -> int:
        """Sessions that are held."""
        return len(self._holds)

    def busy(self, session_id: str) -> bool:
        """Whether the session is owed something; what comes later must then go behind it."""
        return session_id in self._drains or session_id in self._holds

    def hold(self, session_id: str) -> Hold:
        """Keep back what happens in a session until the hold is released; the last hold counts.

        Whoever holds must release, however its work ends.
        """
        hold = self._holds[session_id] = Hold(asyncio.Event())
        drain = self._drains.get(session_id)
        if drain is not None:
            # It stops at once, and its end is seen to by `_paid`.
            drain.cancel()
        self._queue(session_id).keep()
        return hold

    def drop_shown(self, session_id: str) -> None:
        """All rows of a session that is held are about to be shown: its texts and tools come so."""
        self._queue(session_id).drop_shown()

    def release(self, session_id: str, hold: Hold, shown: Shown) -> None:
        """Send what was kept back, but for what the client was shown meanwhile."""
        hold.released.set()
        if self._holds.get(session_id) is not hold:
            return
        del self._holds[session_id]
        queue = self._queues.get(session_id)
        if queue is None:
            return
        queue.skip(shown)
        if queue.entries:
            self._mind(session_id)
        else:
            del self._queues[session_id]

    def owe_text(self, session_id: str, chunk: Chunk) -> None:
        """Keep a reference to the chunk's text, joined to what is owed of the same part."""
        if not self._closed:
            self._queue(session_id).put_text(chunk)
            self._mind(session_id)

    def owe(self, session_id: str, update: Json) -> None:
        """Keep an update, in the place of an earlier one that it replaces."""
        if not self._closed:
            self._serial += 1
            self._queue(session_id).put(update, self._serial)
            self._mind(session_id)

    async def drained(self, session_id: str) -> None:
        """Wait until the session is owed nothing: the answer of a turn follows all its updates."""
        while self.busy(session_id):
            hold = self._holds.get(session_id)
            if hold is not None:
                await hold.released.wait()
                continue
            queue = self._queues[session_id]
            queue.turn_is_over = True
            try:
                await asyncio.wait({self._drains[session_id]})
            finally:
                queue.turn_is_over = False

    async def aclose(self) -> None:
        """The client is gone: nothing is owed any more."""
        self._close()
        drains = list(self._drains.values())
        for drain in drains:
            drain.cancel()
        if drains:
            await asyncio.wait(drains)
        self._queues.clear()
        for hold in self._holds.values():
            hold.released.set()
        self._holds.clear()

    def _queue(self, session_id: str) -> Queue:
        return self._queues.setdefault(session_id, Queue(session_id, self._ways))

    def _mind(self, session_id: str) -> None:
        """Hold the bound, and see that somebody pays."""
        if len(self) > ENTRIES or self.characters > CHARACTERS:
            logger.warning("a client that does not read is owed too much; it counts as gone")
            self._close()
            self._give_up()
        elif session_id not in self._drains and session_id not in self._holds:
            drain = asyncio.create_task(self._drain(session_id), name=f"backlog {session_id}")
            self._drains[session_id] = drain
            drain.add_done_callback(lambda done: self._paid(session_id, done))

    def _close(self) -> None:
        self._closed = True
        for queue in self._queues.values():
            queue.clear()

    async def _drain(self, session_id: str) -> None:
        self._gone(await self._queues[session_id].pay())

    def _paid(self, session_id: str, drain: asyncio.Task[None]) -> None:
        """A drain is over: by itself, by a hold, by a fault of ours, or since the client left."""
        log_fault(drain)
        del self._drains[session_id]
        queue = self._queues.get(session_id)
        if queue is None or session_id in self._holds:
            return
        failed = not drain.cancelled() and drain.exception() is not None
        if queue.entries and not failed and not self._closed:
            self._mind(session_id)
        else:
            del self._queues[session_id]
