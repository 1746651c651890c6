"""A turn that is a compaction: `/compact`.

It is an inbox item as a prompt is, and owns no message. Its end is `compaction.failed` of its own
id, or the `compaction.ended` after its start: that one tells no id, but a session has one
compaction at a time. An execution may go on with others, and succeeds after a failure too, so its
end says nothing; only an interrupt comes with the failure that tells of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from adapter.core import cancel, markers
from adapter.core.naming import rename
from adapter.core.reconcile import EMPTY, Judgement, Segment, Verdict
from adapter.core.settle import ended_elsewhere, server_failed, settle, stopped
from adapter.core.state import CancelStep, Loose, Phase, SessionState, Turn
from adapter.core.values import Arm, Notice, Outcome, Output, Snapshot, Stop
from contract import events as ev
from contract.reads import AnyRow, CompactionRow
from contract.shapes import ServerError

# A session without anything to sum up: nothing failed for its user.
NOTHING: Final = "compaction.unavailable"


def follow(state: SessionState, turn: Turn, item_id: str) -> list[Output]:
    """The server dropped our id: a compaction that waits already stands for it.

    One of ours settles both turns; one of somebody else becomes this turn's, and is never taken
    back by it.
    """
    if item_id in state.turns:
        turn.follows = item_id
        if turn.cancel is not CancelStep.NONE:
            return cancel.give_up(state, turn)
        return [Arm(f"ahead:{turn.id}", "ahead")]
    turn.borrowed = True
    return rename(state, turn, item_id)


def begin(state: SessionState, turn: Turn) -> list[Output]:
    """It was delivered, and runs at once."""
    if turn.phase is Phase.RUNNING:
        return []
    turn.pid = state.pid
    return start(turn) + (cancel.stop(state, turn) if turn.cancel is not CancelStep.NONE else [])


def start(turn: Turn) -> list[Output]:
    """The turn runs from here on."""
    turn.phase = Phase.RUNNING
    turn.admitted = True
    turn.failed_in_inbox = None
    return [Arm("quiet", "quiet"), Arm(f"longest:{turn.id}", "longest")]


def ended(state: SessionState, event: ev.CompactionEnded) -> list[Output]:
    """The summary stands."""
    turn = state.compacting()
    out = markers.over(state, event)
    return out + (_settle(state, turn, None) if turn is not None else [])


def failed(state: SessionState, event: ev.CompactionFailed) -> list[Output]:
    """There is no summary; the conversation is as it was."""
    turn = state.compacting()
    out = markers.over(state, event)
    if turn is None or event.input_id != turn.id:
        return out
    return out + _settle(state, turn, event.error)


def judge(turn: Turn, snapshot: Snapshot, pid: int) -> Judgement:
    """What the reads prove of it."""
    row = row_of(snapshot.rows, turn.id)
    if turn.id in snapshot.inbox:
        return Judgement(Verdict.QUEUED if snapshot.active else Verdict.PARKED, EMPTY)
    if row is None:
        if not snapshot.complete:
            return Judgement(Verdict.RUNNING if snapshot.active else Verdict.LOST, EMPTY)
        withdrawn = turn.cancel is CancelStep.WITHDRAWING
        return Judgement(Verdict.WITHDRAWN if withdrawn else Verdict.WITHDRAWN_ELSEWHERE, EMPTY)
    if row.status == "running":
        # Nothing ends a compaction that a dead server left behind but the next execution.
        if pid and snapshot.pid and snapshot.pid != pid:
            return Judgement(Verdict.RESTARTED, EMPTY)
        runs = Segment((), None, closed=False, compactions=(row,))
        return Judgement(Verdict.RUNNING if snapshot.active else Verdict.LOST, runs)
    return Judgement(Verdict.COMPACTED, Segment((), None, closed=True, compactions=(row,)))


def outcome(state: SessionState, turn: Turn, error: ServerError | None) -> Outcome:
    """How a compaction ended for its client."""
    if error is None or error.type == NOTHING:
        return stopped(turn, Stop.END_TURN)
    if turn.cancel is not CancelStep.NONE:
        turn.mark = "confirmed"
        return stopped(turn, Stop.CANCELLED)
    if error.type == markers.ABORTED:
        loose = any(step is not Loose.QUEUED for step in state.loose.values())
        who = "the cancel of the turn before it" if loose else "another front end"
        return ended_elsewhere(turn, f"This compaction was stopped by {who}.")
    return server_failed(turn, error.message)


def error_of(own: Segment) -> ServerError | None:
    """The error of a compaction that is over, by its row."""
    return own.compactions[-1].error if own.compactions else None


def told(turn: Turn, own: Segment) -> list[Output]:
    """What the client of a compaction that is over has to know besides the outcome."""
    return _told(turn, error_of(own)) if turn.call == "compaction" else []


def _told(turn: Turn, error: ServerError | None) -> list[Output]:
    if error is None or error.type != NOTHING:
        return []
    text = "There is nothing to compact in this session yet."
    return [Notice(turn.owner, "nothing_to_compact", text)]


def row_of(rows: Sequence[AnyRow], turn_id: str) -> CompactionRow | None:
    """The row of a compaction."""
    return next((row for row in rows if row.id == turn_id and isinstance(row, CompactionRow)), None)


def _settle(state: SessionState, turn: Turn, error: ServerError | None) -> list[Output]:
    return _told(turn, error) + settle(state, turn, outcome(state, turn, error))
