"""Where a turn begins and where it ends (lifecycle rule 6).

A turn begins at `inbox.delivered` of its id. It ends at its own `step.ended` whose finish is
not `tool-calls`; failing that, at the first end of the execution. One execution may serve
several prompts, so the execution's end alone says nothing about which of them was answered.
"""

from __future__ import annotations

from collections.abc import Callable

from adapter.core import asks, cancel, commands, compaction, waiting
from adapter.core.reconcile import CONTENT_FILTER, stop_of
from adapter.core.settle import (
    ended_elsewhere,
    server_failed,
    settle,
    stopped,
)
from adapter.core.state import CancelStep, Phase, SessionState, Turn
from adapter.core.translate import usage
from adapter.core.values import Arm, Notice, Outcome, Output, Stop
from contract import events as ev

_OutcomeOf = Callable[[Turn], Outcome]


def enqueued(state: SessionState, event: ev.InboxEnqueued) -> list[Output]:
    """An inbox item, ours or not, was admitted."""
    state.note_kind(event.inbox_id, event.item.type)
    out = commands.enqueued(state, event.item.payload.call, event.inbox_id)
    turn = state.turns.get(event.inbox_id)
    if turn is None:
        return cancel.loose_heard(state, event.inbox_id, delivered=False)
    turn.admitted = True
    return out


def delivered(state: SessionState, inbox_id: str) -> list[Output]:
    """An inbox item, ours or not, was put before the model."""
    state.undelivered = False
    turn = state.turns.get(inbox_id)
    if turn is None and state.kinds.get(inbox_id, "user") != "user":
        # A synthetic item or a compaction is nobody's prompt: nothing is shared with it.
        return cancel.loose_heard(state, inbox_id, delivered=True)
    if turn is not None and turn.call == "compaction":
        return compaction.begin(state, turn)
    if turn is not None:
        if turn.phase is Phase.RUNNING:
            return []
        turn.pid = state.pid
        return begin(state, turn, sharing=state.answering) + _stop_begun(state, turn)
    if state.answering:
        for key in state.running:
            state.turns[key].shared = True
    state.answering = True
    return cancel.loose_heard(state, inbox_id, delivered=True)


def begin(state: SessionState, turn: Turn, *, sharing: bool) -> list[Output]:
    """The turn runs from here on."""
    turn.phase = Phase.RUNNING
    turn.admitted = True
    turn.failed_in_inbox = None
    state.running.append(turn.id)
    state.answering = True
    if sharing:
        for key in state.running:
            state.turns[key].shared = True
    return [Arm("quiet", "quiet"), Arm(f"longest:{turn.id}", "longest")]


def withdrawn(state: SessionState, inbox_id: str) -> list[Output]:
    """An inbox item was taken out before it was delivered."""
    turn = state.turns.get(inbox_id)
    if turn is None:
        state.loose.pop(inbox_id, None)
        return []
    if turn.failed_in_inbox is not None:
        return settle(state, turn, server_failed(turn, turn.failed_in_inbox))
    if turn.cancel is not CancelStep.NONE:
        turn.mark = "confirmed"
        return settle(state, turn, stopped(turn, Stop.CANCELLED))
    return settle(
        state,
        turn,
        ended_elsewhere(turn, "Another front end took this prompt out of the queue before it ran."),
    )


def step_started(state: SessionState, event: ev.StepStarted) -> None:
    """A step that begins anew under the same message is no retry of another one."""
    head = state.head()
    if head is not None and head.failed_message == event.message_id:
        head.failed_message = None


def step_ended(state: SessionState, event: ev.StepEnded) -> list[Output]:
    """The end of a step; of the turn as well if its finish is final."""
    message = state.message_of(event.message_id)
    final = event.finish != "tool-calls"
    if final:
        state.answering = False
    if message is None:
        return []
    turn = state.turns[message.turn_id]
    out = usage(state, turn, event)
    for key in state.running:
        state.turns[key].last_finish = event.finish
        state.turns[key].rejected_in.clear()
    if final:
        out.extend(_end_all(state, lambda one: _answered(one, event.finish)))
    return out


def retrying(state: SessionState, event: ev.RetryScheduled) -> None:
    """What comes next under another message id is a retry of this message (rule 10)."""
    message = state.messages.get(event.message_id)
    if message is not None:
        state.turns[message.turn_id].failed_message = event.message_id


