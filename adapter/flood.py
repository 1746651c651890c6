"""How often one place in the code may log: a client can cause some lines as often as it likes."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

LINES: Final = 300
SECONDS: Final = 60.0


class Fate(Enum):
    """What becomes of a line."""

    TOLD = auto()
    LAST = auto()
    """Told, and the next ones of its place are not."""
    LEFT_OUT = auto()


@dataclass(slots=True)
class _Window:
    since: float
    lines: int = 0


class Flood:
    """`lines` of one place in `seconds` from the first of them on; `clock` is monotonic.

    The line of a turn, which has fields, is owed to each turn, and who asks for `debug` asks for
    all. The table has an entry for each place that logs, so the code bounds it.
    """

    def __init__(
        self, clock: Callable[[], float], lines: int = LINES, seconds: float = SECONDS
    ) -> None:
        self._clock = clock
        self._lines = lines
        self._seconds = seconds
        self._windows: dict[tuple[str, int], _Window] = {}

    def take(self, record: logging.LogRecord) -> Fate:
        """Count a line."""
        if hasattr(record, "fields") or logging.getLogger().isEnabledFor(logging.DEBUG):
            return Fate.TOLD
        now, place = self._clock(), (record.pathname, record.lineno)
        window = self._windows.get(place)
        if window is None or now - window.since >= self._seconds:
            window = self._windows[place] = _Window(now)
        window.lines += 1
        if window.lines < self._lines:
            return Fate.TOLD
        return Fate.LAST if window.lines == self._lines else Fate.LEFT_OUT
