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
from contract.reads import AnyRow, AssistantRow, CompactionRow, IdleRow, ToolPart

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
    COMPACTED = "a compaction that is over"
    LOST = "no row proves anything"


@dataclass(frozen=True, slots=True)
class Segment:
    """The rows that answer X: assistants in order, and the idle row that ends them, if any.

    `closed` is True when a later row ends the segment, so that nothing can be added to it.
    `shared` is True when another prompt's row stands in it, or right before X without an answer.
    `compactions` are those under X.
    """

    assistants: tuple[AssistantRow, ...]
    idle: IdleRow | None
    closed: bool
    shared: bool = False
    compactions: tuple[CompactionRow, ...] = ()

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
    compactions: list[CompactionRow] = []
    shared = _begins_shared(rows[:start])
    idle: IdleRow | None = None
    closed = False
    for row in rows[start + 1 :]:
        if isinstance(row, AssistantRow):
            found.append(row)
        elif isinstance(row, IdleRow):
            idle, closed = row, True
        elif row.type in JOINING and found and not _joins(found[-1], row):
            closed = True
        elif isinstance(row, CompactionRow):
            compactions.append(row)
        elif row.type == "user":
            shared = True
        if closed:
            break
    return Segment(tuple(found), idle, closed, shared, tuple(compactions))


def _begins_shared(before: Sequence[AnyRow]) -> bool:
    """Whether X was delivered together with another prompt, or between two of its steps."""
    for row in reversed(before):
        if isinstance(row, AssistantRow):
            return row.finish == "tool-calls"
        if row.type == "user":
            return True
        if isinstance(row, IdleRow):
            return False
    return False


def judge(turn: Turn, snapshot: Snapshot, pid: int) -> Judgement:
    """The verdict on an admitted turn. `pid` is the server process that had it before."""
    own = segment(snapshot.rows, turn.id)
    if pid and snapshot.pid and snapshot.pid != pid and _died(turn, snapshot.rows):
        rows, _ = _own_rows(snapshot.rows, turn.id)
        return Judgement(Verdict.RESTARTED, Segment(rows, None, closed=True))
    if turn.id in snapshot.inbox:
        return Judgement(Verdict.QUEUED if snapshot.active else Verdict.PARKED, EMPTY)
    if own is None:
        if not snapshot.complete:
            # A long answer pushed X's row out of what is read.
            return Judgement(Verdict.RUNNING if snapshot.active else Verdict.LOST, EMPTY)
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
    if active and not own.closed:
        return Judgement(Verdict.RUNNING, own)
    return Judgement(Verdict.LOST, own)


def _joins(last: AssistantRow, row: AnyRow) -> bool:
    """Whether a user, compaction or synthetic row leaves the segment open."""
    if last.finish in (None, "tool-calls"):
        return True
    return row.type == "synthetic" and is_retried(last)


def newest_prompt(rows: Sequence[AnyRow]) -> str | None:
    """The newest user, synthetic or idle row: an interrupt stops what that row stands for.

    The synthetic row of a retry is passed over, as in a segment. So is a compaction under a turn;
    one that runs by itself is what an interrupt stops.
    """
    for index in range(len(rows) - 1, -1, -1):
        row, before = rows[index], rows[index - 1] if index else None
        if isinstance(row, CompactionRow) and row.status == "running" and _stands_alone(before):
            return row.id
        if row.type == "synthetic" and isinstance(before, AssistantRow) and is_retried(before):
            continue
        if row.type in ("user", "synthetic", "idle"):
            return row.id
    return None


def _stands_alone(before: AnyRow | None) -> bool:
    """Whether a compaction after this row belongs to no turn."""
    if isinstance(before, AssistantRow):
        return before.finish not in (None, "tool-calls")
    return before is None or before.type not in ("user", "synthetic")


def is_retried(row: AssistantRow) -> bool:
    """Whether the server tries this failed answer again, under another message."""
    return row.finish == "error" and (row.error is None or row.error.type != "aborted")


def _own_rows(
    rows: Sequence[AnyRow], turn_id: str
) -> tuple[tuple[AssistantRow, ...], AnyRow | None]:
    """X's assistants up to the first row of anybody else, and that row.

    After a restart only these are X's: a dead answer has no finish, so that the rows of whoever
    comes next would seem to join it.
    """
    own: list[AssistantRow] = []
    start = next((i for i, row in enumerate(rows) if row.id == turn_id), len(rows))
    for row in rows[start + 1 :]:
        if isinstance(row, AssistantRow):
            own.append(row)
        elif isinstance(row, IdleRow) or row.type in JOINING:
            if own and row.type == "synthetic" and _joins(own[-1], row):
                continue
            return tuple(own), row
    return tuple(own), None


def _died(turn: Turn, rows: Sequence[AnyRow]) -> bool:
    """Whether a restart of the server ended the turn, now that its process is another one.

    Rows that follow a restart prove nothing about X: only its own last assistant, before any
    other front end's row, is an answer. A turn that was not seen delivered before the restart
    may run since; unless other rows follow its own, which shows that it does not.
    """
    if all(row.id != turn.id for row in rows):
        return turn.phase is Phase.RUNNING
    own, following = _own_rows(rows, turn.id)
    if isinstance(following, IdleRow) and following.outcome in ("interrupted", "failed"):
        return False
    if own and own[-1].finish not in (None, "tool-calls"):
        error = own[-1].error
        if error is None or error.type != "aborted":
            return False
    return following is not None or turn.phase is Phase.RUNNING


def _hit_step_cap(row: AssistantRow) -> bool:
    return any(
        isinstance(part, ToolPart)
        and part.state.error is not None
        and STEP_CAP_PHRASE in part.state.error.message
        for part in row.content
    )
