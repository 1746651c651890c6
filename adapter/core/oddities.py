"""What a session has come across that is no limit and is still worth a count."""

from __future__ import annotations

from collections.abc import Mapping

from adapter.core.state import SessionState
from adapter.core.values import Counted, Oddity


def seen(state: SessionState) -> Mapping[Oddity, int]:
    """How often, so far."""
    tables = (state.offsets, state.beside, state.ambience.offsets)
    return {
        Oddity.DIVERGENCES: sum(table.divergences for table in tables),
        Oddity.RUNS_EVICTED: state.ambience.evicted,
    }


def news(before: Mapping[Oddity, int], after: Mapping[Oddity, int]) -> list[Counted]:
    """What has come since `before`."""
    grown = {what: count - before[what] for what, count in after.items()}
    return [Counted(what, times) for what, times in grown.items() if times]
