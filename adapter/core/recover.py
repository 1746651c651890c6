"""After a gap, or when events stay away: the snapshot is applied, then the buffer, then acts.

Lifecycle rules 18 to 20. The order matters: texts of the reads first, so that the offsets
stand; then the events that were heard meanwhile; and only then interrupts and wakes, since
the buffer may show that they are no longer due.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from adapter.core import (
    ambient,
    asks,
    boundary,
    cancel,
    children,
    commands,
    compaction,
    descendants,
    markers,
    waiting,
)
from adapter.core.reconcile import Judgement, Verdict, is_retried, judge
from adapter.core.settle import (
    ended_elsewhere,
    failed,
    server_failed,
    settle,
    stopped,
    unknown,
)
from adapter.core.state import CancelStep, Foreign, Phase, SessionState, Turn
from adapter.core.translate import restore
from adapter.core.values import (
    Arm,
    Disarm,
    FeedLost,
    Notice,
    Outcome,
    Output,
    Reconcile,
    Snapshot,
    Stop,
)
from contract import events as ev
from contract.errors import Code
from contract.reads import AssistantRow

Hear = Callable[[ev.Event], list[Output]]

AWAY: Final = (
    "The connection to the OpenCode server is lost. The adapter goes on trying to reach it; what "
    "the turn did meanwhile is shown once it is back."
)

_RUNNING = (Verdict.RUNNING, Verdict.LOST)
_ALIVE = (Verdict.RUNNING, Verdict.QUEUED, Verdict.PARKED)
_NOWHERE = (Verdict.WITHDRAWN, Verdict.WITHDRAWN_ELSEWHERE)


def feed_lost(state: SessionState, _: FeedLost) -> list[Output]:
    """A gap begins: no part is live any more, and the verdict has a deadline (rule 20)."""
    state.offsets.hold(state.id)
    children.hold(state)
    ambient.hold(state)
    state.undelivered = False
    state.surveyed = False
    state.answering = bool(state.running)
    begins = not state.gap
    state.gap = True
    out: list[Output] = []
    for turn in state.turns.values():
        turn.gaps += 1
    if state.turns and begins:
        out.append(Arm("gap", "gap"))
        out.append(Arm("reconnecting", "reconnecting"))
    return out


def still_away(state: SessionState) -> list[Output]:
    """The gap lasts: whoever waits for a turn is told, once in a gap."""
    turns = state.turns.values() if state.gap else ()
    return [Notice(turn.owner, "reconnecting", AWAY) for turn in turns]


def gap_overdue(state: SessionState) -> list[Output]:
    """No verdict in time: every turn that still lacks one ends as unknown (rule 20)."""
    out: list[Output] = []
    for turn in state.leaving():
        if turn.phase is Phase.SUBMITTING or not (state.gap or turn.lost_seen):
            continue
        if turn.cancel is not CancelStep.NONE:
            out.extend(cancel.overdue(state, turn))
        else:
            why = "the connection to the OpenCode server was lost and did not come back in time"
            out.extend(settle(state, turn, unknown(turn, why)))
    # A prompt on its way has the deadline of its POST, and then this one again.
    return [*out, Arm("gap", "gap")] if state.gap and state.turns else out


def reconcile(state: SessionState, given: Reconcile, hear: Hear) -> list[Output]:
    """Apply a snapshot and the events buffered since it was asked for."""
    snapshot = given.snapshot
    state.judged = ()
    if snapshot.state == "gone":
        return boundary.deleted(state)
    if snapshot.state == "unauthorised":
        return _unauthorised(state)
    in_gap, state.gap = state.gap, False
    snapshot, out = commands.known_by(state, snapshot)
    state.surveyed = snapshot.asks is not None and snapshot.forms is not None
    late = [turn for turn in state.waiting() if turn.id not in snapshot.judged]
    for child_id, parent_id in snapshot.children:
        descendants.adopt(state, child_id, parent_id)
    for child_id, title in snapshot.titles:
        descendants.entitle(state, child_id, title)
    begins = {e.inbox_id for e in given.buffer if isinstance(e, ev.InboxDelivered)}
    before = set(state.turns)
    again, judged = _judge_all(state, snapshot, begins)
    out.extend(judged)
    if in_gap and not any(isinstance(event, ev.CompactionEvent) for event in given.buffer):
        out.extend(_compactions(state, snapshot))
    if in_gap:
        out.extend(asks.resend(state, snapshot))
    if snapshot.pid:
        state.pid = snapshot.pid
    before_replay = cancel.sent(state)
    state.ambience.replaying = in_gap
    for event in given.buffer:
        out.extend(hear(event))
    state.ambience.replaying = False
    # After the buffer: the turn that an ask belongs to may have begun in it.
    out.extend(asks.listed(state, snapshot.asks or (), given.buffer))
    out.extend(asks.listed(state, snapshot.forms or (), given.buffer))
    out.extend(asks.deny_overdue(state, active=snapshot.active))
    out.extend(cancel.after_snapshot(state, snapshot, before_replay, in_gap=in_gap))
    out.extend(_act(state, again & set(state.turns), before))
    out.extend([Disarm("reconnecting")] if in_gap else [])
    if state.turns and not state.surveyed:
        # An ask that is not known of would hold up its turn for ever.
        out.append(Arm("lost", "lost_last"))
    if any(state.turns.get(turn.id) is turn for turn in late):
        out.append(Arm("parked", "parked"))
    return out


def _judge_all(
    state: SessionState, snapshot: Snapshot, begins: set[str]
) -> tuple[set[str], list[Output]]:
    """Judge every turn that the snapshot speaks of, in the order of their rows."""
    position = {row.id: index for index, row in enumerate(snapshot.rows)}
    turns = [turn for turn in state.turns.values() if turn.id in snapshot.judged]
    turns.sort(key=lambda turn: position.get(turn.id, len(position)))
    judgements = [(turn, _judge(turn, snapshot)) for turn in turns]
    state.judged = tuple(judged.verdict.name.lower() for _, judged in judgements)
    still = [
        turn
        for turn, judged in judgements
        if judged.verdict in _RUNNING
        and turn.call != "compaction"
        and turn.id not in begins
        and (turn.id in position or turn.phase is Phase.RUNNING)
    ]
    again: set[str] = set()
    out: list[Output] = []
    _own_rows(state, judgements)
    for turn, judged in judgements:
        for row in judged.segment.assistants:
            owner = state.messages.get(row.id)
            if owner is not None and owner.turn_id == turn.id:
                out.extend(restore(state, turn, row))
    state.running = [key for key in state.running if key not in snapshot.judged]
    for turn, judged in judgements:
        if snapshot.pid and judged.verdict in _ALIVE:
            turn.pid = snapshot.pid
        if turn in still and turn.phase is Phase.RUNNING:
            state.running.append(turn.id)
        elif turn in still:
            out.extend(boundary.begin(state, turn, sharing=False))
        elif judged.verdict in (Verdict.QUEUED, Verdict.PARKED):
            turn.phase = Phase.WAITING
        elif judged.segment.compactions and turn.phase is not Phase.RUNNING:
            out.extend(compaction.start(turn) if turn.call == "compaction" else [])
    state.answering = bool(state.running)
    # The head of an answer that is shared settles last: what is open closes on its behalf.
    for turn, judged in reversed(judgements):
        if _needs_another(turn, judged, begins):
            again.add(turn.id)
            if judged.verdict is not Verdict.LOST or turn.lost_seen < 3:
                continue
        if turn.id in begins and judged.verdict in _NOWHERE:
            continue
        outcome = _outcome(state, turn, judged)
        if outcome is not None:
            out.extend(markers.restore(turn, judged.segment.compactions, active=False))
            out.extend(compaction.told(turn, judged.segment))
            out.extend([boundary.rejection_notice(turn)] if _rejected(turn, judged) else [])
            out.extend(settle(state, turn, outcome))
    return again, out


def _judge(turn: Turn, snapshot: Snapshot) -> Judgement:
    if turn.call == "compaction":
        return compaction.judge(turn, snapshot, turn.pid)
    if not turn.is_named:
        return commands.judge(turn, snapshot, turn.pid)
    return judge(turn, snapshot, turn.pid)


def _compactions(state: SessionState, snapshot: Snapshot) -> list[Output]:
    """The compactions under turns that go on, as far as no event told of them."""
    out: list[Output] = []
    for turn in state.turns.values():
        shown = _judge(turn, snapshot).segment.compactions
        if turn.phase is Phase.RUNNING and turn.id in snapshot.judged:
            out.extend(markers.restore(turn, shown, active=snapshot.active))
    return out


def _own_rows(state: SessionState, judgements: list[tuple[Turn, Judgement]]) -> None:
    """A message belongs to the first of our turns whose segment holds it."""
    for turn, judged in judgements:
        turn.shared = turn.shared or judged.segment.shared
        before: AssistantRow | None = None
        for row in judged.segment.assistants:
            known = state.messages.get(row.id)
            if known is None and state.foreign.get(row.id) is not Foreign.SETTLED:
                if before is not None and is_retried(before):
                    turn.failed_message = before.id
                state.claim(row.id, turn)
            before = row
            if known is None:
                continue
            if known.turn_id != turn.id:
                turn.shared = True
                state.turns[known.turn_id].shared = True


def _needs_another(turn: Turn, judged: Judgement, begins: set[str]) -> bool:
    """Only *lost* and *parked* need the same reading again (rule 19)."""
    match judged.verdict:
        case Verdict.LOST if turn.id not in begins:
            turn.lost_seen += 1
            return True
        case Verdict.PARKED if turn.id not in begins:
            turn.parked_seen += 1
            return True
        case _:
            turn.lost_seen = 0
            turn.parked_seen = 0
            return False


def _outcome(state: SessionState, turn: Turn, judged: Judgement) -> Outcome | None:
    """The end that the verdict proves; None for a turn that goes on."""
    cancelled = turn.cancel is not CancelStep.NONE
    match judged.verdict:
        case Verdict.RESTARTED | Verdict.LOST | Verdict.FAILED if cancelled and (
            judged.verdict is not Verdict.LOST or turn.lost_seen >= 3
        ):
            # It runs no more, and the client waits for nothing else (rule 13).
            turn.mark = "confirmed"
            return stopped(turn, Stop.CANCELLED)
        case Verdict.SUCCEEDED | Verdict.STEP_CAP | Verdict.REFUSED:
            return stopped(turn, judged.stop or Stop.END_TURN)
        case Verdict.COMPACTED:
            return compaction.outcome(state, turn, compaction.error_of(judged.segment))
        case Verdict.WITHDRAWN:
            turn.mark = "confirmed"
            return stopped(turn, Stop.CANCELLED)
        case Verdict.WITHDRAWN_ELSEWHERE:
            if cancelled:
                turn.mark = "confirmed"
                return stopped(turn, Stop.CANCELLED)
            if turn.failed_in_inbox is not None:
                return server_failed(turn, turn.failed_in_inbox)
            return ended_elsewhere(
                turn, "Another front end took this prompt out of the queue, or reverted it."
            )
        case Verdict.RESTARTED:
            return unknown(turn, "the OpenCode server was restarted while the turn ran")
        case Verdict.INTERRUPTED | Verdict.ABORTED:
            return boundary.interrupted_outcome(turn, rejected=_rejected(turn, judged))
        case Verdict.FAILED:
            return server_failed(turn, judged.message)
        case Verdict.LOST if turn.lost_seen >= 3:
            return unknown(turn, "the server is idle and its records do not show how it ended")
        case _:
            return None


def _rejected(turn: Turn, judged: Judgement) -> bool:
    """Rule 15: an abort in the step whose permissions we refused."""
    last = judged.segment.last
    return (
        judged.verdict is Verdict.ABORTED
        and last is not None
        and last.id in turn.rejected_in
        and turn.cancel is CancelStep.NONE
    )


def _act(state: SessionState, again: set[str], before: set[str]) -> list[Output]:
    """What is due after the buffer: wake what is parked, read again what is not decided."""
    out: list[Output] = []
    parked = [turn for turn in state.waiting() if turn.id in again and turn.parked_seen]
    parked = [turn for turn in parked if turn.cancel is CancelStep.NONE]
    if parked:
        out.extend(waiting.wake_or_wait(parked))
    lost = [state.turns[key] for key in again if state.turns[key].lost_seen]
    if lost:
        first = min(turn.lost_seen for turn in lost)
        out.append(Arm("lost", "lost_first" if first == 1 else "lost_last"))
    else:
        out.append(Disarm("gap"))
    if before and state.turns:
        out.append(Arm("watch", "watch"))
        out.append(Arm("quiet", "quiet"))
    return out


def _unauthorised(state: SessionState) -> list[Output]:
    """The feed is refused with 401: what became of a prompt that was sent is not known."""
    out: list[Output] = []
    for turn in state.leaving():
        if turn.cancel is not CancelStep.NONE:
            out.extend(cancel.overdue(state, turn))
            continue
        told = "what became of the turn is not known"
        if not turn.admitted:
            told = "whether it has this prompt is not known"
        message = f"authentication required: the OpenCode server refused the password; {told}."
        auth = failed(turn, Code.AUTH_REQUIRED, message, "auth_required")
        out.extend(settle(state, turn, auth))
    return out
