"""Answers to permission requests (lifecycle rules 14 and 15).

A rejection is held while a sibling still waits for its client or an approval is under way,
because the server rejects the siblings of a rejected ask and ends the turn. A form is no sibling:
rejecting a permission leaves an open form of the session as it was, and the other way round
(measured on 2.0.15).
"""

from __future__ import annotations

from adapter.core.state import Ask, AskStep, CancelStep, SessionState
from adapter.core.values import Answered, AskReason, Decision, Output, Reply
from contract.shapes import PermissionAsk


def answered(state: SessionState, given: Answered) -> list[Output]:
    """The client's answer; a second one, or one for an ask that is over, changes nothing."""
    ask = state.asks.get(given.ask_id)
    if ask is None or ask.step is not AskStep.SHOWN or not ask.is_permission:
        return []
    return decided(state, ask, given.decision, given.why)


def decided(state: SessionState, ask: Ask, decision: Decision, reason: AskReason) -> list[Output]:
    """An approval goes at once, a rejection when its siblings allow it."""
    if ask.decision is None:
        ask.why = reason
    ask.decision = decision
    if decision == "reject":
        ask.step = AskStep.HELD
        return release(state, ask.ask.session_id)
    ask.step = AskStep.REPLYING
    return [reply(ask)]


def release(state: SessionState, session_id: str) -> list[Output]:
    """Send held rejections once no sibling waits for its client or for its approval."""
    siblings = [
        ask for ask in state.asks.values() if ask.is_permission and ask.ask.session_id == session_id
    ]
    if any(
        ask.step is AskStep.SHOWN
        or (ask.step is AskStep.REPLYING and ask.decision in ("once", "always"))
        for ask in siblings
    ):
        return []
    out: list[Output] = []
    for ask in siblings:
        if ask.step is AskStep.HELD and ask.decision == "reject" and not _stopping(state, ask):
            ask.step = AskStep.REPLYING
            blame(state, ask)
            out.append(reply(ask))
    return out


def blame(state: SessionState, ask: Ask) -> None:
    """Remember the step of a rejection of ours: it may be what ends the turn (rule 15)."""
    turn = state.turns.get(ask.turn_id) if ask.turn_id else None
    given = ask.ask
    if turn is None or not isinstance(given, PermissionAsk) or given.session_id != state.id:
        return
    if given.source is not None and given.source.message_id:
        turn.rejected_in.add(given.source.message_id)


def reply(ask: Ask) -> Reply:
    """The request of a decision; anything that is no approval is a rejection."""
    match ask.decision:
        case "once":
            return Reply(ask.ask.session_id, ask.ask.id, "once", why=ask.why)
        case "always":
            return Reply(ask.ask.session_id, ask.ask.id, "always", why=ask.why)
        case decision:
            go_on = decision != "stop"
            reason: AskReason = ask.why if go_on else "cancel"
            return Reply(ask.ask.session_id, ask.ask.id, "reject", go_on, reason)


def _stopping(state: SessionState, ask: Ask) -> bool:
    """Whether the ask's turn is being stopped by one request, which settles the ask too."""
    turn = state.turns.get(ask.turn_id) if ask.turn_id else None
    return turn is not None and turn.cancel is not CancelStep.NONE
