"""What became of the newest prompt of ours in a session, in one sentence. Pure.

For a client that opens a session again: the reads of a moment, judged as those of a gap are. A
prompt may have called something by its `/name`, so that its item is a command's, a compaction, or
what tells the session of the end of the child that carried the command out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Final, Literal

from adapter.core import compaction
from adapter.core.markers import ABORTED
from adapter.core.reconcile import Judgement, Verdict, judge
from adapter.core.state import Phase, Turn
from adapter.core.values import Snapshot, Stop
from contract.calls import child_of, prompt_of
from contract.reads import AnyRow, CompactionRow, InboxItem, SyntheticRow, UserRow
from contract.semantics import OWN_MESSAGE_PREFIX

State = Literal["finished", "running", "waiting", "parked", "stopped", "failed", "lost"]


@dataclass(frozen=True, slots=True)
class Standing:
    """`message_id` is what the prompt's result tells, `turn_id` what it was submitted under.

    `stop` only of a finished one. Not `final`: an event on its way may change it within a moment
    (lifecycle rule 19).
    """

    message_id: str
    turn_id: str
    state: State
    sentence: str
    stop: Stop | None = None

    @property
    def final(self) -> bool:
        return self.state not in ("lost", "parked")


@dataclass(frozen=True, slots=True)
class Carrier:
    """A child that carries out the command of a turn of ours; `created` in the server's ms."""

    child_id: str
    turn_id: str
    created: float
    runs: bool


@dataclass(frozen=True, slots=True)
class Own:
    """An item of ours, delivered or not; `created` in the server's ms."""

    item_id: str
    turn_id: str
    created: float
    is_compaction: bool = False


_ENDS: Final = (
    (Stop.END_TURN, "was answered"),
    (Stop.MAX_TOKENS, "was answered, up to the output limit of the model"),
    (Stop.MAX_TURN_REQUESTS, "was ended by the step limit of the agent"),
    (Stop.REFUSAL, "was refused by the content filter of the provider"),
)
_LOST: Final = (
    "Nothing proves how the last prompt of this session ended; look at the session and the files "
    "before you send it again."
)


def own_item(item: InboxItem, carried: Mapping[str, str]) -> Own | None:
    """The prompt of ours that waits as this item; `carried` are turns by their children."""
    compacts = item.type == "compaction"
    match item.type:
        case "user":
            turn_id = prompt_of(item.id, item.payload.agents)
        case "compaction":
            turn_id = _named_by_us(item.id)
        case "synthetic":
            turn_id = carried.get(child_of(item.payload.metadata) or "")
        case _:
            turn_id = None
    return None if turn_id is None else Own(item.id, turn_id, item.time.created, compacts)


def own_row(row: AnyRow, carried: Mapping[str, str]) -> Own | None:
    """The prompt of ours that was delivered as this row; `carried` are turns by their children."""
    match row:
        case UserRow():
            turn_id = prompt_of(row.id, row.agents)
        case CompactionRow():
            turn_id = _named_by_us(row.id)
        case SyntheticRow():
            turn_id = carried.get(child_of(row.metadata) or "")
        case _:
            turn_id = None
    if turn_id is None:
        return None
    return Own(row.id, turn_id, row.time.created, isinstance(row, CompactionRow))


@dataclass(frozen=True, slots=True)
class Reads:
    """What the reads of a session said, in their order: that of a prompt's life.

    `inbox` in the server's order, `rows` oldest first, `carried` as for `own_row`. Of the
    `carriers` the newest counts, if no item tells of its end and nothing of ours is newer.
    """

    inbox: Sequence[InboxItem] = ()
    active: bool = False
    rows: Sequence[AnyRow] = ()
    carried: Mapping[str, str] = field(default_factory=dict)
    carriers: Sequence[Carrier] = ()

    def newest_own(self, later: Set[str]) -> Own | None:
        """What waits is newer than what was delivered; turns that are `later` are passed over."""
        waiting = [own_item(item, self.carried) for item in self.inbox]
        delivered = [own_row(row, self.carried) for row in self.rows]
        for found in (waiting, delivered):
            past = [own for own in found if own is not None and own.turn_id not in later]
            if past:
                return past[-1]
        return None

    def newest_carrier(self, later: Set[str]) -> Carrier | None:
        """The newest child of whose end nothing tells."""
        over = {child_of(item.payload.metadata) for item in self.inbox}
        over |= {child_of(row.metadata) for row in self.rows if isinstance(row, SyntheticRow)}
        working = [
            one for one in self.carriers if one.child_id not in over and one.turn_id not in later
        ]
        return max(working, key=lambda one: one.created, default=None)


