"""Turns that are admitted and not delivered (lifecycle rules 4 and 5).

They wait without a deadline, and say for what. An execution's end decides nothing for them;
a turn that is in the inbox of an idle session in two readings is parked, and is woken.
"""

from __future__ import annotations

from adapter.core.state import AskStep, CancelStep, Phase, SessionState, Turn
from adapter.core.values import (
    Arm,
    InboxRead,
    Notice,
    Output,
    ReadInbox,
    TakeSnapshot,
    Wake,
    Withdraw,
    Woken,
)
from contract.shapes import Form


def look(state: SessionState) -> TakeSnapshot:
    """Ask for the reads of this session, to judge every admitted turn by them."""
    judged = [turn for turn in state.turns.values() if turn.phase is not Phase.SUBMITTING]
    needed = {turn.key for turn in judged}
    return TakeSnapshot(frozenset(needed | set(state.loose)))


def inbox_read(state: SessionState, reading: InboxRead) -> list[Output]:
    """A reading of `/inbox`, then `/active`."""
    out: list[Output] = []
    missing = False
    for turn in state.waiting():
        if turn.cancel is not CancelStep.NONE:
            continue
        if turn.id not in reading.inbox:
            missing = True
            turn.parked_seen = 0
            continue
        if reading.active:
            turn.parked_seen = 0
            what = asked_of_others(state) or _ahead(reading, turn.id)
            followers = [one for one in state.turns.values() if one.follows == turn.id]
            for one in (turn, *followers):
                out.extend(tell(one, what))
        else:
            turn.parked_seen += 1
    if missing:
        out.append(look(state))
    parked = [
        turn for turn in state.waiting() if turn.parked_seen and turn.cancel is CancelStep.NONE
    ]
    if parked:
        out.extend(wake_or_wait(parked))
    return out


def wake_or_wait(parked: list[Turn]) -> list[Output]:
    """Seen parked once: look again. Twice: wake the oldest, the others follow behind it."""
    oldest = parked[0]
    if oldest.parked_seen < 2:
        return [Arm("parked", "parked")]
    for turn in parked:
        turn.parked_seen = 0
    requeue = oldest.steered
    oldest.steered = True
    return [Wake(oldest.id, requeue), Arm("watch", "watch")]


def promote(state: SessionState, turn_id: str) -> list[Output]:
    """A prompt has waited long enough to join the running turn at its next step (rule 4)."""
    turn = state.turns.get(turn_id)
    if turn is None or turn.phase is not Phase.WAITING or turn.cancel is not CancelStep.NONE:
        return []
    if turn.call == "compaction":
        # Joined to a running turn, it could not be stopped without that one.
        return []
    if state.gap:
        return [Arm(f"patience:{turn_id}", "patience")]
    requeue = turn.steered
    turn.steered = True
    return [Wake(turn_id, requeue)]


def woken(state: SessionState, given: Woken) -> list[Output]:
    """409: the item was no longer pending, so the reads decide."""
    turn = state.turns.get(given.turn_id)
    if turn is None or turn.phase is not Phase.WAITING or given.pending:
        return []
    return [look(state)]


def failed_in_inbox(state: SessionState, message: str) -> list[Output]:
    """An execution failed before anything was delivered: the oldest turn is what failed."""
    waiting = state.waiting()
    if not waiting or waiting[0].cancel is not CancelStep.NONE:
        return []
    waiting[0].failed_in_inbox = message
    return [Withdraw(waiting[0].id)]


def check(state: SessionState) -> list[Output]:
    """Look at the inbox; and at everything, if an ask may be open that was never heard of."""
    return [ReadInbox()] if state.surveyed else [ReadInbox(), look(state)]


def queue_moved(state: SessionState) -> list[Output]:
    """What is ahead of a turn that was told what it waits for may be another thing now (rule 4)."""
    told = any(turn.waits_for for turn in state.waiting())
    return [Arm("parked", "parked")] if told else []


def asked_of_others(state: SessionState) -> str:
    """The ask that somebody else has to answer before anything goes on here; "" for none."""
    for ask in state.asks.values():
        if ask.step is AskStep.UNATTENDED:
            given = ask.ask
            what = "a question" if isinstance(given, Form) else f"a permission ({given.action})"
            return f"the answer of others to {what}"
    return ""


def _ahead(reading: InboxRead, turn_id: str) -> str:
    before = reading.inbox.index(turn_id)
    if before:
        return (
            f"a running turn and {before} queued prompt{'s' if before > 1 else ''} of this session"
        )
    return "a running turn of this session"


def tell(turn: Turn, what: str) -> list[Output]:
    """Say once what a turn waits for (rule 4)."""
    if turn.waits_for == what:
        return []
    turn.waits_for = what
    return [Notice(turn.owner, "waiting", f"This prompt waits for {what}.", {})]
