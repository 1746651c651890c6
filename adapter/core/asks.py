"""Permission requests and forms in one table (lifecycle rules 14 to 16).

An ask is shown to the client only for a running turn of its own, and answered on the session
that owns it. What is of one kind alone stands in permissions.py and forms.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from adapter.core import cancel, children, elicited, forms, permissions, waiting
from adapter.core.state import (
    ACTIVE_PATIENCE,
    Ask,
    AskStep,
    CancelStep,
    SessionState,
    Turn,
)
from adapter.core.values import (
    Arm,
    AskClient,
    AskReason,
    Counted,
    Disarm,
    Output,
    Replied,
    ShowForm,
    Snapshot,
    Tool,
    WithdrawAsk,
)
from adapter.limits import Bound
from contract import events as ev
from contract.shapes import GLOBAL, Form, PermissionAsk

# Asks of one session that are known at once, those that are declined and not settled yet as well.
# One more is left to the reads, which show it again after a silence (rule 7).
KNOWN_BOUND: Final = 1024


def appeared(state: SessionState, given: PermissionAsk | Form) -> list[Output]:
    """An ask of this session or of a descendant; one that is known already is left alone.

    Unless it was taken for somebody else's, before its turn was known to run.
    """
    known = state.asks.get(given.id)
    if known is not None and known.step is not AskStep.UNATTENDED:
        return []
    turn = _turn_of(state, given)
    if turn is None:
        return _unattended(state, given) if known is None else []
    out: list[Output] = [Disarm(f"unattended:{given.id}")] if known is not None else []
    return out + _of_turn(state, turn, given)


def _of_turn(state: SessionState, turn: Turn, given: PermissionAsk | Form) -> list[Output]:
    """Show the ask to the turn's client, within the bounds."""
    if len(state.asks) >= KNOWN_BOUND and given.id not in state.asks:
        return [Counted(Bound.TURN_ASKS)]
    turn.asks += 1
    full = len(state.asks) >= state.limits.open_asks
    ask = state.asks[given.id] = Ask(given, turn.id, AskStep.HELD)
    if turn.cancel is not CancelStep.NONE:
        # Nobody is asked any more. The stop of the turn settles it, if it is not an MCP server's.
        return forms.dismiss(ask) if given.session_id == GLOBAL else []
    if turn.asks > state.limits.turn_asks:
        return [Counted(Bound.TURN_ASKS), *deny(state, ask, "limit")]
    if full:
        return [Counted(Bound.OPEN_ASKS), *deny(state, ask, "limit")]
    ask.step = AskStep.SHOWN
    tool = _tool_of(state, given)
    own = given.session_id in (state.id, GLOBAL)
    child = None if own else state.titles.get(given.session_id, "")
    origin = None if own else children.origin_of(state, given.session_id)
    if isinstance(given, Form):
        return [ShowForm(turn.owner, given, tool, child, origin)]
    return [AskClient(turn.owner, given, tool, child, origin)]


def deny(state: SessionState, ask: Ask, reason: AskReason) -> list[Output]:
    """Refuse a permission once its siblings allow it; leave a form unanswered.

    It stays known until the server's word: the request may get lost, or be refused.
    """
    if ask.is_permission:
        return permissions.decided(state, ask, "reject", reason)
    return forms.left_unanswered(ask)


def settlement(ask: Ask) -> Output:
    """The request that settles an ask as it was decided."""
    return forms.reply(ask, ask.ask) if isinstance(ask.ask, Form) else permissions.reply(ask)


def replied(state: SessionState, given: Replied) -> list[Output]:
    """The server has our reply, or says that somebody else settled the ask (404, 409)."""
    ask = state.asks.get(given.ask_id)
    if ask is None:
        return []
    if given.refused and ask.decision == "answer":
        return forms.refused(state, ask)
    if not given.settled:
        # Neither acknowledged nor forgotten: it is sent again as long as the ask is open.
        return [Arm(f"reply:{given.ask_id}", "reply")]
    del state.asks[given.ask_id]
    out: list[Output] = []
    if not given.found and ask.decision == "stop":
        out.extend(cancel.reject_missed(state, ask.turn_id))
    return out + permissions.release(state, ask.ask.session_id)


