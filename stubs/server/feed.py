"""The event feed: subscribers, their bounded queues, and the cuts that a test asks for."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from stubs.server.wire import Ids, Json, dumps

HEARTBEAT: Final = b": heartbeat\n\n"


class End(Enum):
    """How a feed connection ends: a clean EOF, or a body that breaks off."""

    CLEAN = "clean"
    TORN = "torn"


@dataclass(slots=True)
class Cut:
    """End a connection after `after` more events, of `session` only if it is given.

    Tests count events as their client does: `server.connected` is not one of them.
    """

    after: int
    end: End = End.CLEAN
    session: str | None = None
    pattern: str | None = None

    def counts(self, event: Json) -> bool:
        """Whether the event brings the cut nearer."""
        data = event.get("data", {})
        if self.session is not None and data.get("sessionID") != self.session:
            return False
        return self.pattern is None or re.search(self.pattern, str(event.get("type"))) is not None


@dataclass(slots=True)
class Subscriber:
    """One connection. Its queue is bounded; past the bound it ends after what is queued."""

    bound: int
    lines: deque[bytes] = field(default_factory=deque)
    more: asyncio.Event = field(default_factory=asyncio.Event)
    end: End | None = None
    cut: Cut | None = None
    silent: bool = False

    def offer(self, event: Json, line: bytes) -> None:
        """Queue an event, unless the connection is at its end."""
        if self.end is not None or self.silent:
            return
        if len(self.lines) >= self.bound:
            self.close(End.CLEAN)
            return
        self.lines.append(line)
        self.more.set()
        if self.cut is not None and self.cut.counts(event):
            self.cut.after -= 1
            if self.cut.after <= 0:
                self.close(self.cut.end)

    def close(self, end: End) -> None:
        """End the connection after what is queued."""
        if self.end is None:
            self.end = end
        self.more.set()

    def take(self) -> bytes:
        """All queued bytes; empties the queue."""
        if self.end is None:
            self.more.clear()
        data = b"".join(self.lines)
        self.lines.clear()
        return data


class Feed:
    """All subscribers. `sent` counts events since the start."""

    def __init__(self, ids: Ids, bound: int) -> None:
        self._ids = ids
        self._bound = bound
        self.subscribers: list[Subscriber] = []
        self.silent = False
        self.next_cut: Cut | None = None
        self.sent = 0

    def subscribe(self) -> Subscriber:
        """A new connection; `server.connected` is its first line, in silence there is none."""
        subscriber = Subscriber(self._bound, silent=self.silent)
        if not self.silent:
            hello = {"id": self._ids.make("evt"), "type": "server.connected", "data": {}}
            subscriber.lines += (line_of(hello), HEARTBEAT)
            subscriber.more.set()
        if self.next_cut is not None:
            cut = self.next_cut
            subscriber.cut = Cut(cut.after, cut.end, cut.session, cut.pattern)
        self.subscribers.append(subscriber)
        return subscriber

    def leave(self, subscriber: Subscriber) -> None:
        """Forget a connection."""
        if subscriber in self.subscribers:
            self.subscribers.remove(subscriber)

    def publish(self, event: Json) -> None:
        """Send an event to every connection."""
        self.sent += 1
        line = line_of(event)
        for subscriber in list(self.subscribers):
            subscriber.offer(event, line)

    def publish_raw(self, line: bytes) -> None:
        """Send bytes as they are to every connection."""
        for subscriber in list(self.subscribers):
            subscriber.offer({}, line)

    def cut(self, cut: Cut, *, later: bool = False) -> None:
        """Cut each connection after so many events from now on; `later`: the next ones, too."""
        for subscriber in list(self.subscribers):
            subscriber.cut = Cut(cut.after, cut.end, cut.session, cut.pattern)
            if cut.after <= 0:
                subscriber.close(cut.end)
        self.next_cut = cut if later else None

    def close_all(self, end: End) -> None:
        """End every connection."""
        for subscriber in list(self.subscribers):
            subscriber.close(end)

    def hush(self, silent: bool) -> None:
        """From now on no byte to anyone, heartbeats included; or the end of that.

        Connections that were silenced stay dumb until they are given up or torn here.
        """
        self.silent = silent
        for subscriber in list(self.subscribers):
            if silent:
                subscriber.silent = True
            elif subscriber.silent:
                subscriber.close(End.TORN)


def line_of(event: Json) -> bytes:
    """An event as it is written."""
    return b"data: " + dumps(event) + b"\n\n"
