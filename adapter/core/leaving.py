"""Turns whose client goes, or whose session is let go of, before they have ended."""

from __future__ import annotations

from adapter.core import asks
from adapter.core.settle import left_running, settle, stopped, unknown
from adapter.core.state import CancelStep, Phase, SessionState
from adapter.core.values import Interrupt, Left, Output, Stop, StopChild, Withdraw


def left(state: SessionState, given: Left) -> list[Output]:
    """A client that left: stop or withdraw its turn, or deny its asks, and go."""
    turn = state.of_owner(given.owner)
    if turn is None:
        return []
    out: list[Output] = []
    # What its client has cancelled is stopped, whatever becomes of other turns.
    stops = given.interrupt or turn.cancel_asked
    goes_on = not stops or turn.borrowed or turn.follows is not None
    if not goes_on:
        if turn.phase is Phase.CALLED and turn.child is not None:
            out.append(StopChild(turn.child))
        elif turn.phase is Phase.RUNNING and turn.cancel is not CancelStep.STOPPING:
            out.append(Interrupt(turn.id))
        elif turn.phase is not Phase.RUNNING:
            out.append(Withdraw(turn.id))
        # Nobody waits for the end, but whatever is not stopped yet has to be.
        turn.cancel = CancelStep.STOPPING
        turn.mark = "unconfirmed"
    else:
        out.extend(asks.deny_of(state, turn))
    end = stopped(turn, Stop.CANCELLED) if stops else left_running(turn)
    return out + settle(state, turn, end, item_goes_on=goes_on)


def let_go(state: SessionState) -> list[Output]:
    """Every turn that is left is answered: what becomes of it is not seen here."""
    why = "the session was let go of here"
    out: list[Output] = []
    for turn in state.leaving():
        out.extend(settle(state, turn, unknown(turn, why)))
    return out
