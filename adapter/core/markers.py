"""Compactions under turns in progress, told to their clients: started, and how each ended, once.

Events of an automatic compaction carry no id, so each turn counts its own: what the rows of a gap
show beyond that count is news.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from adapter.core.state import SessionState, Turn
from adapter.core.values import Compaction, Outcome, Output, Stop
from contract import events as ev
from contract.reads import AnyRow, CompactionRow
from contract.shapes import ServerError

End = Literal["completed", "failed", "cancelled"]

ABORTED: Final = "aborted"


def started(state: SessionState, event: ev.CompactionStarted) -> list[Output]:
    """A compaction begins under every turn that runs."""
    return [
        output
        for turn in _concerned(state)
        for output in open_one(turn, event.input_id, event.reason)
    ]


def over(state: SessionState, event: ev.CompactionEnded | ev.CompactionFailed) -> list[Output]:
    """The compaction in progress has ended."""
    error = event.error if isinstance(event, ev.CompactionFailed) else None
    return [output for turn in _concerned(state) for output in _end(turn, event.reason, "", error)]


def open_one(turn: Turn, item_id: str | None, reason: str) -> list[Output]:
    """Tell of a compaction in progress, unless it is told already."""
    if turn.summary is not None:
        return []
    turn.summary = item_id or f"{turn.id}-{turn.summaries + 1}"
    return [Compaction(turn.owner, turn.summary, "in_progress", reason)]


def restore(turn: Turn, rows: Sequence[AnyRow], *, active: bool) -> list[Output]:
    """What the rows of a turn show of its compactions and its client lacks."""
    shown = [row for row in rows if isinstance(row, CompactionRow)]
    out: list[Output] = []
    for row in shown[turn.summaries :]:
        item_id = row.id if row.reason == "manual" else None
        if row.status != "running":
            out.extend(_end(turn, row.reason, item_id or "", row.error))
        elif active:
            out.extend(open_one(turn, item_id, row.reason))
    return out


def close(turn: Turn, outcome: Outcome) -> list[Output]:
    """The turn is over, and what became of the compaction in progress was not heard."""
    if turn.summary is None:
        return []
    status: End = "cancelled" if outcome.stop is Stop.CANCELLED else "failed"
    told = Compaction(turn.owner, turn.summary, status, error="The turn ended before it did.")
    turn.summary = None
    return [told]


def _concerned(state: SessionState) -> list[Turn]:
    turns = [state.turns[key] for key in state.running]
    own = state.compacting()
    return turns if own is None else [*turns, own]


def _end(turn: Turn, reason: str, item_id: str, error: ServerError | None) -> list[Output]:
    turn.summaries += 1
    told = turn.summary or item_id or f"{turn.id}-{turn.summaries}"
    turn.summary = None
    status: End = "completed"
    if error is not None:
        status = "cancelled" if error.type == ABORTED else "failed"
    return [Compaction(turn.owner, told, status, reason, error.message if error else None)]
