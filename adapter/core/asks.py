"""Permission requests and forms (lifecycle rules 14 to 16).

An ask is shown to the client only for a running turn of its own, and answered on the session
that owns it. A rejection is held while a sibling still waits for its client or an approval is
under way, because the server rejects the siblings of a rejected ask and ends the turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from adapter.core import cancel, waiting
from adapter.core.state import (
    OPEN_ASKS_BOUND,
    TURN_ASKS_BOUND,
    Ask,
    AskStep,
    CancelStep,
    SessionState,
    Turn,
)
from adapter.core.values import (
    Answered,
    AnswerForm,
    Arm,
    AskClient,
    Disarm,
    Notice,
    Output,
    Replied,
    Reply,
    Tool,
    WithdrawAsk,
)
from contract import events as ev
from contract.shapes import Form, PermissionAsk

# Times `unattended` that an ask is left while the root runs a turn of somebody else.
ACTIVE_PATIENCE: Final = 5


def appeared(state: SessionState, ask: PermissionAsk) -> list[Output]:
    """An ask of this session or of a descendant; one that is known already is left alone.

    Unless it was taken for somebody else's, before its turn was known to run.
    """
    known = state.asks.get(ask.id)
    if known is not None and known.step is not AskStep.UNATTENDED:
        return []
    turn = _turn_of(state, ask)
    if turn is None:
        return _unattended(state, ask) if known is None else []
    out: list[Output] = [Disarm(f"unattended:{ask.id}")] if known is not None else []
    return out + _of_turn(state, turn, ask)


def _of_turn(state: SessionState, turn: Turn, ask: PermissionAsk) -> list[Output]:
    """Show the ask to the turn's client, within the bounds."""
    turn.asks += 1
    if turn.asks > TURN_ASKS_BOUND:
        _blame(state, turn, ask)
        return [Reply(ask.session_id, ask.id, "reject")]
    if turn.cancel is not CancelStep.NONE:
        # The stop of the turn settles it; nobody is asked any more.
        state.asks[ask.id] = Ask(ask, turn.id, AskStep.HELD)
        return []
    if len(state.asks) >= OPEN_ASKS_BOUND:
        state.asks[ask.id] = Ask(ask, turn.id, AskStep.HELD, "reject")
        return _release(state, ask.session_id)
    state.asks[ask.id] = Ask(ask, turn.id, AskStep.SHOWN)
    return [AskClient(turn.owner, ask, _tool_of(state, ask))]


def answered(state: SessionState, given: Answered) -> list[Output]:
    """The client's answer; a second one, or one for an ask that is over, changes nothing."""
    ask = state.asks.get(given.ask_id)
    if ask is None or ask.step is not AskStep.SHOWN:
        return []
    ask.decision = given.decision
    if given.decision == "reject":
        ask.step = AskStep.HELD
        return _release(state, ask.ask.session_id)
    ask.step = AskStep.REPLYING
    return [Reply(ask.ask.session_id, ask.ask.id, given.decision)]


def replied(state: SessionState, given: Replied) -> list[Output]:
    """The server has our reply, or says that somebody else settled the ask (404, 409)."""
    ask = state.asks.get(given.ask_id)
    if ask is None:
        return []
    if not given.settled:
        # Neither acknowledged nor forgotten: it is sent again as long as the ask is open.
        return [Arm(f"reply:{given.ask_id}", "reply")]
    del state.asks[given.ask_id]
    out: list[Output] = []
    if not given.found and ask.decision == "stop":
        out.extend(cancel.reject_missed(state, ask.turn_id))
    return out + _release(state, ask.ask.session_id)


