"""What a client that does not read is still owed, kept without its text.

lifecycle.md, "A client that does not read": past the bound of a connection's outbox, text is kept
as a reference (message, part, from, to) and fetched from the server when its turn comes; tools and
usage keep the latest value per key; notices are kept all. The order of first sight is kept.
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
# A part that is still streamed cannot be read yet; it is asked for again after this many seconds,
# and given up after so many attempts without a change once its turn is over.
PAUSE: Final = 0.25
ATTEMPTS: Final = 8


@dataclass(frozen=True, slots=True)
class Text:
    """Characters `start` to `end` of a part, to be read when the client takes them."""

    chunk: Chunk
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Key:
    """What replaces what: an entry takes the place of an earlier one with the same key."""

    session_id: str
    name: str
    ident: str


def key_of(session_id: str, update: Json, serial: int) -> Key:
    """The key of an update that is no text."""
    match update.get("sessionUpdate"):
        case "tool_call" | "tool_call_update":
            return Key(session_id, "tool", str(update.get("toolCallId")))
        case "notice" | "session_info_update":
            return Key(session_id, "notice", str(serial))
        case name:
            return Key(session_id, str(name), "")


class Backlog:
    """One connection's. `send` queues an update on the outbox; `fetch` reads a message's row."""

    def __init__(
        self,
        send: Callable[[str, Json], None],
        fetch: Callable[[str, str], Awaitable[object]],
        relaxed: Callable[[], Awaitable[None]],
        give_up: Callable[[], None],
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self._send = send
        self._fetch = fetch
        self._relaxed = relaxed
        self._give_up = give_up
        self._sleep = sleep
        self._entries: OrderedDict[Key, Text | Json] = OrderedDict()
        self._serial = 0
        self._drain: asyncio.Task[None] | None = None
        self._over: set[str] = set()
        self._closed = False
        self.left_out = 0

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def busy(self) -> bool:
        """Whether something is owed; what comes later must then go behind it."""
        return self._drain is not None

    def owe_text(self, session_id: str, chunk: Chunk) -> None:
        """Keep a reference to the chunk's text, joined to what is owed of the same part."""
        key = Key(session_id, chunk.kind, f"{chunk.message_id}/{chunk.ordinal}")
        end = chunk.start + len(chunk.text)
        known = self._entries.get(key)
        start = known.start if isinstance(known, Text) else chunk.start
        bare = Chunk(
            chunk.owner, chunk.message_id, chunk.kind, "", chunk.retry_of, True, chunk.ordinal
        )
        self._put(key, Text(bare, start, end))

    def owe(self, session_id: str, update: Json) -> None:
        """Keep an update, in the place of an earlier one that it replaces."""
        self._serial += 1
        key = key_of(session_id, update, self._serial)
        known = self._entries.get(key)
        if isinstance(known, dict) and known.get("sessionUpdate") == "tool_call":
            update = {**known, **update, "sessionUpdate": "tool_call"}
        self._put(key, update)

    async def drained(self, session_id: str) -> None:
        """Wait until nothing is owed: the answer of a turn follows all its updates."""
        if self._drain is None:
            return
        self._over.add(session_id)
        try:
            await asyncio.wait({self._drain})
        finally:
            self._over.discard(session_id)

    async def aclose(self) -> None:
        """The client is gone: nothing is owed any more."""
        self._closed = True
        self._entries.clear()
        if self._drain is not None:
            self._drain.cancel()
            await asyncio.wait({self._drain})
            self._drain = None

    def _put(self, key: Key, entry: Text | Json) -> None:
        if self._closed:
            return
        self._entries[key] = entry
        if len(self._entries) > ENTRIES:
            logger.warning("a client that does not read is owed too much; it counts as gone")
            self._entries.clear()
            self._closed = True
            self._give_up()
        elif self._drain is None:
            self._drain = asyncio.create_task(self._pay(), name="backlog")

    async def _pay(self) -> None:
        try:
            while self._entries:
                await self._relaxed()
                key, entry = self._entries.popitem(last=False)
                if isinstance(entry, Text):
                    await self._pay_text(key, entry)
                else:
                    self._send(key.session_id, entry)
        finally:
            self._drain = None

    async def _pay_text(self, key: Key, owed: Text) -> None:
        """Send what can be read of a part; what cannot yet goes back to the head of the queue."""
        text = await self._read(key, owed)
        chunk = owed.chunk
        for update in updates.chunks(
            Chunk(
                chunk.owner, chunk.message_id, chunk.kind, text, chunk.retry_of, True,
                chunk.ordinal, owed.start,
            )
        ):  # fmt: skip
            self._send(key.session_id, update)

    async def _read(self, key: Key, owed: Text) -> str:
        attempts = 0
        while True:
            full = await self._part(key.session_id, owed.chunk)
            later = self._entries.pop(key, None)
            if isinstance(later, Text):
                owed = Text(owed.chunk, owed.start, later.end)
            if len(full) >= owed.end:
                return full[owed.start : owed.end]
            # Its turn is over and the server has no more of it: a server that was killed.
            attempts = attempts + 1 if key.session_id in self._over else 0
            if attempts >= ATTEMPTS:
                missing = owed.end - max(len(full), owed.start)
                self.left_out += missing
                logger.warning("%d characters of %s cannot be read", missing, key.ident)
                return full[owed.start :]
            await self._sleep(PAUSE)

    async def _part(self, session_id: str, chunk: Chunk) -> str:
        try:
            row = await self._fetch(session_id, chunk.message_id)
        except UpstreamError as error:
            logger.info("a text that is owed cannot be read yet: %s", error)
            return ""
        if not isinstance(row, AssistantRow):
            return ""
        kind = TextPart if chunk.kind == "text" else ReasoningPart
        parts = [part for part in row.content if isinstance(part, kind)]
        return parts[chunk.ordinal].text if chunk.ordinal < len(parts) else ""
