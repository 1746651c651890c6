"""The only way out of a turn (lifecycle rule 8).

`settle` clears what belongs to one turn: its pending entry, cancellation mark, offsets, open
tools, asks. Once, and nothing of another turn or session. Only the id of a cancel that the
server has not confirmed outlives it (`loose`), until its end is seen.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from adapter.core import ambient, children, markers
from adapter.core.naming import rename
from adapter.core.state import (
    ACTIVE_PATIENCE,
    Ask,
    AskStep,
    CancelStep,
    Foreign,
    Loose,
    Phase,
    SessionState,
    Turn,
)
from adapter.core.values import (
    Arm,
    Disarm,
    Outcome,
    Output,
    Settled,
    Stop,
    ToolStatus,
    WithdrawAsk,
)
from adapter.core.watched import NOT_KNOWN
from contract.errors import Code, say
from contract.shapes import GLOBAL

# Those that run while a turn is in flight, whichever.
TIMERS: Final = ("parked", "watch", "quiet", "gap", "reconnecting", "lost", "called")
OVERTIME: Final = (
    "The turn ran longer than the operator allows, so that its stop was asked for. Look at what it "
    "did before you prompt again."
)


def settle(
    state: SessionState, turn: Turn, outcome: Outcome, *, item_goes_on: bool = False
) -> list[Output]:
    """Remove the turn and answer it. Nothing happens for a turn that is settled already.

    Updates that close what is open (tools, asks) precede the answer. `item_goes_on`: the server
    goes on with the turn's item, so that whoever follows the turn takes it over.
    """
    if state.turns.get(turn.id) is not turn:
        return []
    if turn.overtime and outcome.stop is Stop.CANCELLED:
        outcome = failed(turn, Code.LIMIT, OVERTIME, "max_seconds")
    out: list[Output] = markers.close(turn, outcome)
    out.extend(_let_go(state, turn, _why_open(outcome)))
    for ask_id, ask in list(state.asks.items()):
        if ask.turn_id != turn.id:
            continue
        ask.turn_id = None
        if ask.step is AskStep.REPLYING or (item_goes_on and ask.decision is not None):
            continue
        if ask.step is AskStep.SHOWN:
            out.append(WithdrawAsk(ask_id))
        if turn.mark == "unconfirmed" or outcome.code == Code.UNKNOWN_OUTCOME:
            # It may still hold up the server, and the turns behind it (rule 16).
            out.append(_unattended(ask, 1))
        elif ask.ask.session_id not in (state.id, GLOBAL):
            # A child in the background goes on behind the turn that made it, and waits.
            out.append(_unattended(ask, ACTIVE_PATIENCE))
        else:
            del state.asks[ask_id]
    if turn.mark == "unconfirmed":
        state.loosen(turn.key, Loose.RUNNING if turn.phase is Phase.RUNNING else Loose.QUEUED)
        out.append(Arm("loose", "loose"))
    elif turn.cancel is CancelStep.STOPPING and turn.mark is None:
        state.loosen(turn.id, Loose.ENDED)
    if turn.id in state.running:
        state.running.remove(turn.id)
    del state.turns[turn.id]
    out.append(Disarm(f"cancel:{turn.id}"))
    out.append(Disarm(f"ahead:{turn.id}"))
    out.append(Disarm(f"patience:{turn.id}"))
    out.append(Disarm(f"longest:{turn.id}"))
    if not state.turns:
        out.extend(Disarm(timer) for timer in TIMERS)
    out.append(Settled(turn.owner, outcome))
    return out + _hand_on(state, turn, outcome, item_goes_on=item_goes_on)


def _unattended(ask: Ask, patience: int) -> Arm:
    """Left to other front ends for a while (rule 16)."""
    ask.step, ask.decision, ask.patience = AskStep.UNATTENDED, None, patience
    ask.is_left = True
    return Arm(f"unattended:{ask.ask.id}", "unattended")


def _let_go(state: SessionState, turn: Turn, why_open: str) -> list[Output]:
    """The turn's messages, with all that is known of them; what is open ends as failed.

    A turn that leaves while another of ours shares its answer hands the answer on.
    """
    owned = frozenset(key for key, message in state.messages.items() if message.turn_id == turn.id)
    successor = _successor(state, turn)
    out: list[Output] = []
    if successor is None:
        out.extend(children.settle(state, owned, why_open))
    for key in owned:
        message = state.messages[key]
        for tool in message.open_tools():
            if tool.owner == turn.owner:
                failed_tool = replace(tool, first=False, status=ToolStatus.FAILED)
                out.append(replace(failed_tool, error=why_open))
        if successor is None:
            del state.messages[key]
            state.disown(key, Foreign.SETTLED)
        else:
            message.turn_id = successor
    if successor is None:
        state.offsets.forget(state.id, owned)
    else:
        state.offsets.restart(state.id, owned)
        children.restart(state, owned)
        for key in owned:
            state.inherit(key, state.turns[successor].owner)
    ambient.settled(state, turn, owned)
    return out


def _hand_on(
    state: SessionState, turn: Turn, outcome: Outcome, *, item_goes_on: bool
) -> list[Output]:
    """The turns that follow a compaction end as it does; or the first of them stands for it."""
    following = [one for one in state.turns.values() if one.follows == turn.id]
    if following and item_goes_on:
        heir = following[0]
        heir.follows, heir.borrowed = None, True
        heir.phase, heir.admitted, heir.pid = turn.phase, True, turn.pid
        return [*rename(state, heir, turn.id), Arm("parked", "parked")]
    stopped_here = outcome.stop is Stop.CANCELLED or turn.cancel is not CancelStep.NONE
    out: list[Output] = []
    for one in following:
        end = replace(outcome, message_id=one.id, cancel=None)
        if stopped_here:
            end = ended_elsewhere(one, "Another connection stopped this compaction.")
        out.extend(settle(state, one, end))
    return out


def _successor(state: SessionState, turn: Turn) -> str | None:
    """The turn of ours that shares the answer of this one and stays."""
    if turn.id not in state.running:
        return None
    return next((key for key in state.running if key != turn.id), None)


def stopped(turn: Turn, stop: Stop, reason: str = "") -> Outcome:
    """An outcome with a stop reason."""
    return _audit(turn, Outcome(turn.id, stop=stop, reason=reason))


def failed(
    turn: Turn,
    code: Code,
    message: str,
    reason: str,
    *,
    admitted: bool | None = True,
    retry_safe: bool = False,
) -> Outcome:
    """An outcome with an error: one sentence that says what happened and what to do.

    A prompt of which nobody knows so far whether the server took it is not told as admitted.
    """
    return _audit(
        turn,
        Outcome(
            turn.id,
            code=int(code),
            message=say(message),
            reason=reason,
            admitted=None if admitted and not turn.admitted else admitted,
            retry_safe=retry_safe,
        ),
    )


def session_gone(turn: Turn, session_id: str, *, admitted: bool | None) -> Outcome:
    """The server's own 404 of the session: the one text that says "not found" (acpx facts, 4)."""
    return _audit(
        turn,
        Outcome(
            turn.id,
            code=int(Code.SESSION_GONE),
            message=f"Session not found: {session_id}. Start a new session.",
            reason="session_gone",
            admitted=admitted,
        ),
    )