def standing(reads: Reads, later: Set[str] = frozenset()) -> Standing | None:
    """The newest prompt of ours, of whichever process, that is not `later`; None without one."""
    own, carrier = reads.newest_own(later), reads.newest_carrier(later)
    if carrier is not None and (own is None or carrier.created > own.created):
        return _carried_out(carrier)
    if own is None:
        return None
    turn = Turn(own.item_id, owner=0, phase=Phase.RUNNING, admitted=True)
    still = frozenset(item.id for item in reads.inbox)
    snapshot = Snapshot(inbox=still, active=reads.active, rows=tuple(reads.rows))
    if own.is_compaction:
        return _compaction(own, compaction.judge(turn, snapshot, pid=0))
    return _standing(own, judge(turn, snapshot, pid=0))


def _named_by_us(item_id: str) -> str | None:
    return item_id if item_id.startswith(OWN_MESSAGE_PREFIX) else None


def _carried_out(carrier: Carrier) -> Standing:
    if not carrier.runs:
        return Standing(carrier.turn_id, carrier.turn_id, "lost", _LOST)
    sentence = _say("still runs on the server, where a sub-agent carries it out")
    return Standing(carrier.turn_id, carrier.turn_id, "running", sentence)


def _compaction(own: Own, judged: Judgement) -> Standing:
    """As of any other; only its end is told by its own row."""
    if judged.verdict is not Verdict.COMPACTED:
        return _standing(own, judged)
    error = compaction.error_of(judged.segment)
    ids = own.item_id, own.turn_id
    if error is None:
        sentence = _say("was carried out: the conversation is summed up")
        return Standing(*ids, "finished", sentence, Stop.END_TURN)
    if error.type == compaction.NOTHING:
        sentence = _say("found nothing to compact")
        return Standing(*ids, "finished", sentence, Stop.END_TURN)
    if error.type == ABORTED:
        return Standing(*ids, "stopped", _say("was stopped before the conversation was summed up"))
    return Standing(*ids, "failed", _failed(error.message))


def _standing(own: Own, judged: Judgement) -> Standing:
    ids = own.item_id, own.turn_id
    match judged.verdict:
        case Verdict.SUCCEEDED | Verdict.STEP_CAP | Verdict.REFUSED:
            stop = judged.stop or Stop.END_TURN
            return Standing(*ids, "finished", _say(dict(_ENDS)[stop]), stop)
        case Verdict.RUNNING:
            return Standing(*ids, "running", _say("still runs on the server"))
        case Verdict.QUEUED:
            sentence = _say("still waits on the server, behind a turn that runs")
            return Standing(*ids, "waiting", sentence)
        case Verdict.PARKED:
            sentence = _say(
                "waits on the server and nothing runs; the next prompt starts it as well"
            )
            return Standing(*ids, "parked", sentence)
        case Verdict.INTERRUPTED | Verdict.ABORTED:
            return Standing(*ids, "stopped", _say("was stopped before it was answered"))
        case Verdict.FAILED:
            return Standing(*ids, "failed", _failed(judged.message))
        case _:
            return Standing(*ids, "lost", _LOST)


def _failed(why: str) -> str:
    return _say(f"failed: {why}" if why else "failed")


def _say(what: str) -> str:
    return f"The last prompt of this session {what.rstrip('.')}."
