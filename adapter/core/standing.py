"""What became of the newest prompt of ours in a session, in one sentence. Pure.

For a client that opens a session again: the reads of a moment, judged as those of a gap are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from adapter.core.reconcile import Judgement, Verdict, judge
from adapter.core.state import Phase, Turn
from adapter.core.values import Snapshot, Stop
from contract.calls import AgentMention, prompt_of
from contract.reads import AnyRow, InboxItem, UserRow

State = Literal["finished", "running", "waiting", "parked", "stopped", "failed", "lost"]


@dataclass(frozen=True, slots=True)
class Standing:
    """`message_id` is the prompt's; `stop` only of a finished one.

    Not `final`: an event on its way may change it within a moment (lifecycle rule 19).
    """

    message_id: str
    state: State
    sentence: str
    stop: Stop | None = None

    @property
    def final(self) -> bool:
        return self.state not in ("lost", "parked")


_ENDS: Final = (
    (Stop.END_TURN, "was answered"),
    (Stop.MAX_TOKENS, "was answered, up to the output limit of the model"),
    (Stop.MAX_TURN_REQUESTS, "was ended by the step limit of the agent"),
    (Stop.REFUSAL, "was refused by the content filter of the provider"),
)


def standing(
    inbox: Sequence[InboxItem],
    active: bool,
    rows: Sequence[AnyRow],
    later: frozenset[str] = frozenset(),
) -> Standing | None:
    """The newest prompt of ours, of whichever process, that is not `later`; None without one.

    `inbox` in the server's order, `rows` oldest first; the inbox was read before `active`, and
    that before the rows.
    """

    def told(message_id: str, agents: Iterable[AgentMention]) -> str | None:
        known = prompt_of(message_id, agents)
        return None if known in later else known

    waiting = [
        (item.id, known)
        for item in inbox
        if item.type == "user" and (known := told(item.id, item.payload.agents)) is not None
    ]
    delivered = [
        (row.id, known)
        for row in rows
        if isinstance(row, UserRow) and (known := told(row.id, row.agents)) is not None
    ]
    if not waiting and not delivered:
        return None
    row_id, message_id = (waiting or delivered)[-1]
    turn = Turn(row_id, owner=0, phase=Phase.RUNNING, admitted=True)
    still = frozenset(item.id for item in inbox)
    judged = judge(turn, Snapshot(inbox=still, active=active, rows=tuple(rows)), pid=0)
    return _standing(message_id, judged)


def _standing(message_id: str, judged: Judgement) -> Standing:
    match judged.verdict:
        case Verdict.SUCCEEDED | Verdict.STEP_CAP | Verdict.REFUSED:
            stop = judged.stop or Stop.END_TURN
            return Standing(message_id, "finished", _say(dict(_ENDS)[stop]), stop)
        case Verdict.RUNNING:
            return Standing(message_id, "running", _say("still runs on the server"))
        case Verdict.QUEUED:
            return Standing(
                message_id, "waiting", _say("still waits on the server, behind a turn that runs")
            )
        case Verdict.PARKED:
            sentence = _say(
                "waits on the server and nothing runs; the next prompt starts it as well"
            )
            return Standing(message_id, "parked", sentence)
        case Verdict.INTERRUPTED | Verdict.ABORTED:
            return Standing(message_id, "stopped", _say("was stopped before it was answered"))
        case Verdict.FAILED:
            why = f": {judged.message}" if judged.message else ""
            return Standing(message_id, "failed", _say(f"failed{why}"))
        case _:
            sentence = (
                "Nothing proves how the last prompt of this session ended; look at the session "
                "and the files before you send it again."
            )
            return Standing(message_id, "lost", sentence)


def _say(what: str) -> str:
    return f"The last prompt of this session {what.rstrip('.')}."
