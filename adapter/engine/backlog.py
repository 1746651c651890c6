"""What a client that does not read is still owed, kept without its text.

lifecycle.md, "A client that does not read": past the bound of a connection's outbox, text is kept
as a reference (message, part, from, to) and fetched from the server when its turn comes; tools and
usage keep the latest value per key; notices are kept all. The order of first sight is kept within
a session; sessions do not wait for each other.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from adapter.acp import updates
from adapter.core.values import Chunk
from adapter.upstream.errors import UpstreamError
from contract.reads import AssistantRow, ReasoningPart, TextPart

logger = logging.getLogger(__name__)

Json = dict[str, object]

# Entries of one connection; the parts and tools of its turns stay far below. Past it the client
# counts as one that left.
ENTRIES: Final = 50_000
# A part that is still streamed cannot be read yet; it is asked for again after this many seconds.
# Once its turn is over it is given up after so many reads in a row that had no more of it.
PAUSE: Final = 0.25
ATTEMPTS: Final = 8


@dataclass(frozen=True, slots=True)
class Ways:
    """What a queue needs of its connection and of the server."""

    send: Callable[[str, Json], None]
    fetch: Callable[[str, str], Awaitable[object]]
    relaxed: Callable[[], Awaitable[None]]
    sleep: Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Text:
    """Characters `start` to `end` of a part, to be read when the client takes them."""

    chunk: Chunk
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Key:
    """What replaces what in a session: an entry takes the place of one with the same key."""

    name: str
    ident: str


def key_of(update: Json, serial: int) -> Key:
    """The key of an update that is no text."""
    match update.get("sessionUpdate"):
        case "tool_call" | "tool_call_update":
            return Key("tool", str(update.get("toolCallId")))
        case "notice" | "session_info_update":
            return Key("notice", str(serial))
        case name:
            return Key(str(name), "")


class Backlog:
    """One connection's: a queue and a task a session, and one bound over all.

    `send` queues an update on the outbox, `fetch` reads a message's row, `relaxed` waits for room
    in the outbox, `give_up` ends the connection, `sleep` takes seconds.
    """

    def __init__(
        self,
        send: Callable[[str, Json], None],
        fetch: Callable[[str, str], Awaitable[object]],
        relaxed: Callable[[], Awaitable[None]],
        give_up: Callable[[], None],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self._ways = Ways(send, fetch, relaxed, sleep)
        self._give_up = give_up
        self._queues: dict[str, Queue] = {}
        self._drains: dict[str, asyncio.Task[None]] = {}
        self._serial = 0
        self._closed = False
        self.left_out = 0
        """Characters that the server no longer had."""

    def __len__(self) -> int:
        return sum(len(queue.entries) for queue in self._queues.values())

    def busy(self, session_id: str) -> bool:
        """Whether the session is owed something; what comes later must then go behind it."""
        return session_id in self._drains

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
        drain = self._drains.get(session_id)
        if drain is None:
            return
        queue = self._queues[session_id]
        queue.turn_is_over = True
        try:
            await asyncio.wait({drain})
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
        # One that was cancelled before it ran has not cleared its own.
        self._queues.clear()
        self._drains.clear()

    def _queue(self, session_id: str) -> Queue:
        return self._queues.setdefault(session_id, Queue(session_id, self._ways))

    def _mind(self, session_id: str) -> None:
        """Hold the bound, and see that somebody pays."""
        if len(self) > ENTRIES:
            logger.warning("a client that does not read is owed too much; it counts as gone")
            self._close()
            self._give_up()
        elif session_id not in self._drains:
            name = f"backlog {session_id}"
            self._drains[session_id] = asyncio.create_task(self._drain(session_id), name=name)

    def _close(self) -> None:
        self._closed = True
        for queue in self._queues.values():
            queue.entries.clear()

    async def _drain(self, session_id: str) -> None:
        queue = self._queues[session_id]
        try:
            self.left_out += await queue.pay()
        finally:
            del self._queues[session_id]
            del self._drains[session_id]


class Queue:
    """What one session is owed, in the order of first sight."""

    def __init__(self, session_id: str, ways: Ways) -> None:
        self._session_id = session_id
        self._ways = ways
        self.entries: OrderedDict[Key, Text | Json] = OrderedDict()
        self.turn_is_over = False

    def put_text(self, chunk: Chunk) -> None:
        key = Key(chunk.kind, f"{chunk.message_id}/{chunk.ordinal}")
        end = chunk.start + len(chunk.text)
        known = self.entries.get(key)
        start = known.start if isinstance(known, Text) else chunk.start
        bare = Chunk(
            chunk.owner, chunk.message_id, chunk.kind, "", chunk.retry_of, True, chunk.ordinal
        )
        self.entries[key] = Text(bare, start, end)

    def put(self, update: Json, serial: int) -> None:
        key = key_of(update, serial)
        known = self.entries.get(key)
        if isinstance(known, dict) and known.get("sessionUpdate") == "tool_call":
            update = {**known, **update, "sessionUpdate": "tool_call"}
        self.entries[key] = update

    async def pay(self) -> int:
        """Send all of it as the client takes it; the number of characters that were lost."""
        lost = 0
        while self.entries:
            await self._ways.relaxed()
            if not self.entries:
                break  # closed meanwhile
            key, entry = self.entries.popitem(last=False)
            if isinstance(entry, Text):
                lost += await self._pay_text(key, entry)
            else:
                self._ways.send(self._session_id, entry)
        return lost

    async def _pay_text(self, key: Key, owed: Text) -> int:
        """Send what is owed of a part once it can be read; the number of characters left out."""
        chunk = owed.chunk
        text, lost = await self._read(key, owed)
        for update in updates.chunks(
            Chunk(
                chunk.owner, chunk.message_id, chunk.kind, text, chunk.retry_of, True,
                chunk.ordinal, owed.start,
            )
        ):  # fmt: skip
            self._ways.send(self._session_id, update)
        return lost

    async def _read(self, key: Key, owed: Text) -> tuple[str, int]:
        """What is owed of a part, what came meanwhile included, and how much is missing."""
        attempts = 0
        longest = 0
        end = owed.end
        while True:
            full = await self._part(owed.chunk)
            later = self.entries.pop(key, None)
            if isinstance(later, Text):
                end = later.end
            if len(full) >= end:
                return full[owed.start : end], 0
            attempts = attempts + 1 if self.turn_is_over and len(full) <= longest else 0
            longest = max(longest, len(full))
            # Its turn is over and the server has no more of it: a server that was killed.
            if attempts >= ATTEMPTS:
                missing = end - max(len(full), owed.start)
                logger.warning("%d characters of %s cannot be read", missing, key.ident)
                return full[owed.start :], missing
            await self._ways.sleep(PAUSE)

    async def _part(self, chunk: Chunk) -> str:
        try:
            row = await self._ways.fetch(self._session_id, chunk.message_id)
        except (UpstreamError, ValueError) as error:
            logger.info("a text that is owed cannot be read yet: %s", error)
            return ""
        if not isinstance(row, AssistantRow):
            return ""
        kind = TextPart if chunk.kind == "text" else ReasoningPart
        parts = [part for part in row.content if isinstance(part, kind)]
        return parts[chunk.ordinal].text if chunk.ordinal < len(parts) else ""