def gone(state: SessionState, ask_id: str) -> list[Output]:
    """An ask was settled by somebody (an event says so, or it is missing in a read)."""
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
    return out + permissions.release(state, ask.ask.session_id)


def tool_over(state: SessionState, event: ev.ToolSuccess | ev.ToolFailed) -> list[Output]:
    """A tool ended while its ask was open: a user interrupt takes permissions away silently."""
    over = [
        ask_id
        for ask_id, ask in state.asks.items()
        if ask.ask.source is not None
        and ask.ask.source.message_id == event.message_id
        and ask.ask.source.call_id == event.call_id
    ]
    out = [output for ask_id in over for output in gone(state, ask_id)]
    return out + _caller_over(state, event)


def _caller_over(state: SessionState, event: ev.ToolSuccess | ev.ToolFailed) -> list[Output]:
    """The call of an MCP server ended, and no other one can be what its form is of.

    A call that succeeded did not ask; one that failed takes no answer any more.
    """
    out: list[Output] = []
    for ask_id, ask in list(state.asks.items()):
        form = ask.ask
        if not isinstance(form, Form) or form.session_id != GLOBAL:
            continue
        at = (event.message_id, event.call_id)
        if ask.step is AskStep.REPLYING or elicited.turn_of(state, form, at) is not None:
            continue
        if isinstance(event, ev.ToolSuccess):
            out.extend(gone(state, ask_id))
        else:
            out.extend([WithdrawAsk(ask_id)] if ask.step is AskStep.SHOWN else [])
            out.extend(forms.dismiss(ask))
    return out


def reply_again(state: SessionState, ask_id: str) -> list[Output]:
    """A reply that did not reach the server; the pause before it is over."""
    ask = state.asks.get(ask_id)
    return [settlement(ask)] if ask is not None and ask.step is AskStep.REPLYING else []


def unattended(state: SessionState, ask_id: str) -> list[Output]:
    """Nobody answered an ask that no turn of ours owns, for a while: the reads say whose it is."""
    ask = state.asks.get(ask_id)
    if ask is None or ask.step is not AskStep.UNATTENDED:
        return []
    if ask.ask.session_id == state.id and not ask.is_left and not state.waiting():
        # A turn of somebody else asks, and holds up nothing of ours.
        return [Arm(f"unattended:{ask_id}", "unattended")]
    ask.due = True
    ask.patience -= 1
    return [waiting.look(state)]


def deny_overdue(state: SessionState, *, active: bool) -> list[Output]:
    """Refuse what is due, so that work goes on.

    While the root runs a turn that is not ours the ask is probably that turn's, and its front end
    may still be thinking: such an ask is left `ACTIVE_PATIENCE` times as long.
    """
    out: list[Output] = []
    for ask_id, ask in list(state.asks.items()):
        if ask.step is not AskStep.UNATTENDED or not ask.due:
            continue
        if active and ask.patience > 0:
            ask.due = False
            out.append(Arm(f"unattended:{ask_id}", "unattended"))
        else:
            out.extend(deny(state, ask, "unattended"))
    return out


def deny_of(state: SessionState, turn: Turn) -> list[Output]:
    """A client that left lets its turn go on: what it was asked is refused at once."""
    if turn.cancel is CancelStep.STOPPING:
        # One request settles all of it.
        return []
    out: list[Output] = []
    theirs = [ask for ask in state.asks.values() if ask.turn_id == turn.id]
    for ask in theirs:
        if ask.step is AskStep.SHOWN:
            # None of them is a sibling that waits for its client any more.
            ask.step = AskStep.HELD
            out.append(WithdrawAsk(ask.ask.id))
    for ask in theirs:
        out.extend(deny(state, ask, "left") if ask.step is AskStep.HELD else [])
    return out


def deny_left(state: SessionState) -> list[Output]:
    """The process ends, and with it whoever would refuse later what turns of ours left behind."""
    left = [ask for ask in state.asks.values() if ask.is_left and ask.step is AskStep.UNATTENDED]
    out: list[Output] = [Disarm(f"unattended:{ask.ask.id}") for ask in left]
    return out + [output for ask in left for output in deny(state, ask, "left")]


