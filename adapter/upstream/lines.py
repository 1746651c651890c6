"""The byte stream between httpx and httpx-sse: only lines that matter reach the JSON decoder.

The feed carries the events of every session of the server, single lines of any size (a prompt's
echo holds its attachments), and heartbeats that httpx-sse hides. `Splitter` cuts bytes into lines
in constant memory; `EventLines` notes when bytes came, passes the lines that are ours, one at a
time, and counts the others.
Workaround "line filter and limit before the decoder".
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Final

import httpx

from adapter.upstream.watch import Watch
from contract.events import SESSIONLESS_TYPES, InboxEnqueued

LINE_LIMIT: Final = 4 * 1024 * 1024
# What is kept of a line over the limit, to tell whose it is.
HEAD: Final = 4096
# The event's type stands behind its id and time alone.
TYPE_WITHIN: Final = 512

_TYPE: Final = re.compile(rb'"type"\s*:\s*"([^"\\]*)"')
_SESSIONLESS: Final = frozenset(name.encode() for name in SESSIONLESS_TYPES)
_ECHO: Final = InboxEnqueued.type.encode()


class OversizeLine(Exception):
    """A line over the limit that may be an event of a session of ours: a gap."""


@dataclass(frozen=True)
class Oversize:
    """A line over the limit, reported once, as soon as it is; `head` is its beginning."""

    head: bytes


@dataclass
class FeedCounters:
    """What went by since the feed was made; every number only grows."""

    connections: int = 0
    losses: int = 0
    heartbeats: int = 0
    events: int = 0
    skipped: int = 0
    oversize: int = 0
    repeated: int = 0
    unknown: int = 0
    malformed: int = 0


class Splitter:
    """Bytes to lines at 0x0A, without it; at most `limit` + one chunk of bytes are held."""

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self._limit = limit
        self._pending = bytearray()
        self._dropping = False

    def feed(self, chunk: bytes) -> Iterator[bytes | Oversize]:
        """The lines that `chunk` completes. Exhaust it before the next call."""
        *ends, rest = chunk.split(b"\n")
        for piece in ends:
            line = self._end(piece)
            if line is not None:
                yield line
        if rest and not self._dropping:
            self._pending += rest
            if len(self._pending) > self._limit:
                self._dropping = True
                yield self._oversize()

    def _end(self, piece: bytes) -> bytes | Oversize | None:
        if self._dropping:
            self._dropping = False
            return None
        if not self._pending:
            return piece if len(piece) <= self._limit else Oversize(piece[:HEAD])
        self._pending += piece
        if len(self._pending) > self._limit:
            return self._oversize()
        line = bytes(self._pending)
        self._pending = bytearray()
        return line

    def _oversize(self) -> Oversize:
        head = bytes(self._pending[:HEAD])
        self._pending = bytearray()
        return Oversize(head)


class EventLines(httpx.AsyncByteStream):
    """Yields `data: …` lines, each with the blank line that ends its event.

    One line a time, so that a session that the engine comes to watch because of one event is
    watched for the next. `last_byte` is the time of the last chunk. Raises `OversizeLine`.
    """

    def __init__(
        self,
        source: AsyncIterable[bytes],
        watch: Watch,
        counters: FeedCounters,
        clock: Callable[[], float],
        *,
        limit: int = LINE_LIMIT,
    ) -> None:
        self._source = source
        self._watch = watch
        self._counters = counters
        self._clock = clock
        self._splitter = Splitter(limit)
        self.last_byte = clock()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._source:
            self.last_byte = self._clock()
            for line in self._splitter.feed(chunk):
                if isinstance(line, Oversize):
                    self._drop(line.head)
                elif self._wanted(line):
                    yield line + b"\n\n"

    def _wanted(self, line: bytes) -> bool:
        if not line.startswith(b"data:"):
            self._counters.heartbeats += line.startswith(b":")
            return False
        if self._watch.mentions(line) or _type_of(line) in _SESSIONLESS:
            return True
        self._counters.skipped += 1
        return False

    def _drop(self, head: bytes) -> None:
        self._counters.oversize += 1
        if _type_of(head) == _ECHO:
            return
        if self._watch.mentions(head) or self._watch.unsure(head):
            raise OversizeLine


def _type_of(line: bytes) -> bytes:
    found = _TYPE.search(line, 0, TYPE_WITHIN)
    return b"" if found is None else found.group(1)
