"""How often each limit was hit, for whoever looks after the adapter."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from adapter.limits import Bound

logger = logging.getLogger(__name__)


class Counters:
    """One engine's. Every number only grows; the first hit of a limit is a warning in the log."""

    def __init__(self) -> None:
        self._hits = dict.fromkeys(Bound, 0)

    def hit(self, bound: Bound, times: int = 1) -> None:
        """Count that a limit was hit."""
        if not self._hits[bound]:
            logger.warning("the limit %s was hit; from now on that is only counted", bound.value)
        self._hits[bound] += times

    def hit_all(self, names: Iterable[str]) -> None:
        """Count each of these limits once, by their names."""
        for name in names:
            self.hit(Bound(name))

    def __getitem__(self, bound: Bound) -> int:
        return self._hits[bound]

    def read(self) -> Mapping[str, int]:
        """Hits by the name of the limit, as they stand now."""
        return {bound.value: hits for bound, hits in self._hits.items()}
