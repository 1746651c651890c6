"""Which descendants of a session are followed: their events are heard, and what they ask counts."""

from __future__ import annotations

from collections.abc import Set
from typing import Final

from adapter.core.state import SessionState

# Descendants of one session. One more takes the place of the one that was heard least lately and
# that nothing here speaks of; what that one asks is found by the reads of a gap only.
BOUND: Final = 1024
# Characters of a descendant's title.
TITLE_CHARS: Final = 200


def adopt(state: SessionState, child_id: str, parent_id: str) -> bool:
    """Follow a child session of this one or of a descendant; False if that is not done."""
    if child_id in state.children:
        return True
    is_ours = state.follows(parent_id) and child_id != state.id
    if not is_ours or (len(state.children) >= BOUND and not _make_room(state)):
        state.unfollowed.append(child_id)
        return False
    state.children[child_id] = parent_id
    return True


def made(state: SessionState, child_id: str, parent_id: str) -> None:
    """A child was made just now: by the turn that runs, or by what its parent belongs to."""
    if adopt(state, child_id, parent_id) and child_id not in state.makers:
        head = state.head()
        owner = head.owner if head is not None else None
        state.makers[child_id] = state.makers.get(parent_id, owner)


def entitle(state: SessionState, child_id: str, title: str) -> None:
    """What a descendant is called, if it is one."""
    if child_id in state.children and title:
        state.titles[child_id] = title[:TITLE_CHARS]


def heard(state: SessionState, child_id: str) -> bool:
    """Whether an event is of a descendant; that one is the last to go."""
    if child_id not in state.children:
        return False
    state.children.move_to_end(child_id)
    return True


def _make_room(state: SessionState) -> bool:
    in_use = _in_use(state)
    gone = next((child_id for child_id in state.children if child_id not in in_use), None)
    if gone is None:
        return False
    del state.children[gone]
    state.makers.pop(gone, None)
    state.titles.pop(gone, None)
    state.unfollowed.append(gone)
    return True


def _in_use(state: SessionState) -> Set[str | None]:
    """Those that ask, that work for a call or a command of a turn, or that are to be stopped."""
    asking = {ask.ask.session_id for ask in state.asks.values()}
    working = {child_id for errand in state.errands.values() for child_id in errand.helpers}
    carrying = {turn.child for turn in state.turns.values()}
    return asking | working | carrying | state.loose.keys()
