"""What the clients of one engine have sent and is not done with: bytes, bounded for all of them.

Each client's own bounds would let 256 of them hold 256 times as much. Of the two halves, one is for
lines without an end, one for requests without an answer.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Final

from adapter.limits import DEFAULTS

SHARES: Final = DEFAULTS.connections
"""Such a part of the half for requests each connection has for itself, whatever others hold."""


class Inbound:
    """The budget of one engine, `limit` bytes for each half; it may be changed at any time."""

    def __init__(self, limit: int = DEFAULTS.inbound_bytes) -> None:
        self.limit = limit
        self._lines: dict[Unfinished, int] = {}
        self._unfinished = 0
        self._unanswered = 0

    @property
    def unfinished(self) -> int:
        """Bytes of lines that have no end yet."""
        return self._unfinished

    @property
    def unanswered(self) -> int:
        """Bytes of requests that have no answer yet."""
        return self._unanswered

    def _hold(self, line: Unfinished, size: int) -> None:
        self._unfinished += size - self._lines.pop(line, 0)
        if size:
            self._lines[line] = size
        while self._unfinished > self.limit:
            longest = max(self._lines, key=self._lines.__getitem__)
            self._hold(longest, 0)
            longest.give_way()

    def _take(self, size: int, own: int) -> bool:
        own_share = own + size <= self.limit // SHARES
        if not own_share and self._unanswered + size > self.limit:
            return False
        self._unanswered += size
        return True

    def _give(self, size: int) -> None:
        self._unanswered -= size


class Unfinished:
    """One connection's line without an end. At the limit the longest of all gives way.

    So whoever sends short lines is never disturbed. `give_way` is called when it is this one.
    """

    def __init__(self, inbound: Inbound, give_way: Callable[[], None]) -> None:
        self._inbound = inbound
        self.give_way = give_way

    @property
    def limit(self) -> int:
        return self._inbound.limit

    def hold(self, size: int) -> None:
        """The line has `size` bytes now; 0 if there is none."""
        self._inbound._hold(self, size)


class Unanswered:
    """One connection's requests without an answer."""

    def __init__(self, inbound: Inbound) -> None:
        self._inbound = inbound
        self._size = 0

    def take(self, size: int) -> bool:
        """Whether there is room for a request of so many bytes; it is taken then."""
        if not self._inbound._take(size, self._size):
            return False
        self._size += size
        return True

    def give(self, size: int) -> None:
        """A request that was taken is done with."""
        self._size -= size
        self._inbound._give(size)


def weight(value: object) -> int:
    """Bytes that a JSON value takes in memory: up to four times those of its line, or many more."""
    total, left = 0, [value]
    while left:
        one = left.pop()
        total += sys.getsizeof(one)
        if isinstance(one, dict):
            total += sum(map(sys.getsizeof, one))
            left.extend(one.values())
        elif isinstance(one, list):
            left.extend(one)
    return total
