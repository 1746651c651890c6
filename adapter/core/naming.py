"""A turn gets the id of its item in place of the one that it was submitted under."""

from __future__ import annotations

from adapter.core.state import SessionState, Turn
from adapter.core.values import Output, Renamed


def rename(state: SessionState, turn: Turn, item_id: str) -> list[Output]:
    """Every table of the turn goes with it; its place among the turns stays."""
    before, turn.id = turn.id, item_id
    turns = list(state.turns.values())
    state.turns.clear()
    state.turns.update((one.id, one) for one in turns)
    state.running = [item_id if key == before else key for key in state.running]
    for message in state.messages.values():
        if message.turn_id == before:
            message.turn_id = item_id
    for ask in state.asks.values():
        if ask.turn_id == before:
            ask.turn_id = item_id
    for other in state.turns.values():
        if other.follows == before:
            other.follows = item_id
    return [Renamed(before, item_id)]
