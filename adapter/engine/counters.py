"""How often each limit was hit and each oddity met, for whoever looks after the adapter."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from itertools import chain

from adapter.core.values import Oddity
from adapter.limits import Bound

logger = logging.getLogger(__name__)


class Counters:
    """One engine's. Every number only grows.

    The first hit of a limit is a warning in the log. What is part of a day's work, a session that
    is put aside for one, and what is no limit are told at the level `info`.
    """

    def __init__(self) -> None:
        self._hits: dict[Bound | Oddity, int] = dict.fromkeys(chain(Bound, Oddity), 0)

    def hit(self, what: Bound | Oddity, times: int = 1) -> None:
        """Count that a limit was hit, or that something odd was met."""
        if times and not self._hits[what]:
            if isinstance(what, Oddity):
                logger.info("first of %s; from now on they are only counted", what.value)
            else:
                level = logging.INFO if what is Bound.IDLE_SECONDS else logging.WARNING
                told = "the limit %s was hit; from now on that is only counted"
                logger.log(level, told, what.value)
        self._hits[what] += times

    def hit_all(self, names: Iterable[str]) -> None:
        """Count each of these limits once, by their names."""
        for name in names:
            self.hit(Bound(name))

    def __getitem__(self, what: Bound | Oddity) -> int:
        return self._hits[what]

    def log(self, more: Mapping[str, int]) -> None:
        """One line at `info` with everything that was counted, and with `more`."""
        counts = {what.value: times for what, times in self._hits.items()} | dict(more)
        met = [f"{name} {times}" for name, times in counts.items() if times]
        logger.info("counted: %s", ", ".join(met) or "nothing")
