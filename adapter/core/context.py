"""What is remembered of a turn, and what is let go when that becomes too much (S3-L8).

A turn of thousands of steps would otherwise be remembered in whole until it ends. What the client
has is kept; only the means to add to it go: first those of messages that are over, of sub-agents
before the turn's own, then what the running calls were told, and if it is still too much nothing
new of a message is taken up.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Final

from adapter.core import ambient, children
from adapter.core.heard import part_of
from adapter.core.offsets import Part, State
from adapter.core.state import Foreign, Message, SessionState, Turn
from adapter.core.values import Counted, Notice, Output
from adapter.core.weights import ENTRY, MESSAGES, SLACK, texts_of
from adapter.limits import Bound
from contract import events as ev

NOTICE: Final = "limit"


def admits(state: SessionState, event: ev.Event) -> bool:
    """Whether the event may add what it speaks of to the turn's context."""
    if not isinstance(event, ev.PartEvent | ev.ToolEvent):
        return True
    message = state.messages.get(event.message_id)
    if message is None or message.folded:
        return True
    if isinstance(event, ev.ToolEvent):
        is_known = event.call_id in message.tools
    else:
        is_known = state.offsets.state(state.id, part_of(event)) is not None
    if is_known:
        return True
    turn = state.turns[message.turn_id]
    return _fold(state, turn, state.limits.turn_context_bytes - ENTRY) <= 0


def refused(state: SessionState, event: ev.Event) -> list[Output]:
    """What follows from an event that is not taken up."""
    message = state.messages.get(event.message_id) if isinstance(event, ev.MessageEvent) else None
    if message is None:
        return []
    turn = state.turns[message.turn_id]
    if isinstance(event, ev.ToolCalled | ev.ToolProgress | ev.ToolSuccess):
        turn.tool_ran = True
    out: list[Output] = [Counted(Bound.TURN_CONTEXT_BYTES)]
    if not turn.overfull:
        turn.overfull = True
        words = "This step of the turn is too large to be shown in whole; the turn goes on."
        out.append(Notice(turn.owner, NOTICE, words, {"limit": Bound.TURN_CONTEXT_BYTES.value}))
    return out


def tend(state: SessionState, event: ev.Event) -> list[Output]:
    """After an event: let go of what is over the limit."""
    if not isinstance(event, ev.StepStarted | ev.ToolEvent):
        return []
    message = state.messages.get(event.message_id)
    if message is None:
        return []
    turn = state.turns[message.turn_id]
    if isinstance(event, ev.StepStarted):
        _drop_oldest(state, turn)
    excess = _fold(state, turn, state.limits.turn_context_bytes)
    return _lighten(message, excess) if excess > 0 else []


def child_heard(state: SessionState, event: ev.Event) -> list[Output]:
    """What an event of a descendant shows, if the turn that it works for may remember it.

    Half of what a turn remembers is for its own messages, whatever works for it. Not every client
    is shown this, so that only the count tells of what is not taken up.
    """
    turn = children.turn_of(state, event.session_id)
    if turn is None or not isinstance(event, ev.PartEvent | ev.ToolEvent):
        return children.heard(state, event)
    if children.adds(state, event) and _fold_beside(state, turn, ENTRY) > 0:
        return [Counted(Bound.TURN_CONTEXT_BYTES)]
    out = children.heard(state, event)
    excess = _fold_beside(state, turn) if isinstance(event, ev.ToolEvent) else 0
    calls = children.lighten(state, turn, excess) if excess > 0 else 0
    return out + ([Counted(Bound.TURN_CONTEXT_BYTES, calls)] if calls else [])


def _fold_beside(state: SessionState, turn: Turn, room: int = 0) -> int:
    """Make `room` for a descendant of the turn; bytes that are lacking."""
    limit = state.limits.turn_context_bytes
    excess = children.weight(state, turn) - (limit // 2 - room)
    excess -= children.fold(state, turn, excess + limit // SLACK) if excess > 0 else 0
    return max(excess, _fold(state, turn, limit - room))


def _fold(state: SessionState, turn: Turn, limit: int) -> int:
    """Fold messages, the oldest first, until the turn is within the limit; bytes still over it."""
    parts = _parts(state)
    own = [
        (key, one)
        for key, one in state.messages.items()
        if not one.folded and one.turn_id == turn.id
    ]
    weight = sum(_weight(one, len(parts[key])) for key, one in own) + children.weight(state, turn)
    weight -= children.fold(state, turn, weight - limit) if weight > limit else 0
    for key, message in own[:-1]:
        if weight <= limit:
            break
        if not _is_over(state, message, parts[key]):
            continue
        weight -= _weight(message, len(parts[key]))
        state.fold(key)
    return weight - limit


def _is_over(state: SessionState, message: Message, parts: list[Part]) -> bool:
    if message.open_tools():
        return False
    return all(state.offsets.state(state.id, part) is State.CLOSED for part in parts)


def _parts(state: SessionState) -> dict[str, list[Part]]:
    found: dict[str, list[Part]] = defaultdict(list)
    for part in state.offsets.parts(state.id):
        found[part.message_id].append(part)
    return found


def _drop_oldest(state: SessionState, turn: Turn) -> None:
    """Forget messages that no reading shows any more, but for calls that are still open."""
    own = [key for key, one in state.messages.items() if one.turn_id == turn.id]
    for key in own[:-MESSAGES]:
        if state.messages[key].open_tools():
            continue
        del state.messages[key]
        state.offsets.take(state.id, key)
        state.disown(key, Foreign.SETTLED)
        ambient.settled(state, turn, (key,))


def _lighten(message: Message, excess: int) -> list[Output]:
    """Let go of what the message's running calls were told, the largest first."""
    hits = 0
    for tool in sorted(message.open_tools(), key=texts_of, reverse=True):
        size = texts_of(tool)
        if excess <= 0 or not size:
            break
        excess -= size
        hits += 1
        message.tools[tool.call_id] = replace(tool, input=None, metadata=None)
    return [Counted(Bound.TURN_CONTEXT_BYTES, hits)] if hits else []


def _weight(message: Message, parts: int) -> int:
    """Bytes that are remembered of a message that is not folded."""
    texts = sum(texts_of(tool) for tool in message.open_tools())
    return ENTRY * (1 + len(message.tools) + parts) + texts