def execution_ended(state: SessionState, event: ev.Event) -> list[Output]:
    """The end of an execution: of every turn that runs, and of none that still waits."""
    undelivered, state.undelivered = state.undelivered, False
    state.answering = False
    loose = cancel.loose_over(state)
    out: list[Output] = []
    match event:
        case ev.ExecutionSucceeded():
            out.extend(_succeeded(state))
        case ev.ExecutionFailed():
            out.extend(_end_all(state, lambda turn: _failed(turn, event)))
            if undelivered:
                out.extend(waiting.failed_in_inbox(state, event.error.message))
        case ev.ExecutionInterrupted():
            why = _why_interrupted(state, event, loose=loose)
            # A user's interrupt has the reason "user" whatever was refused before it.
            refused = event.reason != "user"
            for key in state.running:
                if refused and was_refused(state.turns[key]):
                    out.append(rejection_notice(state.turns[key]))
            out.extend(
                _end_all(
                    state,
                    lambda turn: interrupted_outcome(
                        turn, rejected=refused and was_refused(turn), why=why
                    ),
                )
            )
        case _:
            pass
    if any(turn.phase is not Phase.RUNNING for turn in state.turns.values()):
        out.append(Arm("parked", "parked"))
    # The end of a compaction comes before that of its execution; if not, the reads have it.
    return out if state.compacting() is None else [*out, waiting.look(state)]


def deleted(state: SessionState) -> list[Output]:
    """Settles every turn of the session: queued ones get no event of their own."""
    out: list[Output] = []
    for turn in state.leaving():
        if turn.cancel is not CancelStep.NONE:
            turn.mark = "confirmed"
            out.extend(settle(state, turn, stopped(turn, Stop.CANCELLED)))
        else:
            out.extend(
                settle(
                    state,
                    turn,
                    ended_elsewhere(turn, "Another front end deleted the session in this turn."),
                )
            )
    state.loose.clear()
    return out + asks.forget_all(state)


def was_refused(turn: Turn) -> bool:
    """Whether a refusal of ours in this step can have ended the turn (rule 15)."""
    return turn.cancel is CancelStep.NONE and bool(turn.rejected_in)


def rejection_notice(turn: Turn) -> Notice:
    """Rule 15: rejections that ended the turn are told, for it settles as `end_turn`."""
    return Notice(
        turn.owner,
        "rejected",
        "The server ended the turn because permissions of one step were refused.",
    )


def interrupted_outcome(
    turn: Turn, *, rejected: bool, why: str = "Another front end stopped this turn."
) -> Outcome:
    """An end by interrupt or rejection, seen from the turn that it ended."""
    if turn.cancel is not CancelStep.NONE:
        turn.mark = "confirmed"
        return stopped(turn, Stop.CANCELLED)
    if rejected:
        return stopped(turn, Stop.END_TURN, "rejected")
    return ended_elsewhere(turn, why)


def _stop_begun(state: SessionState, turn: Turn) -> list[Output]:
    """A turn whose withdrawal came too late is stopped instead."""
    return cancel.stop(state, turn) if turn.cancel is not CancelStep.NONE else []


def _end_all(state: SessionState, outcome_of: _OutcomeOf) -> list[Output]:
    """Settle all that share the answer, the head last: what is open is closed on its behalf."""
    out: list[Output] = []
    for key in reversed(list(state.running)):
        turn = state.turns[key]
        out.extend(settle(state, turn, outcome_of(turn)))
    return out


def _answered(turn: Turn, finish: str) -> Outcome:
    return stopped(turn, stop_of(finish))


def _succeeded(state: SessionState) -> list[Output]:
    """An execution's success proves an answer only together with the turn's own steps.

    After `tool-calls` it is the step cap. Without any step of ours it may be the empty pair
    that the server writes by itself (facts, trap 1): the reads decide.
    """
    if not state.running:
        return []
    head = state.turns[state.running[0]]
    if head.last_finish == "tool-calls":
        return _end_all(state, lambda turn: stopped(turn, Stop.MAX_TURN_REQUESTS))
    return [waiting.look(state)]


def _failed(turn: Turn, event: ev.ExecutionFailed) -> Outcome:
    if turn.cancel is not CancelStep.NONE:
        turn.mark = "confirmed"
        return stopped(turn, Stop.CANCELLED)
    if event.error.type == CONTENT_FILTER:
        return stopped(turn, Stop.REFUSAL)
    return server_failed(turn, event.error.message)


def _why_interrupted(state: SessionState, event: ev.ExecutionInterrupted, *, loose: bool) -> str:
    """Who stopped the turns that run, for those that were not to be stopped."""
    if loose:
        return "Stopped by the cancel of the turn before it."
    if any(state.turns[key].cancel is CancelStep.STOPPING for key in state.running):
        return "This turn was stopped by the cancel of a turn that shared its answer."
    if event.reason != "user":
        # The same word for a refusal by others and for the server's own end (facts, trap 2).
        return (
            "This turn was ended by the refusal of another front end, or by a stop of the server."
        )
    return "Another front end stopped this turn."
