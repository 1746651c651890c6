"""What a session has come across that is no limit and is still worth a count."""

from __future__ import annotations

from typing import NamedTuple

from adapter.core.state import SessionState
from adapter.core.values import Counted, Oddity


class Seen(NamedTuple):
    """How often, so far."""

    divergences: int
    evicted: int


def seen(state: SessionState) -> Seen:
    ambience = state.ambience
    divergences = (
        state.offsets.divergences + state.beside.divergences + ambience.offsets.divergences
    )
    return Seen(divergences, ambience.evicted)


def news(before: Seen, after: Seen) -> list[Counted]:
    """What has come since `before`."""
    if before == after:
        return []
    grown = {
        Oddity.DIVERGENCES: after.divergences - before.divergences,
        Oddity.RUNS_EVICTED: after.evicted - before.evicted,
    }
    return [Counted(what, times) for what, times in grown.items() if times]
