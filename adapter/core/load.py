"""A client that loads its session while its own turn runs (lifecycle.md, "Load, resume").

What it has of the turn is replaced by the rows that it is shown. So its open parts begin again at
0 and are held until their full text comes, and what the rows showed is not sent again.
"""

from __future__ import annotations

from adapter.core import ambient, children
from adapter.core.reconcile import segment
from adapter.core.state import SessionState
from adapter.core.translate import restore
from adapter.core.values import Chunk, Output, Reloading, Replayed, Tool


def reloading(state: SessionState, given: Reloading) -> list[Output]:
    """Before the rows are read."""
    turn = state.of_owner(given.owner)
    if turn is not None:
        messages = state.messages.items()
        owned = frozenset(key for key, message in messages if message.turn_id == turn.id)
        state.offsets.restart(state.id, owned)
        children.restart(state, owned)
    ambient.loads(state, given.owner)
    return []


def replayed(state: SessionState, given: Replayed) -> list[Output]:
    """After a page was shown: what its rows hold counts as sent; only usage is news."""
    turn = state.of_owner(given.owner)
    own = segment(given.rows, turn.id) if turn is not None else None
    if turn is None or own is None:
        return []
    recovered = turn.recovered
    out = [output for row in own.assistants for output in restore(state, turn, row)]
    turn.recovered = recovered
    return [output for output in out if not isinstance(output, Chunk | Tool)]
