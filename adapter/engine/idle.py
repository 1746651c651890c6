"""Which open sessions are in use, so that one that is not can be put aside (S3-L4).

An attachment that nobody uses costs a hub, a place in the feed's filter and what the hub
remembers. It is put aside after a while, or when the engine is full; its connection opens it again
by itself at the next request.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from adapter.engine.counters import Counters
from adapter.limits import Bound, Limits


@dataclass(slots=True, eq=False)
class Place:
    """One attachment. `resting` says that its session has nothing in flight."""

    resting: Callable[[], bool]
    put_aside: Callable[[], None]
    used_at: float
    requests: int = 0


class Places:
    """One engine's attachments by owner, the one that was used last at the end.

    At most `limits.sessions_per_connection` for each connection.
    """

    def __init__(self, limits: Limits, clock: Callable[[], float], counters: Counters) -> None:
        self._limits = limits
        self._clock = clock
        self._counters = counters
        self._places: OrderedDict[int, Place] = OrderedDict()
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._places)

    def go_by(self, limits: Limits) -> None:
        """Other limits count from now on, also for what has been idle for a while."""
        self._limits = limits
        self.close()
        if self._places:
            self._arm()

    def add(self, owner: int, resting: Callable[[], bool], put_aside: Callable[[], None]) -> None:
        """The attachment is in use now; one that is known keeps its requests."""
        if owner not in self._places:
            self._places[owner] = Place(resting, put_aside, self._clock())
        self._used(owner)
        if self._timer is None:
            self._arm()

    def discard(self, owner: int) -> None:
        """The attachment is gone, or another thing keeps it."""
        self._places.pop(owner, None)

    @contextmanager
    def request(self, owner: int | None) -> Iterator[None]:
        """A request for the attachment is served: it is not idle until that is over."""
        place = self._places.get(owner) if owner is not None else None
        if owner is None or place is None:
            yield
            return
        place.requests += 1
        try:
            yield
        finally:
            place.requests -= 1
            self._used(owner)

    @property
    def could_make_room(self) -> bool:
        """Whether an attachment is idle."""
        return any(map(self._is_idle, self._places.values()))

    def make_room(self) -> bool:
        """Put aside the attachment that is idle longest; False if each is in use."""
        for place in list(self._places.values()):
            if self._is_idle(place):
                self._put_aside(place)
                return True
        return False

    def close(self) -> None:
        """End the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _sweep(self) -> None:
        """Put aside whatever was idle for long enough."""
        self._timer = None
        latest = self._clock() - self._limits.idle_seconds
        for place in list(self._places.values()):
            if place.used_at > latest:
                break
            if self._is_idle(place):
                self._put_aside(place)
        if self._places:
            self._arm()

    def _put_aside(self, place: Place) -> None:
        self._counters.hit(Bound.IDLE_SECONDS)
        place.put_aside()

    @staticmethod
    def _is_idle(place: Place) -> bool:
        return not place.requests and place.resting()

    def _used(self, owner: int) -> None:
        place = self._places.get(owner)
        if place is not None:
            place.used_at = self._clock()
            self._places.move_to_end(owner)

    def _arm(self) -> None:
        """Look again when the first can be due; one that is busy then is looked at later."""
        idle = self._limits.idle_seconds
        first = next(iter(self._places.values()))
        due = first.used_at + idle - self._clock()
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(max(due, idle / 8), self._sweep)
