"""The end of each turn as it is told: one line in the log, and the observer (row O-19)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from adapter.core.values import Outcome
from adapter.engine.observer import Observer, Settlement

logger = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class _Times:
    began: float
    first: float | None = None


class Settlements:
    """One session's; an owner has one turn at a time, so the tables are as large as it has owners.

    Times are those of `clock`, in seconds.
    """

    def __init__(self, session_id: str, clock: Callable[[], float], observer: Observer) -> None:
        self._session_id = session_id
        self._clock = clock
        self._observer = observer
        self._times: dict[int, _Times] = {}

    @property
    def oldest(self) -> float | None:
        """When the oldest turn in flight began; None without one."""
        return min((times.began for times in self._times.values()), default=None)

    def began(self, owner: int) -> None:
        self._times[owner] = _Times(self._clock())

    def shown(self, owner: int) -> None:
        """Text of the owner's turn goes to its client."""
        times = self._times.get(owner)
        if times is not None and times.first is None:
            times.first = self._clock()

    def settled(self, owner: int, outcome: Outcome, client: str = "") -> None:
        """The turn is over, and its answer known. `client` is what the log calls whose it was."""
        now = self._clock()
        times = self._times.pop(owner, _Times(now))
        first = times.first - times.began if times.first is not None else None
        settlement = Settlement(self._session_id, outcome, now - times.began, first)
        how = outcome.stop.value if outcome.stop is not None else outcome.reason
        logger.info(
            "turn %s: %s in %.2f s (first text %s, gaps %d, recovered %d)",
            outcome.message_id,
            how,
            settlement.seconds,
            f"after {first:.2f} s" if first is not None else "never",
            outcome.gaps,
            outcome.recovered,
            extra={"fields": _fields(settlement, how, client)},
        )
        self._observer.settled(settlement)


def _fields(settlement: Settlement, how: str, client: str) -> dict[str, str | int | float]:
    """What a reader of the log finds a turn by (row O-17); seconds, and characters."""
    outcome, first = settlement.outcome, settlement.first_chunk
    shown = {"FIRST_CHUNK_SECONDS": round(first, 3)} if first is not None else {}
    return {
        "SESSION_ID": settlement.session_id,
        "PROMPT_ID": outcome.message_id,
        **({"CLIENT": client} if client else {}),
        "OUTCOME": how,
        "CODE": outcome.code,
        "SECONDS": round(settlement.seconds, 3),
        **shown,
        "GAPS": outcome.gaps,
        "RECOVERED": outcome.recovered,
    }