def resend(state: SessionState, snapshot: Snapshot) -> list[Output]:
    """After a gap: replies that did not arrive are sent again, vanished asks withdrawn."""
    out: list[Output] = []
    for ask_id, ask in list(state.asks.items()):
        known = snapshot.asks if ask.is_permission else snapshot.forms
        if known is None:
            continue
        if any(one.id == ask_id for one in known):
            out.extend([settlement(ask)] if ask.step is AskStep.REPLYING else [])
        elif ask.decision == "stop":
            del state.asks[ask_id]
        else:
            out.extend(gone(state, ask_id))
    return out


def listed(
    state: SessionState, shown: Iterable[PermissionAsk | Form], heard: Sequence[ev.Event]
) -> list[Output]:
    """The asks of a snapshot, but for those that an event heard since then has settled."""
    settled = {event.request_id for event in heard if isinstance(event, ev.PermissionReplied)}
    settled |= {
        event.form_id for event in heard if isinstance(event, ev.FormReplied | ev.FormCancelled)
    }
    over = {
        (event.message_id, event.call_id)
        for event in heard
        if isinstance(event, ev.ToolSuccess | ev.ToolFailed)
    }
    return [
        output
        for ask in shown
        if ask.id not in settled and _is_ours(state, ask)
        if ask.source is None or (ask.source.message_id, ask.source.call_id) not in over
        for output in appeared(state, ask)
    ]


def forget_all(state: SessionState) -> list[Output]:
    """The session is gone, and its asks with it."""
    out = [output for ask_id in list(state.asks) for output in gone(state, ask_id)]
    state.asks.clear()
    return out


def _is_ours(state: SessionState, ask: PermissionAsk | Form) -> bool:
    if isinstance(ask, Form) and ask.session_id == GLOBAL:
        return elicited.turn_of(state, ask) is not None
    return state.follows(ask.session_id)


def heard_of_mcp(state: SessionState, event: ev.Event) -> list[Output]:
    """A form of an MCP server: the reads say whether it is one of this directory."""
    match event:
        case ev.FormCreated():
            ours = not state.gap and _is_ours(state, event.form)
            return [waiting.look(state)] if ours else []
        case ev.FormReplied() | ev.FormCancelled():
            return gone(state, event.form_id)
        case _:
            return []


def _turn_of(state: SessionState, ask: PermissionAsk | Form) -> Turn | None:
    """The running turn of ours that the ask belongs to."""
    head = state.head()
    if isinstance(ask, Form) and ask.session_id == GLOBAL:
        return elicited.turn_of(state, ask)
    if ask.session_id != state.id:
        carried = state.carried_by(ask.session_id)
        if carried is not None:
            return carried
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


def _unattended(state: SessionState, ask: PermissionAsk | Form) -> list[Output]:
    """An ask without a turn of ours: a child's is refused in the end.

    The root asks for a turn that somebody else prompted, whose front end has no deadline; it is
    refused only after a turn of ours has waited behind it, since that front end may be dead.
    """
    if len(state.asks) >= state.limits.open_asks:
        return [Counted(Bound.OPEN_ASKS)]
    is_left = state.makers.get(ask.session_id) is not None
    state.asks[ask.id] = Ask(
        ask, None, AskStep.UNATTENDED, patience=ACTIVE_PATIENCE, is_left=is_left
    )
    out: list[Output] = [Arm(f"unattended:{ask.id}", "unattended")]
    for turn in state.waiting():
        out.extend(waiting.tell(turn, waiting.asked_of_others(state)))
    return out


def _tool_of(state: SessionState, ask: PermissionAsk | Form) -> Tool | None:
    source = ask.source
    if source is None or source.message_id is None or source.call_id is None:
        return None
    if ask.session_id != state.id:
        return children.call_of(state, ask.session_id, (source.message_id, source.call_id))
    message = state.messages.get(source.message_id)
    return message.tools.get(source.call_id) if message else None
