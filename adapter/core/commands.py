"""A turn that is a slash command: the server makes its item, and the mark in it tells whose it is.

The item may be heard of before the POST is answered. A command that a sub-agent carries out has
none at first: the mark stands in the child's first item, the turn waits while the child runs, and
the item that tells the session of the child's end becomes the turn's.
"""

from __future__ import annotations

from dataclasses import replace

from adapter.core import cancel, descendants
from adapter.core.naming import rename
from adapter.core.reconcile import EMPTY, Judgement, Verdict
from adapter.core.state import CancelStep, Phase, SessionState, Turn
from adapter.core.values import Arm, Notice, Output, Snapshot, StopChild


def admitted(state: SessionState, turn: Turn, *, probed: bool) -> list[Output]:
    """A turn whose item is known waits in the inbox; `probed` if it may be parked there."""
    turn.admitted = True
    if turn.phase not in (Phase.SUBMITTING, Phase.CALLED):
        return []
    turn.phase = Phase.WAITING
    if turn.cancel is not CancelStep.NONE:
        return cancel.withdraw(turn)
    out: list[Output] = [
        Arm(f"ahead:{turn.id}", "ahead"),
        Arm(f"patience:{turn.id}", "patience"),
        Arm("watch", "watch"),
    ]
    if probed or turn.gaps:
        out.append(Arm("parked", "parked"))
    return out


def called(state: SessionState, turn: Turn) -> list[Output]:
    """The server took the command, and its item or its child is due."""
    turn.admitted = True
    turn.phase = Phase.CALLED
    if turn.child is not None:
        return _carried_out(turn)
    return [Arm("called", "lost_last")]


def enqueued(state: SessionState, key: str | None, item_id: str) -> list[Output]:
    """An item of this session with the mark of a turn, or with the end of a child."""
    if key is None:
        return []
    turn = state.unnamed(key)
    if turn is None:
        if key in state.loose:
            state.loosen(item_id, state.loose.pop(key))
        return []
    turn.admitted = True
    out = rename(state, turn, item_id)
    if turn.phase is Phase.CALLED:
        out.extend(admitted(state, turn, probed=False))
    return out


def child_enqueued(state: SessionState, key: str | None, child_id: str) -> list[Output]:
    """An item of a descendant; with the mark of a turn it is the child that carries it out."""
    if key is None or state.children.get(child_id) != state.id:
        return []
    turn = state.unnamed(key)
    if turn is None:
        if key not in state.loose:
            return []
        state.loosen(child_id, state.loose.pop(key))
        return [StopChild(child_id)]
    if turn.child is not None:
        return []
    turn.admitted = True
    turn.child = child_id
    state.makers[child_id] = turn.owner
    return _carried_out(turn) if turn.phase is Phase.CALLED else []


def overdue(state: SessionState) -> bool:
    """Whether a command was taken of which neither an item nor a child was heard since."""
    return any(turn.phase is Phase.CALLED and turn.child is None for turn in state.turns.values())


def carried_out(state: SessionState) -> bool:
    """Whether a child works for a command."""
    return any(
        turn.phase is Phase.CALLED and turn.child is not None for turn in state.turns.values()
    )


def known_by(state: SessionState, snapshot: Snapshot) -> tuple[Snapshot, list[Output]]:
    """The items and children that the reads show, put to their turns before anything is judged."""
    out: list[Output] = []
    judged = set(snapshot.judged)
    for key, child_id in snapshot.workers:
        descendants.adopt(state, child_id, state.id)
        out.extend(child_enqueued(state, key, child_id))
    for key, item_id in snapshot.named:
        turn = state.unnamed(key)
        out.extend(enqueued(state, key, item_id))
        if turn is not None and turn.phase is not Phase.SUBMITTING:
            judged.discard(turn.submitted)
            judged.add(turn.id)
    return replace(snapshot, judged=frozenset(judged)), out


def judge(turn: Turn, snapshot: Snapshot, pid: int) -> Judgement:
    """A command whose item no read shows: it runs as long as its child does."""
    if pid and snapshot.pid and snapshot.pid != pid:
        return Judgement(Verdict.RESTARTED, EMPTY)
    runs = turn.child is not None and turn.child in snapshot.busy
    return Judgement(Verdict.RUNNING if runs else Verdict.LOST, EMPTY)


def _carried_out(turn: Turn) -> list[Output]:
    """A child works for the turn; one that was cancelled meanwhile stops it."""
    notice = Notice(
        turn.owner,
        "carried_out",
        "A sub-agent carries out this command; what it found comes when it is done.",
        {"childSessionId": turn.child},
    )
    out: list[Output] = [notice, Arm("quiet", "quiet"), Arm(f"longest:{turn.id}", "longest")]
    if turn.cancel is not CancelStep.NONE and turn.child is not None:
        out.append(StopChild(turn.child))
    return out
