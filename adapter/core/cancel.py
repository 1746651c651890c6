"""Cancel (lifecycle rules 11 to 13).

Recorded only for a turn in flight. An undelivered turn is withdrawn, a delivered one is
stopped by exactly one request: the rejection of its own open ask, or the interrupt. Never
both, since the second would stop whoever runs next.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from adapter.core import forms
from adapter.core.reconcile import newest_prompt
from adapter.core.settle import settle, stopped
from adapter.core.state import Ask, AskStep, CancelStep, Loose, Phase, SessionState, Turn
from adapter.core.values import (
    Arm,
    Counted,
    Interrupt,
    Notice,
    Output,
    Reply,
    Snapshot,
    Stop,
    StopChild,
    Withdraw,
    WithdrawAsk,
)
from adapter.core.waiting import look
from adapter.limits import Bound


def asked(state: SessionState, owner: int) -> list[Output]:
    """The owner cancels its turn; a no-op without one, and the second time."""
    turn = state.of_owner(owner)
    if turn is None:
        return []
    if turn.cancel is not CancelStep.NONE:
        # A client that cancels a turn that is stopped for its length is answered as it asked.
        turn.overtime = False
        return []
    turn.cancel = CancelStep.ASKED
    if turn.borrowed or turn.follows is not None:
        return give_up(state, turn)
    out: list[Output] = [Arm(f"cancel:{turn.id}", "cancel")]
    out.extend(_take_back(state, turn))
    match turn.phase:
        case Phase.SUBMITTING:
            return out
        case Phase.CALLED:
            return out + ([StopChild(turn.child)] if turn.child is not None else [])
        case Phase.WAITING:
            return out + withdraw(turn)
        case Phase.RUNNING if state.gap:
            # Whoever runs now may be another: the snapshot stands in for the missing events.
            return out
        case Phase.RUNNING:
            return out + stop(state, turn)


def overtime(state: SessionState, turn_id: str) -> list[Output]:
    """`prompt.max_seconds` is over (rule 7): stopped as by a cancel, and answered as a limit."""
    turn = state.turns.get(turn_id)
    if turn is None or turn.cancel is not CancelStep.NONE:
        return []
    turn.overtime = True
    return asked(state, turn.owner)


def give_up(state: SessionState, turn: Turn) -> list[Output]:
    """A turn whose item is another's too: its client is answered, and nothing is stopped."""
    notice = Notice(
        turn.owner,
        "compaction_goes_on",
        "Others have asked for this compaction too, so it goes on; this turn waits no more.",
    )
    return [notice, *settle(state, turn, stopped(turn, Stop.CANCELLED), item_goes_on=True)]


def withdraw(turn: Turn) -> list[Output]:
    """Take an undelivered turn out of the inbox; the event tells whether that worked."""
    turn.cancel = CancelStep.WITHDRAWING
    return [Withdraw(turn.id)]


def stop(state: SessionState, turn: Turn) -> list[Output]:
    """Stop a delivered turn by one request.

    A rejection ends the turn once nothing else of its step is open, so it serves for nothing but
    permissions: the server waits for a tool that runs, a sub-agent or a form for as long as those
    take (measured on 2.0.15).
    """
    turn.cancel = CancelStep.STOPPING
    out = _take_back(state, turn) + forms.abandon(state, turn)
    own = [
        ask
        for ask in state.asks.values()
        if ask.turn_id == turn.id and ask.is_permission and ask.ask.session_id == state.id
    ]
    if any(ask.decision == "stop" for ask in own):
        # Its rejection is on the way, and an interrupt on top would stop the next turn.
        return out
    held = [ask for ask in own if ask.step is AskStep.HELD]
    if not held or _else_open(state, turn, held):
        return [*out, Interrupt(turn.id)]
    held[0].step = AskStep.REPLYING
    held[0].decision = "stop"
    return [*out, Reply(state.id, held[0].ask.id, "reject", go_on=False, why="cancel")]


def _else_open(state: SessionState, turn: Turn, held: list[Ask]) -> bool:
    """Whether the turn has anything open besides the calls that these permissions are of."""
    if any(ask.turn_id == turn.id and not ask.is_permission for ask in state.asks.values()):
        return True
    sources = {
        (one.ask.source.message_id, one.ask.source.call_id) for one in held if one.ask.source
    }
    return any(
        (message_id, tool.call_id) not in sources
        for message_id, message in state.messages.items()
        if message.turn_id == turn.id
        for tool in message.open_tools()
    )