def server_failed(turn: Turn, message: str) -> Outcome:
    """The server failed the turn: safe to retry only if no tool of it ran."""
    text = message or "the server gave no reason"
    if turn.tool_ran:
        return failed(
            turn,
            Code.FAILED_AFTER_TOOL,
            f"The turn failed after a tool had run: {text}. Look at what the tool did before "
            "you prompt again.",
            "failed_after_tool",
        )
    return failed(
        turn,
        Code.INTERNAL,
        f"The turn failed: {text}. No tool had run; it is safe to retry.",
        "failed",
        retry_safe=True,
    )


def unknown(turn: Turn, why: str) -> Outcome:
    """What became of the turn is not known; nobody may retry it blindly."""
    return failed(
        turn,
        Code.UNKNOWN_OUTCOME,
        f"The outcome of this turn is not known: {why}. It may have changed files; look at "
        "the session before you prompt again.",
        "unknown",
    )


def ended_elsewhere(turn: Turn, what: str) -> Outcome:
    """Another front end stopped, withdrew or deleted."""
    return failed(turn, Code.ENDED_ELSEWHERE, what, "ended_elsewhere")


def left_running(turn: Turn) -> Outcome:
    """Its client or the adapter goes, and the turn does not end with them.

    Unknown as long as the server may not have the prompt: nothing is left to it then.
    """
    if not turn.admitted:
        return unknown(turn, "the adapter let go of it while it was being sent")
    return failed(
        turn,
        Code.UNKNOWN_OUTCOME,
        "The adapter has let go of this turn, which is left to the server and may still run. Do "
        "not send the prompt again: load or resume the session to see how the turn ended.",
        "detached",
    )


def _audit(turn: Turn, outcome: Outcome) -> Outcome:
    return replace(
        outcome,
        gaps=turn.gaps,
        recovered=turn.recovered,
        shared=turn.shared,
        cancel=turn.mark,
        tokens=turn.tokens,
    )


def _why_open(outcome: Outcome) -> str:
    if outcome.stop is Stop.CANCELLED:
        return "Stopped by the cancel of the turn."
    if outcome.code == Code.UNKNOWN_OUTCOME:
        return NOT_KNOWN
    return "The turn ended before this tool call did."
