"""Cancel (lifecycle rules 11 to 13).

Recorded only for a turn in flight. An undelivered turn is withdrawn, a delivered one is
stopped by exactly one request: the rejection of its own open ask, or the interrupt. Never
both, since the second would stop whoever runs next.
"""

from __future__ import annotations

from adapter.core.settle import settle, stopped
from adapter.core.state import AskStep, CancelStep, Phase, SessionState, Turn
from adapter.core.values import (
    Arm,
    Interrupt,
    Notice,
    Output,
    Reply,
    Snapshot,
    Stop,
    Withdraw,
    WithdrawAsk,
)
from contract.reads import IdleRow


def asked(state: SessionState, owner: int) -> list[Output]:
    """The owner cancels its turn; a no-op without one, and the second time."""
    turn = state.of_owner(owner)
    if turn is None or turn.cancel is not CancelStep.NONE:
        return []
    turn.cancel = CancelStep.ASKED
    out: list[Output] = [Arm(f"cancel:{turn.id}", "cancel")]
    out.extend(_take_back(state, turn))
    if state.gap:
        # The snapshot stands in for the events that are missing (recover.py acts on it).
        return out
    match turn.phase:
        case Phase.SUBMITTING:
            return out
        case Phase.WAITING:
            return out + withdraw(turn)
        case Phase.RUNNING:
            return out + stop(state, turn)


def withdraw(turn: Turn) -> list[Output]:
    """Take an undelivered turn out of the inbox; the event tells whether that worked."""
    turn.cancel = CancelStep.WITHDRAWING
    return [Withdraw(turn.id)]


def stop(state: SessionState, turn: Turn) -> list[Output]:
    """Stop a delivered turn by one request."""
    turn.cancel = CancelStep.STOPPING
    out = _take_back(state, turn)
    for ask_id, ask in state.asks.items():
        mine = ask.turn_id == turn.id and ask.ask.session_id == state.id
        if mine and ask.step in (AskStep.SHOWN, AskStep.HELD):
            ask.step = AskStep.REPLYING
            ask.decision = "stop"
            return [*out, Reply(state.id, ask_id, "reject", go_on=False)]
    return [*out, Interrupt(turn.id)]


def reject_missed(state: SessionState, turn_id: str | None) -> list[Output]:
    """The ask that was to be rejected was gone already (404): interrupt instead."""
    turn = state.turns.get(turn_id) if turn_id else None
    if turn is None or turn.cancel is not CancelStep.STOPPING or turn.phase is not Phase.RUNNING:
        return []
    return [Interrupt(turn.id)]


def unclear(state: SessionState, turn: Turn) -> list[Output]:
    """The POST got no definite answer and no retry may be started: withdraw in any case."""
    turn.phase = Phase.WAITING
    return withdraw(turn)


def overdue(state: SessionState, turn: Turn) -> list[Output]:
    """The end was not seen in time: `cancelled` is answered all the same, and said so."""
    turn.mark = "unconfirmed"
    if turn.phase is not Phase.SUBMITTING:
        state.loose_cancel = turn.id
    notice = Notice(
        turn.owner,
        "cancel_unconfirmed",
        "The server has not confirmed that the turn stopped; it is stopped as soon as it can be.",
    )
    return [notice, *settle(state, turn, stopped(turn, Stop.CANCELLED))]


def after_snapshot(state: SessionState, snapshot: Snapshot) -> list[Output]:
    """What a cancel still has to send once the snapshot stands (rules 11, 12 and 13)."""
    out: list[Output] = []
    for turn in state.turns.values():
        if turn.cancel is CancelStep.NONE:
            continue
        if turn.phase is Phase.WAITING:
            out.extend(withdraw(turn))
        elif turn.phase is Phase.RUNNING and _is_newest(snapshot, turn.id):
            out.extend(stop(state, turn))
    loose = state.loose_cancel
    if loose is not None:
        if loose in snapshot.inbox:
            out.append(Withdraw(loose))
        elif snapshot.active and _is_newest(snapshot, loose):
            out.append(Interrupt(loose))
        else:
            state.loose_cancel = None
    return out


def _is_newest(snapshot: Snapshot, turn_id: str) -> bool:
    """Whether X is the newest user, synthetic or idle row: else an interrupt hits another."""
    for row in reversed(snapshot.rows):
        if isinstance(row, IdleRow) or row.type in ("user", "synthetic"):
            return row.id == turn_id
    return False


def _take_back(state: SessionState, turn: Turn) -> list[Output]:
    """`$/cancel_request` for what the client was asked; the asks themselves stay known."""
    out: list[Output] = []
    for ask_id, ask in state.asks.items():
        if ask.turn_id == turn.id and ask.step is AskStep.SHOWN:
            ask.step = AskStep.HELD
            out.append(WithdrawAsk(ask_id))
    return out