def reject_missed(state: SessionState, turn_id: str | None) -> list[Output]:
    """The ask that was to be rejected was gone already (404): interrupt instead."""
    turn = state.turns.get(turn_id) if turn_id else None
    if turn is None or turn.cancel is not CancelStep.STOPPING or turn.phase is not Phase.RUNNING:
        return []
    return [Interrupt(turn.id)]


def unclear(state: SessionState, turn: Turn) -> list[Output]:
    """The POST got no definite answer and no retry may be started: withdraw in any case.

    A command cannot be named yet; its closed socket ends it, unless its item shows up after all.
    """
    if not turn.is_named:
        return overdue(state, turn)
    turn.phase = Phase.WAITING
    return withdraw(turn)


def late(state: SessionState, turn: Turn) -> list[Output]:
    """`cancel_seconds` are over and the end was not seen."""
    return [Counted(Bound.CANCEL_SECONDS), *overdue(state, turn)]


def overdue(state: SessionState, turn: Turn) -> list[Output]:
    """The end will not be seen: `cancelled` is answered all the same, and said so."""
    turn.mark = "unconfirmed"
    notice = Notice(
        turn.owner,
        "cancel_unconfirmed",
        "The server has not confirmed that the turn stopped; it is stopped as soon as it can be.",
    )
    return [notice, *settle(state, turn, stopped(turn, Stop.CANCELLED))]


@dataclass(frozen=True, slots=True)
class Sent:
    """The cancels as they stood before the buffer of a snapshot was replayed."""

    stopping: frozenset[str]
    loose: Mapping[str, Loose]


def sent(state: SessionState) -> Sent:
    stopping = {key for key, turn in state.turns.items() if turn.cancel is CancelStep.STOPPING}
    return Sent(frozenset(stopping), dict(state.loose))


def after_snapshot(
    state: SessionState, snapshot: Snapshot, before: Sent, *, in_gap: bool
) -> list[Output]:
    """What a cancel still has to send once the snapshot stands (rules 11, 12 and 13).

    What was sent on a feed without a gap is not sent again: its event is still to come. Nor is
    what the replay of the buffer has just sent.
    """
    out: list[Output] = []
    newest = newest_prompt(snapshot.rows)
    for turn in state.turns.values():
        match turn.phase, turn.cancel:
            case _, CancelStep.NONE:
                continue
            case Phase.WAITING, _ if in_gap:
                out.extend(withdraw(turn))
            case Phase.CALLED, _ if in_gap and turn.child is not None:
                out.append(StopChild(turn.child))
            case Phase.RUNNING, CancelStep.STOPPING if not in_gap or turn.id not in before.stopping:
                continue
            case Phase.RUNNING, _:
                out.extend(stop(state, turn) if turn.id == newest else [])
    for key, loose in list(state.loose.items()):
        if before.loose.get(key) is not loose:
            continue
        if loose is not Loose.ENDED and key in snapshot.inbox:
            out.append(Withdraw(key))
        elif loose is not Loose.ENDED and key in snapshot.busy:
            out.append(StopChild(key))
        elif loose is not Loose.ENDED and snapshot.active and key == newest:
            state.loose[key] = Loose.RUNNING
            out.append(Interrupt(key))
        else:
            del state.loose[key]
    return out


def loose_due(state: SessionState) -> list[Output]:
    """A cancel is still not confirmed: the reads say whether it has to be sent again."""
    if not any(loose is not Loose.ENDED for loose in state.loose.values()):
        return []
    again: list[Output] = [Arm("loose", "loose")]
    return again if state.gap else [look(state), *again]


def loose_heard(state: SessionState, turn_id: str, *, delivered: bool) -> list[Output]:
    """A prompt whose cancel outlived its turn shows up at the server after all (rule 13)."""
    if turn_id not in state.loose:
        return []
    if not delivered:
        return [Withdraw(turn_id)]
    state.loose[turn_id] = Loose.RUNNING
    return [Interrupt(turn_id)]


def loose_over(state: SessionState) -> bool:
    """An execution ended, and with it every delivered prompt; whether one was being stopped."""
    over = [key for key, loose in state.loose.items() if loose is not Loose.QUEUED]
    for key in over:
        del state.loose[key]
    return bool(over)


def _take_back(state: SessionState, turn: Turn) -> list[Output]:
    """`$/cancel_request` for what the client was asked; the asks themselves stay known."""
    out: list[Output] = []
    for ask_id, ask in state.asks.items():
        if ask.turn_id == turn.id and ask.step is AskStep.SHOWN:
            ask.step = AskStep.HELD
            out.append(WithdrawAsk(ask_id))
    return out
