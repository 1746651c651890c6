"""Work of a session that a client did not prompt, shown to the one that asked for it.

Prompts of other front ends and connections, and executions that nobody prompted (children and
shells that ran in the background). Each attachment opts in for itself. It is no turn: nothing is
asked, nothing is settled, and it ends with the attachment (requirements S2-20 to S2-45).

A message that a turn of the attachment owns is shown by that turn alone; nor is one shown that
such a turn may own because events were missed. One that a turn claims after all, since it takes an
answer over or the reads say so, brings along how far it was shown (`SessionState.inherit`).
"""

from __future__ import annotations

from collections.abc import Collection

from adapter.core.spectator import Spectator
from adapter.core.state import Phase, SessionState, Turn
from adapter.core.values import Output
from contract import events as ev
from contract.reads import AssistantRow


def heard(state: SessionState, event: ev.Event) -> list[Output]:
    """What spectators are shown of an event of the root, after the turns had it."""
    if not state.ambience:
        return []
    match event:
        case ev.InboxEnqueued() if event.item.type == "user":
            state.ambience.wrote(event.inbox_id, event.item.payload.text)
        case ev.InboxCancelled():
            state.ambience.text_of(event.inbox_id)
        case ev.InboxDelivered():
            return _delivered(state, event.inbox_id)
        case ev.ExecutionSucceeded() | ev.ExecutionFailed() | ev.ExecutionInterrupted():
            for spectator in state.ambience:
                spectator.end()
        case ev.MessageEvent():
            return [out for one in state.ambience for out in _shown(state, one, event)]
        case _:
            pass
    return []


def settled(state: SessionState, turn: Turn, messages: Collection[str]) -> None:
    """What is still heard of the turn's messages is no news of others."""
    spectator = state.ambience.of(turn.owner)
    if spectator is not None:
        spectator.prompts(turn.id)
        for message_id in messages:
            spectator.hide(message_id)


def loads(state: SessionState, owner: int) -> None:
    """The client is shown all rows anew."""
    spectator = state.ambience.of(owner)
    if spectator is not None:
        spectator.restart()


def loaded(state: SessionState, owner: int, row: AssistantRow | None) -> None:
    """The rows were shown; `row` is the message that was not finished, if there is one."""
    spectator = state.ambience.of(owner)
    if spectator is not None and row is not None and _owner(state, row.id) != owner:
        spectator.seed(row)


def hold(state: SessionState) -> None:
    """Events were missed."""
    for spectator in state.ambience:
        spectator.hold()


def _delivered(state: SessionState, inbox_id: str) -> list[Output]:
    text = state.ambience.text_of(inbox_id)
    turn = state.turns.get(inbox_id)
    out: list[Output] = []
    for spectator in state.ambience:
        if state.kinds.get(inbox_id, "user") != "user":
            spectator.carry_on(inbox_id)
        elif turn is None or turn.owner != spectator.owner:
            out.extend(spectator.begin(inbox_id, text))
        elif not turn.shared:
            spectator.end()
    return out


def _shown(state: SessionState, spectator: Spectator, event: ev.MessageEvent) -> list[Output]:
    if _owner(state, event.message_id) == spectator.owner:
        return []
    if state.gap:
        spectator.miss(event.message_id)
        return []
    doubtful = state.ambience.replaying or _may_own(state, spectator.owner)
    return [*spectator.hear(event, doubtful=doubtful)]


def _owner(state: SessionState, message_id: str) -> int | None:
    message = state.messages.get(message_id)
    return state.turns[message.turn_id].owner if message is not None else None


def _may_own(state: SessionState, owner: int) -> bool:
    """Whether the delivery of a prompt of the attachment may have been missed."""
    turn = state.of_owner(owner)
    return turn is not None and turn.phase is not Phase.RUNNING and turn.gaps > 0
