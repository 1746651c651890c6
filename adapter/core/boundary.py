"""Where a turn begins and where it ends (lifecycle rules 1, 2 and 6).

A turn begins at `inbox.delivered` of its id. It ends at its own `step.ended` whose finish is
not `tool-calls`; failing that, at the first end of the execution. One execution may serve
several prompts, so the execution's end alone says nothing about which of them was answered.
"""

from __future__ import annotations

from collections.abc import Callable

from adapter.core import cancel, waiting
from adapter.core.reconcile import CONTENT_FILTER, stop_of
from adapter.core.settle import (
    ended_elsewhere,
    failed,
    server_failed,
    settle,
    stopped,
    unknown,
)
from adapter.core.state import CancelStep, Phase, SessionState, Turn
from adapter.core.translate import usage
from adapter.core.values import Admission, Arm, Notice, Outcome, Output, Posted, Stop, Submit
from contract import events as ev
from contract.errors import Code

_OutcomeOf = Callable[[Turn], Outcome]


def submit(state: SessionState, given: Submit) -> list[Output]:
    """Register a turn before anything is posted."""
    state.turns[given.turn_id] = Turn(given.turn_id, given.owner)
    return []


def posted(state: SessionState, given: Posted) -> list[Output]:
    """The definite answer of a submission, or the word that there is none."""
    turn = state.turns.get(given.turn_id)
    if turn is None:
        return []
    match given.admission:
        case Admission.ADMITTED:
            return _admitted(state, turn, probed=given.probed)
        case _ if turn.cancel is not CancelStep.NONE and given.admission is not Admission.UNCLEAR:
            turn.mark = "confirmed"
            return settle(state, turn, stopped(turn, Stop.CANCELLED))
        case Admission.NOT_ADMITTED:
            return settle(state, turn, _refused(turn, given.message))
        case Admission.UNREACHED:
            return settle(
                state,
                turn,
                _refused(turn, given.message or "the OpenCode server cannot be reached"),
            )
        case Admission.GONE:
            return settle(
                state,
                turn,
                Outcome(
                    turn.id,
                    code=int(Code.SESSION_GONE),
                    reason="session_gone",
                    admitted=False,
                    message=f"Session not found: {state.id}. Start a new session.",
                ),
            )
        case Admission.UNAUTHORISED:
            return settle(
                state,
                turn,
                failed(
                    turn,
                    Code.AUTH_REQUIRED,
                    "authentication required: the OpenCode server refused the password",
                    "auth_required",
                    admitted=False,
                ),
            )
        case Admission.UNCLEAR:
            if turn.cancel is not CancelStep.NONE:
                return cancel.unclear(state, turn)
            return settle(
                state,
                turn,
                unknown(
                    turn,
                    given.message or "the server gave no answer to the prompt",
                    admitted=None,
                ),
            )


def delivered(state: SessionState, inbox_id: str) -> list[Output]:
    """An inbox item, ours or not, was put before the model."""
    state.delivered_any = True
    sharing = state.answering
    state.answering = True
    turn = state.turns.get(inbox_id)
    if turn is None:
        if sharing and state.running and state.kinds.get(inbox_id, "user") == "user":
            for key in state.running:
                state.turns[key].shared = True
        return []
    if turn.phase is Phase.RUNNING:
        return []
    return begin(state, turn, sharing=sharing)


def begin(state: SessionState, turn: Turn, *, sharing: bool) -> list[Output]:
    """The turn runs from here on."""
    turn.phase = Phase.RUNNING
    turn.admitted = True
    state.running.append(turn.id)
    state.answering = True
    if sharing:
        for key in state.running:
            state.turns[key].shared = True
    out: list[Output] = [Arm("quiet", "quiet")]
    if turn.cancel in (CancelStep.ASKED, CancelStep.WITHDRAWING):
        out.extend(cancel.stop(state, turn))
    return out


def withdrawn(state: SessionState, inbox_id: str) -> list[Output]:
    """An inbox item was taken out before it was delivered."""
    turn = state.turns.get(inbox_id)
    if turn is None:
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


