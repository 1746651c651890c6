"""What one session of a client is owed, in the order of first sight, and how it is paid."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final

from adapter.acp import updates
from adapter.core.offsets import Part
from adapter.core.values import Chunk, OfChild, OfRun
from adapter.core.weights import size_of
from adapter.limits import DEFAULTS, Limits
from adapter.upstream.errors import UpstreamError
from contract.reads import AssistantRow, ReasoningPart, TextPart
from contract.words import counted

logger = logging.getLogger(__name__)

Json = dict[str, object]

# A part that is still streamed cannot be read yet; it is asked for again after this many seconds.
# Once its turn is over it is given up after so many reads in a row that had no more of it.
PAUSE: Final = 0.25
ATTEMPTS: Final = 8
# Work that the client did not prompt has no turn that is over: its parts have ten minutes.
AMBIENT_ATTEMPTS: Final = 2400


# Characters of one held session that are kept and need not be read again.
KEPT: Final = 256 * 1024


@dataclass(frozen=True, slots=True)
class Ways:
    """What a queue needs of its connection and of the server."""

    send: Callable[[str, Json], None]
    fetch: Callable[[str, str], Awaitable[object]]
    relaxed: Callable[[], Awaitable[None]]
    sleep: Callable[[float], Awaitable[None]]
    limits: Limits = DEFAULTS


@dataclass(frozen=True, slots=True)
class Text:
    """Characters `start` to `end` of a part, to be read when the client takes them.

    `kept` are these characters themselves, None where they have to be read.
    """

    chunk: Chunk
    start: int
    end: int
    kept: str | None = None

    def after(self, shown: int) -> Text | None:
        """What is left of it for a client that has `shown` characters of the part."""
        if shown >= self.end:
            return None
        skipped = max(shown - self.start, 0)
        kept = None if self.kept is None else self.kept[skipped:]
        return Text(self.chunk, self.start + skipped, self.end, kept)


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
        case "user_message_chunk":
            # Prompts of others; each piece of a long one is an update of its own.
            return Key("prompt", str(serial))
        case name:
            return Key(str(name), "")


@dataclass(frozen=True, slots=True)
class Shown:
    """What a replay showed: characters of each part, tools (True for one that is over), prompts."""

    texts: Mapping[Part, int]
    tools: Mapping[str, bool]
    prompts: Collection[str] = ()


class Queue:
    """What one session is owed, in the order of first sight."""

    def __init__(self, session_id: str, ways: Ways) -> None:
        self._session_id = session_id
        self._ways = ways
        self.entries: OrderedDict[Key, Text | Json] = OrderedDict()
        self.size = 0
        """Characters of the texts that are kept in them."""
        self.turn_is_over = False
        # Characters that may still be kept; none for a client that does not read.
        self._room = 0

    def keep(self) -> None:
        """What comes now may be kept: it is held up by a load, not by the client."""
        self._room = KEPT

    def drop_shown(self) -> None:
        """The rows are about to be shown, and with them the texts and tools."""
        for key, entry in list(self.entries.items()):
            if isinstance(entry, Text) or key.name in ("tool", "prompt"):
                self._drop(key)

    def skip(self, shown: Shown) -> None:
        """Leave out what a replay has shown."""
        for key, entry in list(self.entries.items()):
            left: Text | Json | None
            if isinstance(entry, Text):
                chunk = entry.chunk
                part = Part(chunk.message_id, chunk.kind, chunk.ordinal)
                left = entry.after(shown.texts.get(part, 0))
            elif key.name == "tool" and key.ident in shown.tools:
                is_over = shown.tools[key.ident]
                left = None if is_over else {**entry, "sessionUpdate": "tool_call_update"}
            elif key.name == "prompt" and entry.get("messageId") in shown.prompts:
                left = None
            else:
                continue
            if left is None:
                self._drop(key)
            else:
                self._set(key, left)

    def put_text(self, chunk: Chunk) -> None:
        key = Key(chunk.kind, f"{chunk.message_id}/{chunk.ordinal}")
        end = chunk.start + len(chunk.text)
        known = self.entries.get(key)
        before = known if isinstance(known, Text) else Text(chunk, chunk.start, chunk.start, "")
        bare = replace(chunk, text="", start=0)
        kept = self._keep(before.kept, chunk.text)
        self._set(key, Text(bare, before.start, end, kept))

    def _keep(self, before: str | None, text: str) -> str | None:
        if before is None or len(text) > self._room:
            return None
        self._room -= len(text)
        return before + text

    def clear(self) -> None:
        """Nothing is owed any more."""
        self.entries.clear()
        self.size = 0

    def put(self, update: Json, serial: int) -> None:
        key = key_of(update, serial)
        known = self.entries.get(key)
        if isinstance(known, dict) and key.name == "tool":
            # An update of a call tells what is new of it, so the first word of it stays.
            update = {**known, **update, "sessionUpdate": known["sessionUpdate"]}
        self._set(key, update)

    async def pay(self) -> int:
        """Send all of it as the client takes it; the number of characters that were lost.

        Whatever is not sent when this is cancelled is owed as before.
        """
        lost = 0
        while self.entries:
            await self._ways.relaxed()
            if not self.entries:
                break  # closed meanwhile
            key, entry = next(iter(self.entries.items()))
            if isinstance(entry, Text) and entry.kept is None:
                lost += await self._pay_text(key)
                continue
            self._drop(key)
            if isinstance(entry, Text):
                self._send_text(replace(entry.chunk, text=entry.kept or ""))
            else:
                self._ways.send(self._session_id, entry)
        return lost

    def _set(self, key: Key, entry: Text | Json) -> None:
        known = self.entries.get(key)
        self.size += _size(entry) - (_size(known) if known is not None else 0)
        self.entries[key] = entry

    def _drop(self, key: Key) -> None:
        self.size -= _size(self.entries.pop(key))

    async def _pay_text(self, key: Key) -> int:
        """Send what is owed of a part once it can be read, what comes meanwhile included.

        The number of characters that the server does not have.
        """
        attempts = 0
        longest = 0
        while isinstance(owed := self.entries.get(key), Text):
            full = await self._part(owed.chunk)
            owed = self.entries.get(key)
            if not isinstance(owed, Text):
                break
            if len(full) >= owed.end:
                self._pay_read(key, owed, full[owed.start : owed.end])
                return 0
            ambient = isinstance(owed.chunk.origin, OfRun)
            no_more = len(full) <= longest
            attempts = attempts + 1 if no_more and (self.turn_is_over or ambient) else 0
            longest = max(longest, len(full))
            # Its turn is over and the server has no more of it: a server that was killed.
            if attempts >= (ATTEMPTS if self.turn_is_over else AMBIENT_ATTEMPTS):
                missing = owed.end - max(len(full), owed.start)
                gone = counted(missing, "character")
                logger.warning("%s of %s cannot be read", gone, key.ident)
                self._pay_read(key, owed, full[owed.start :])
                return missing
            await self._ways.sleep(PAUSE)
        # Dropped meanwhile: the client is gone.
        return 0

    def _pay_read(self, key: Key, owed: Text, text: str) -> None:
        self._drop(key)
        self._send_text(replace(owed.chunk, text=text, recovered=True))

    def _send_text(self, chunk: Chunk) -> None:
        for update in updates.chunks(chunk, self._ways.limits):
            self._ways.send(self._session_id, update)

    async def _part(self, chunk: Chunk) -> str:
        child = chunk.origin
        session_id = child.session_id if isinstance(child, OfChild) else self._session_id
        try:
            row = await self._ways.fetch(session_id, chunk.message_id)
        except (UpstreamError, ValueError) as error:
            logger.info("a text that is owed cannot be read yet: %s", error)
            return ""
        if not isinstance(row, AssistantRow):
            return ""
        kind = TextPart if chunk.kind == "text" else ReasoningPart
        parts = [part for part in row.content if isinstance(part, kind)]
        return parts[chunk.ordinal].text if chunk.ordinal < len(parts) else ""


def _size(entry: Text | Json) -> int:
    return len(entry.kept or "") if isinstance(entry, Text) else size_of(entry)
