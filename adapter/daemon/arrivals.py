"""Those who have come and said nothing so far: who has to leave when there are too many. Pure."""

from __future__ import annotations

from collections import Counter
from typing import Generic, TypeVar

from adapter.daemon.hello import Credentials

CallerT = TypeVar("CallerT")


class Arrivals(Generic[CallerT]):
    """In the order in which they came."""

    def __init__(self) -> None:
        self._waiting: dict[CallerT, Credentials] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, caller: CallerT, who: Credentials) -> None:
        self._waiting[caller] = who

    def discard(self, caller: CallerT) -> None:
        self._waiting.pop(caller, None)

    def crowding(self) -> CallerT:
        """The first of the process that has most, of the user who has most; ValueError if empty.

        So nobody keeps others out, however many he sends and however often.
        """
        users = Counter(who.uid for who in self._waiting.values())
        processes = Counter(self._waiting.values())
        # Of several that have as many, `max` takes the one that came first.
        return max(
            self._waiting,
            key=lambda caller: (users[self._waiting[caller].uid], processes[self._waiting[caller]]),
        )
