"""How often something may happen."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable


class Pace:
    """At most `times` in any `seconds` of `clock`; remembers no more than that."""

    def __init__(self, times: int, seconds: float, clock: Callable[[], float]) -> None:
        self._times = times
        self._seconds = seconds
        self._clock = clock
        self._taken: deque[float] = deque()

    def take(self) -> bool:
        """Whether it may happen now; if so it counts as happened."""
        now = self._clock()
        while self._taken and now - self._taken[0] >= self._seconds:
            self._taken.popleft()
        if len(self._taken) >= self._times:
            return False
        self._taken.append(now)
        return True
