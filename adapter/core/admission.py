"""From the client's prompt to the server's word that it has it (lifecycle rules 1 and 2)."""

from __future__ import annotations

from adapter.core import cancel, commands, compaction
from adapter.core.settle import failed, session_gone, settle, stopped, unknown
from adapter.core.state import CancelStep, Phase, SessionState, Turn
from adapter.core.values import (
    Admission,
    Arm,
    Outcome,
    Output,
    Posted,
    Recognised,
    Stop,
    Submit,
)
from contract.errors import Code


def submit(state: SessionState, given: Submit) -> list[Output]:
    """Register a turn before anything is posted."""
    state.turns[given.turn_id] = Turn(given.turn_id, given.owner, pid=state.pid)
    return [Arm("gap", "gap")] if state.gap and len(state.turns) == 1 else []


def recognised(state: SessionState, given: Recognised) -> list[Output]:
    """Its text calls something; nothing is posted yet."""
    turn = state.turns.get(given.turn_id)
    if turn is not None:
        turn.call = given.call
    return []


def posted(state: SessionState, given: Posted) -> list[Output]:
    """The definite answer of a submission, or the word that there is none."""
    turn = state.find(given.turn_id)
    if turn is None:
        item_id = given.item_id or given.turn_id
        known = given.admission is Admission.ADMITTED and item_id in state.loose
        return cancel.loose_heard(state, item_id, delivered=False) if known else []
    if turn.phase is Phase.RUNNING:
        # Its delivery was heard: no answer to the POST says more than that.
        return []
    match given.admission:
        case Admission.ADMITTED:
            return _taken(state, turn, given)
        case Admission.UNCLEAR | Admission.UNREACHED if turn.admitted:
            # It was heard to enter the inbox; what was lost is only the answer (rule 2).
            return _accepted(state, turn, probed=True)
        case Admission.NOT_ADMITTED if turn.admitted and turn.call == "command":
            return _accepted(state, turn, probed=True)
        case _ if turn.cancel is not CancelStep.NONE and given.admission is not Admission.UNCLEAR:
            turn.mark = "confirmed"
            return settle(state, turn, stopped(turn, Stop.CANCELLED))
        case Admission.NOT_ADMITTED if given.probed and turn.call == "command":
            # The answer was lost, so that the server may have begun to expand it.
            advice = "Shell lines of its template may have run; look before you send it again"
            return settle(state, turn, _refused(turn, given.message, advice, retry_safe=False))
        case Admission.NOT_ADMITTED:
            return settle(state, turn, _refused(turn, given.message, "Nothing ran"))
        case Admission.UNREACHED:
            return settle(
                state,
                turn,
                _refused(
                    turn,
                    given.message or "the OpenCode server cannot be reached",
                    "Nothing ran; it is safe to send it again",
                ),
            )
        case Admission.GONE:
            return settle(
                state,
                turn,
                session_gone(turn, state.id, admitted=None if given.probed else False),
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
                    admitted=turn.admitted or (None if given.probed else False),
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
                ),
            )


def _taken(state: SessionState, turn: Turn, given: Posted) -> list[Output]:
    """The server has it; the answer may name an item that is not of the turn's own id."""
    turn.admitted = True
    if not given.item_id or given.item_id == turn.id:
        return _accepted(state, turn, probed=given.probed)
    if turn.call == "compaction":
        out = compaction.follow(state, turn, given.item_id)
        waits = turn.id in state.turns and turn.follows is None
        return out + (commands.admitted(state, turn, probed=True) if waits else [])
    out = commands.enqueued(state, turn.key, given.item_id)
    return out + _accepted(state, turn, probed=given.probed)


def _accepted(state: SessionState, turn: Turn, *, probed: bool) -> list[Output]:
    if turn.is_named:
        return commands.admitted(state, turn, probed=probed)
    return commands.called(state, turn)


def _refused(turn: Turn, message: str, advice: str, *, retry_safe: bool = True) -> Outcome:
    return failed(
        turn,
        Code.INTERNAL,
        f"The prompt was not accepted: {message.rstrip('.')}. {advice}.",
        "not_admitted",
        admitted=False,
        retry_safe=retry_safe,
    )