def gone(state: SessionState, ask_id: str) -> list[Output]:
    """An ask was settled by somebody (a `replied` event, or it is missing in a read)."""
    ask = state.asks.get(ask_id)
    if ask is None or ask.decision == "stop":
        # The answer to the rejection that stops a turn says whether it did (`replied`).
        return []
    del state.asks[ask_id]
    out: list[Output] = []
    if ask.step is AskStep.UNATTENDED:
        out.append(Disarm(f"unattended:{ask_id}"))
    if ask.step is AskStep.SHOWN:
        out.append(WithdrawAsk(ask_id))
    return out + _release(state, ask.ask.session_id)


def tool_over(state: SessionState, message_id: str, call_id: str) -> list[Output]:
    """A tool ended while its ask was open: a user interrupt takes asks away silently."""
    over = [
        ask_id
        for ask_id, ask in state.asks.items()
        if ask.ask.source is not None
        and ask.ask.source.message_id == message_id
        and ask.ask.source.call_id == call_id
    ]
    return [output for ask_id in over for output in gone(state, ask_id)]


def reply_again(state: SessionState, ask_id: str) -> list[Output]:
    """A reply that did not reach the server; the pause before it is over."""
    ask = state.asks.get(ask_id)
    return [_reply(ask)] if ask is not None and ask.step is AskStep.REPLYING else []


def unattended(state: SessionState, ask_id: str) -> list[Output]:
    """Nobody answered an ask that no turn of ours owns, for a while: the reads say whose it is."""
    ask = state.asks.get(ask_id)
    if ask is None or ask.step is not AskStep.UNATTENDED:
        return []
    if ask.ask.session_id == state.id and ask.turn_id is None and not state.waiting():
        # A turn of somebody else asks, and holds up nothing of ours.
        return [Arm(f"unattended:{ask_id}", "unattended")]
    ask.due = True
    ask.patience -= 1
    return [waiting.look(state)]


def reject_overdue(state: SessionState, *, active: bool) -> list[Output]:
    """Reject what is due, so that work goes on.

    While the root runs a turn that is not ours the ask is probably that turn's, and its front end
    may still be thinking: such an ask is left `ACTIVE_PATIENCE` times as long.
    """
    out: list[Output] = []
    for ask_id, ask in state.asks.items():
        if ask.step is not AskStep.UNATTENDED or not ask.due:
            continue
        if active and ask.patience > 0:
            ask.due = False
            out.append(Arm(f"unattended:{ask_id}", "unattended"))
        else:
            ask.step = AskStep.REPLYING
            ask.decision = "reject"
            out.append(_reply(ask))
    return out


def resend(state: SessionState, listed: frozenset[str]) -> list[Output]:
    """After a gap: replies that did not arrive are sent again, vanished asks withdrawn."""
    out: list[Output] = [
        _reply(ask)
        for ask_id, ask in state.asks.items()
        if ask_id in listed and ask.step is AskStep.REPLYING
    ]
    for ask_id, ask in list(state.asks.items()):
        if ask_id in listed:
            continue
        if ask.decision == "stop":
            del state.asks[ask_id]
        else:
            out.extend(gone(state, ask_id))
    return out


def listed(
    state: SessionState, shown: Sequence[PermissionAsk], heard: Sequence[ev.Event]
) -> list[Output]:
    """The asks of a snapshot, but for those that an event heard since then has settled."""
    settled = {event.request_id for event in heard if isinstance(event, ev.PermissionReplied)}
    over = {
        (event.message_id, event.call_id)
        for event in heard
        if isinstance(event, ev.ToolSuccess | ev.ToolFailed)
    }
    return [
        output
        for ask in shown
        if state.follows(ask.session_id) and ask.id not in settled
        if ask.source is None or (ask.source.message_id, ask.source.call_id) not in over
        for output in appeared(state, ask)
    ]


def listed_forms(
    state: SessionState, shown: Sequence[Form], heard: Sequence[ev.Event]
) -> list[Output]:
    """The forms of a snapshot, but for those that an event heard since then speaks of."""
    known = {
        event.form.id if isinstance(event, ev.FormCreated) else event.form_id
        for event in heard
        if isinstance(event, ev.FormCreated | ev.FormReplied | ev.FormCancelled)
    }
    return [
        output
        for given in shown
        if state.follows(given.session_id) and given.id not in known
        for output in form(state, given)
    ]


