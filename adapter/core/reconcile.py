"""What the reads prove about a turn: the verdict table of lifecycle.md, first match wins.

Pure judgement: a turn's facts and a snapshot in, one verdict out. Nothing is changed here;
recover.py applies the verdicts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from adapter.core.state import CancelStep, Phase, Turn
from adapter.core.values import Snapshot, Stop
from contract.reads import AnyRow, AssistantRow, IdleRow, ToolPart

STEP_CAP_PHRASE: Final = "maximum agent steps"
CONTENT_FILTER: Final = "provider.content-filter"
JOINING: Final = frozenset({"user", "compaction", "synthetic"})


class Verdict(Enum):
    RESTARTED = "the server was restarted under it"
    QUEUED = "in the inbox of an active session"
    PARKED = "in the inbox of an idle session"
    WITHDRAWN = "taken out of the inbox by us"
    WITHDRAWN_ELSEWHERE = "taken out of the inbox by somebody else"
    SUCCEEDED = "answered"
    STEP_CAP = "ended by the agent's step cap"
    REFUSED = "refused by the provider"
    INTERRUPTED = "interrupted"
    ABORTED = "aborted without a record of who did it"
    FAILED = "failed"
    RUNNING = "running"
    LOST = "no row proves anything"


@dataclass(frozen=True, slots=True)
class Segment:
    """The rows that answer X: assistants in order, and the idle row that ends them, if any.

    `closed` is True when a later row ends the segment, so that nothing can be added to it.
    """

    assistants: tuple[AssistantRow, ...]
    idle: IdleRow | None
    closed: bool

    @property
    def last(self) -> AssistantRow | None:
        return self.assistants[-1] if self.assistants else None


@dataclass(frozen=True, slots=True)
class Judgement:
    verdict: Verdict
    segment: Segment
    stop: Stop | None = None
    message: str = ""


EMPTY: Final = Segment((), None, closed=False)


def stop_of(finish: str) -> Stop:
    """The stop reason of a final finish."""
    match finish:
        case "length":
            return Stop.MAX_TOKENS
        case "content-filter":
            return Stop.REFUSAL
        case _:
            return Stop.END_TURN


def segment(rows: Sequence[AnyRow], turn_id: str) -> Segment | None:
    """X's segment; None when X has no row."""
    start = next((i for i, row in enumerate(rows) if row.id == turn_id), None)
    if start is None:
        return None
    found: list[AssistantRow] = []
    for row in rows[start + 1 :]:
        if isinstance(row, AssistantRow):
            found.append(row)
        elif isinstance(row, IdleRow):
            return Segment(tuple(found), row, closed=True)
        elif row.type in JOINING and found and not _joins(found[-1], row):
            return Segment(tuple(found), None, closed=True)
    return Segment(tuple(found), None, closed=False)


def judge(turn: Turn, snapshot: Snapshot, pid: int) -> Judgement:
    """The verdict on an admitted turn. `pid` is the server that it was delivered on."""
    own = segment(snapshot.rows, turn.id)
    if (
        pid
        and snapshot.pid
        and snapshot.pid != pid
        and turn.phase is Phase.RUNNING
        and not _answered(snapshot.rows, turn.id)
    ):
        return Judgement(Verdict.RESTARTED, own or EMPTY)
    if turn.id in snapshot.inbox:
        return Judgement(Verdict.QUEUED if snapshot.active else Verdict.PARKED, EMPTY)
    if own is None:
        if not snapshot.complete:
            return Judgement(Verdict.LOST, EMPTY)
        withdrawn = turn.cancel is CancelStep.WITHDRAWING
        return Judgement(Verdict.WITHDRAWN if withdrawn else Verdict.WITHDRAWN_ELSEWHERE, EMPTY)
    return _of_segment(own, active=snapshot.active)


def _of_segment(own: Segment, *, active: bool) -> Judgement:
    last = own.last
    error = last.error if last else None
    finish = last.finish if last else None
    if finish not in (None, "tool-calls", "error") and error is None:
        return Judgement(Verdict.SUCCEEDED, own, stop=stop_of(finish or ""))
    if last and finish == "tool-calls" and not active and _hit_step_cap(last):
        return Judgement(Verdict.STEP_CAP, own, stop=Stop.MAX_TURN_REQUESTS)
    if error and error.type == CONTENT_FILTER:
        return Judgement(Verdict.REFUSED, own, stop=Stop.REFUSAL)
    if own.idle and own.idle.outcome == "interrupted":
        return Judgement(Verdict.INTERRUPTED, own)
    if error and error.type == "aborted":
        return Judgement(Verdict.ABORTED, own)
    if own.idle and own.idle.outcome == "failed":
        return Judgement(Verdict.FAILED, own, message=error.message if error else "")
    # The row of a step that failed and will be retried has its error already: an active
    # session whose segment is open is in the pause before the retry.
    if error and (own.closed or not active):
        return Judgement(Verdict.FAILED, own, message=error.message)
    if active:
        return Judgement(Verdict.RUNNING, own)
    return Judgement(Verdict.LOST, own)


def _joins(last: AssistantRow, row: AnyRow) -> bool:
    """Whether a user, compaction or synthetic row leaves the segment open."""
    if last.finish in (None, "tool-calls"):
        return True
    retried = last.finish == "error" and (last.error is None or last.error.type != "aborted")
    return row.type == "synthetic" and retried


def _answered(rows: Sequence[AnyRow], turn_id: str) -> bool:
    """Whether X's own last assistant, before any other front end's row, is an end.

    Rows that follow a restart prove nothing about X: only its own rows count.
    """
    own: list[AssistantRow] = []
    start = next((i for i, row in enumerate(rows) if row.id == turn_id), None)
    if start is None:
        return False
    for row in rows[start + 1 :]:
        if isinstance(row, AssistantRow):
            own.append(row)
        elif isinstance(row, IdleRow):
            if row.outcome in ("interrupted", "failed"):
                return True
            break
        elif row.type in JOINING and not (own and row.type == "synthetic" and _joins(own[-1], row)):
            break
    if not own:
        return False
    last = own[-1]
    if last.finish in (None, "tool-calls"):
        return False
    return last.error is None or last.error.type != "aborted"


def _hit_step_cap(row: AssistantRow) -> bool:
    return any(
        isinstance(part, ToolPart)
        and part.state.error is not None
        and STEP_CAP_PHRASE in part.state.error.message
        for part in row.content
    )