def step_failed(state: SessionState, event: ev.StepFailed) -> None:
    """Ends nothing: a retry may follow (facts, trap 5)."""
    message = state.message_of(event.message_id)
    if message is not None:
        state.turns[message.turn_id].last_error = event.error


def retrying(state: SessionState, event: ev.RetryScheduled) -> None:
    """What comes next under another message id is a retry of this message (rule 10)."""
    message = state.messages.get(event.message_id)
    if message is not None:
        state.turns[message.turn_id].failed_message = event.message_id


def execution_ended(state: SessionState, event: ev.Event) -> list[Output]:
    """The end of an execution: of every turn that runs, and of none that still waits."""
    undelivered = not state.delivered_any
    state.answering = False
    state.delivered_any = False
    out: list[Output] = []
    match event:
        case ev.ExecutionSucceeded():
            out.extend(_succeeded(state))
        case ev.ExecutionFailed():
            out.extend(_end_all(state, lambda turn: _failed(turn, event)))
            if undelivered:
                out.extend(waiting.failed_in_inbox(state, event.error.message))
        case ev.ExecutionInterrupted():
            loose = state.loose_cancel
            state.loose_cancel = None
            stopping = any(state.turns[key].cancel is CancelStep.STOPPING for key in state.running)
            for key in list(state.running):
                turn = state.turns[key]
                out.extend(notice_of_rejection(turn))
            out.extend(
                _end_all(state, lambda turn: _interrupted(turn, loose=loose, stopping=stopping))
            )
        case _:
            pass
    state.loose_cancel = None
    if state.waiting():
        out.append(Arm("parked", "parked"))
    return out


def deleted(state: SessionState) -> list[Output]:
    """Settles every turn of the session: queued ones get no event of their own."""
    out: list[Output] = []
    for turn in reversed(list(state.turns.values())):
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
    return out


def notice_of_rejection(turn: Turn) -> list[Output]:
    """Rule 15: rejections that ended the turn are told, for it settles as `end_turn`."""
    if turn.cancel is CancelStep.NONE and turn.rejected_in:
        return [
            Notice(
                turn.owner,
                "rejected",
                "The server ended the turn because permissions of one step were refused.",
            )
        ]
    return []


def interrupted_outcome(turn: Turn, *, rejected: bool) -> Outcome:
    """An end by interrupt or rejection, seen from the turn that it ended."""
    if turn.cancel is not CancelStep.NONE:
        turn.mark = "confirmed"
        return stopped(turn, Stop.CANCELLED)
    if rejected:
        return stopped(turn, Stop.END_TURN, "rejected")
    return ended_elsewhere(turn, "Another front end stopped this turn.")


def _end_all(state: SessionState, outcome_of: _OutcomeOf) -> list[Output]:
    """Settle all that share the answer, the head last: what is open is closed on its behalf."""
    out: list[Output] = []
    for key in reversed(list(state.running)):
        turn = state.turns[key]
        out.extend(settle(state, turn, outcome_of(turn)))
    return out


def _admitted(state: SessionState, turn: Turn, *, probed: bool) -> list[Output]:
    turn.admitted = True
    if turn.phase is not Phase.SUBMITTING:
        return []
    turn.phase = Phase.WAITING
    if turn.cancel is CancelStep.ASKED:
        return cancel.withdraw(turn)
    out: list[Output] = [Arm(f"ahead:{turn.id}", "ahead"), Arm("watch", "watch")]
    if probed or turn.gaps:
        out.append(Arm("parked", "parked"))
    return out


def _refused(turn: Turn, message: str) -> Outcome:
    return failed(
        turn,
        Code.INTERNAL,
        f"The prompt was not accepted: {message}. Nothing ran; it is safe to send it again.",
        "not_admitted",
        admitted=False,
        retry_safe=True,
    )


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


def _interrupted(turn: Turn, *, loose: str | None, stopping: bool) -> Outcome:
    if turn.cancel is CancelStep.NONE and not turn.rejected_in:
        if loose is not None:
            return ended_elsewhere(turn, "Stopped by the cancel of the turn before it.")
        if stopping:
            return ended_elsewhere(
                turn, "This turn was stopped by the cancel of a turn that shared its answer."
            )
    return interrupted_outcome(turn, rejected=bool(turn.rejected_in))