def forget_all(state: SessionState) -> list[Output]:
    """The session is gone, and its asks with it."""
    out = [output for ask_id in list(state.asks) for output in gone(state, ask_id)]
    state.asks.clear()
    return out


def form(state: SessionState, given: Form) -> list[Output]:
    """A form of a running turn of ours is answered with nothing, so that the turn goes on.

    The model is told "Unanswered" (facts, section 6). Forms of others are left to them.
    """
    turn = state.head()
    if turn is None or turn.cancel is not CancelStep.NONE:
        return []
    return [
        Notice(
            turn.owner,
            "form",
            "The agent asked a question that this client cannot show; it goes on without an "
            "answer.",
        ),
        AnswerForm(given.session_id, given.id),
    ]


def _reply(ask: Ask) -> Reply:
    match ask.decision:
        case "once":
            return Reply(ask.ask.session_id, ask.ask.id, "once")
        case "always":
            return Reply(ask.ask.session_id, ask.ask.id, "always")
        case decision:
            return Reply(ask.ask.session_id, ask.ask.id, "reject", go_on=decision != "stop")


def _release(state: SessionState, session_id: str) -> list[Output]:
    """Send held rejections once no sibling waits for its client or for its approval."""
    siblings = [ask for ask in state.asks.values() if ask.ask.session_id == session_id]
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
            turn = state.turns.get(ask.turn_id) if ask.turn_id else None
            if turn is not None:
                _blame(state, turn, ask.ask)
            out.append(_reply(ask))
    return out


def _blame(state: SessionState, turn: Turn, ask: PermissionAsk) -> None:
    """Remember the step of a rejection of ours: it may be what ends the turn (rule 15)."""
    if ask.source is not None and ask.source.message_id and ask.session_id == state.id:
        turn.rejected_in.add(ask.source.message_id)


def _stopping(state: SessionState, ask: Ask) -> bool:
    """Whether the ask's turn is being stopped by one request, which settles the ask too."""
    turn = state.turns.get(ask.turn_id) if ask.turn_id else None
    return turn is not None and turn.cancel is not CancelStep.NONE


def _turn_of(state: SessionState, ask: PermissionAsk) -> Turn | None:
    """The running turn of ours that the ask belongs to."""
    head = state.head()
    if ask.session_id != state.id:
        # A child asks the client whose turn made it, while that client has a turn that runs;
        # one that was found by the reads asks the head.
        if ask.session_id not in state.makers:
            return head
        owner = state.makers[ask.session_id]
        running = [state.turns[key] for key in state.running]
        return next((turn for turn in running if turn.owner == owner), None)
    if head is None:
        return None
    source = ask.source
    if source is None or source.message_id is None:
        return head
    message = state.message_of(source.message_id)
    return state.turns[message.turn_id] if message else None


def _unattended(state: SessionState, ask: PermissionAsk) -> list[Output]:
    """An ask without a turn of ours: a child's is rejected in the end.

    The root asks for a turn that somebody else prompted, whose front end has no deadline; it is
    rejected only after a turn of ours has waited behind it, since that front end may be dead.
    """
    if len(state.asks) >= OPEN_ASKS_BOUND:
        return []
    state.asks[ask.id] = Ask(ask, None, AskStep.UNATTENDED, patience=ACTIVE_PATIENCE)
    out: list[Output] = [Arm(f"unattended:{ask.id}", "unattended")]
    for turn in state.waiting():
        out.extend(waiting.tell(turn, f"the answer of others to a permission ({ask.action})"))
    return out


def _tool_of(state: SessionState, ask: PermissionAsk) -> Tool | None:
    source = ask.source
    if source is None or source.message_id is None or source.call_id is None:
        return None
    message = state.messages.get(source.message_id)
    return message.tools.get(source.call_id) if message else None
