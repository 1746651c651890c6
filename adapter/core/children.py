"""What a turn's client is told of the descendants that work for it.

A child belongs to a call once the server has said so twice: by `session.created` with its parent,
and by the progress of the parent's call, which names it (OpenCode facts, section 10; the second
comes before anything that the child does). Results of tools make no child. A call in the
background is over at once, so nothing of its child is shown; nor is after the answer of the turn.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from adapter.core.errands import Errand, Helper
from adapter.core.heard import OVER
from adapter.core.state import SessionState, Turn
from adapter.core.values import OfChild, Output, Tool
from contract import events as ev
from contract.shapes import JsonObject

CALL_OVER: Final = "The call that this one worked for is over."


def of_call(state: SessionState, tool: Tool) -> list[Output]:
    """A call of the root's as it now stands: it may name its child, or be over."""
    at = (tool.message_id, tool.call_id)
    if tool.status in OVER:
        errand = state.errands.pop(at, None)
        return [*errand.end(CALL_OVER)] if errand is not None else []
    child_id = _named(tool.metadata)
    if child_id is not None and state.children.get(child_id) == state.id:
        errand = state.errands.setdefault(at, Errand(*at))
        errand.join(OfChild(child_id, state.id, *at), 0, state.beside)
    return []


def heard(state: SessionState, event: ev.Event) -> list[Output]:
    """The updates that follow from an event of a descendant: its own, and the call's lines."""
    errand = _errand_of(state, event.session_id)
    message = state.messages.get(errand.message_id) if errand is not None else None
    if errand is None or message is None or not isinstance(event, ev.MessageEvent):
        return []
    owner = state.turns[message.turn_id].owner
    helper = errand.helpers[event.session_id]
    if isinstance(event, ev.ToolProgress):
        _joined_by(state, errand, helper, event)
    out: list[Output] = []
    for shown in helper.watched.hear(owner, event, helper.origin):
        out.append(shown)
        if isinstance(shown, Tool) and isinstance(event, ev.ToolEvent):
            out.extend([errand.progress(owner)] if errand.note(helper, event, shown) else [])
    return out


def turn_of(state: SessionState, session_id: str) -> Turn | None:
    """The turn that a descendant works for."""
    errand = _errand_of(state, session_id)
    message = state.messages.get(errand.message_id) if errand is not None else None
    return state.turns[message.turn_id] if message is not None else None


def adds(state: SessionState, event: ev.MessageEvent) -> bool:
    """Whether the event speaks of something of a descendant that is not remembered yet."""
    errand = _errand_of(state, event.session_id)
    return errand is not None and errand.helpers[event.session_id].watched.adds(event)


def weight(state: SessionState, turn: Turn) -> int:
    """Bytes that are remembered of what works for the turn."""
    return sum(errand.weight for errand in _errands_of(state, turn))


def fold(state: SessionState, turn: Turn, excess: int) -> int:
    """Let go of what is over, to free so many bytes; bytes freed."""
    freed = 0
    for errand in _errands_of(state, turn):
        freed += errand.fold(excess - freed) if freed < excess else 0
    return freed


def lighten(state: SessionState, turn: Turn, excess: int) -> int:
    """Let go of what running calls were told, to free so many bytes; how many calls."""
    freed = calls = 0
    for errand in _errands_of(state, turn):
        for helper in errand.helpers.values():
            if freed < excess:
                more, hit = helper.watched.lighten(excess - freed)
                freed, calls = freed + more, calls + hit
    return calls


def call_of(state: SessionState, session_id: str, at: tuple[str, str]) -> Tool | None:
    """A call of a descendant as it stands, by (message, call)."""
    errand = _errand_of(state, session_id)
    return errand.helpers[session_id].watched.tools.get(at) if errand is not None else None


def origin_of(state: SessionState, session_id: str) -> OfChild:
    """Which descendant this is; its call only if it works for one that runs."""
    errand = _errand_of(state, session_id)
    if errand is not None:
        return errand.helpers[session_id].origin
    return OfChild(session_id, state.children.get(session_id, state.id))


def hold(state: SessionState) -> None:
    """Events were missed."""
    for errand in state.errands.values():
        errand.hold()


def restart(state: SessionState, messages: Collection[str]) -> None:
    """Another client gets these messages of the root, or the same one from nothing."""
    for errand in state.errands.values():
        if errand.message_id in messages:
            errand.restart()


def settle(state: SessionState, messages: Collection[str], why: str) -> list[Output]:
    """The turn of these messages is over, and so are its errands."""
    over = [at for at, errand in state.errands.items() if errand.message_id in messages]
    return [output for at in over for output in state.errands.pop(at).end(why)]


def _errands_of(state: SessionState, turn: Turn) -> Iterator[Errand]:
    for errand in state.errands.values():
        message = state.messages.get(errand.message_id)
        if message is not None and message.turn_id == turn.id:
            yield errand


def _errand_of(state: SessionState, session_id: str) -> Errand | None:
    return next((one for one in state.errands.values() if session_id in one.helpers), None)


def _named(metadata: JsonObject | None) -> str | None:
    child_id = (metadata or {}).get("sessionID")
    return child_id if isinstance(child_id, str) else None


def _joined_by(state: SessionState, errand: Errand, parent: Helper, event: ev.ToolProgress) -> None:
    child_id = _named(event.metadata)
    if child_id is not None and state.children.get(child_id) == event.session_id:
        made_by = OfChild(child_id, event.session_id, event.message_id, event.call_id)
        errand.join(made_by, parent.depth + 1, state.beside)
