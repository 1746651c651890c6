"""How often each limit was hit and each oddity met, for whoever looks after the adapter."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from itertools import chain
from types import MappingProxyType

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
        self._omitted: dict[Bound, int] = {}

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

    def left_out(self, omitted: Mapping[str, int]) -> None:
        """Count each of these limits once, by their names, and what it kept from a client."""
        for name, amount in omitted.items():
            bound = Bound(name)
            self.hit(bound)
            self._omitted[bound] = self._omitted.get(bound, 0) + amount

    @property
    def hits(self) -> Mapping[Bound | Oddity, int]:
        """How often each was met."""
        return MappingProxyType(self._hits)

    @property
    def omitted(self) -> Mapping[Bound, int]:
        """Characters, or things, that each limit kept from clients, as `Omitted.add` counts."""
        return MappingProxyType(self._omitted)

    def __getitem__(self, what: Bound | Oddity) -> int:
        return self._hits[what]

    def log(self, more: Mapping[str, int]) -> None:
        """One line at `info` with everything that was counted, and with `more`."""
        counts = {what.value: times for what, times in self._hits.items()} | dict(more)
        met = [f"{name} {times}" for name, times in counts.items() if times]
        logger.info("counted: %s", ", ".join(met) or "nothing")
