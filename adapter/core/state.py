"""The state of one session, as far as turns of ours are in flight.

Everything here exists because of a turn and goes with it: `settle` (settle.py) is the only
function that removes a turn or anything that belongs to one.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final, Literal

from adapter.core.ambience import Ambience
from adapter.core.errands import Errand
from adapter.core.offsets import OffsetTable
from adapter.core.values import AskReason, Call, CancelMark, Tool, ToolStatus
from adapter.limits import DEFAULTS, Limits
from contract.shapes import CacheTokens, Form, JsonObject, PermissionAsk, Tokens

# Messages of other front ends that are remembered, so that a late event of one is not taken
# for ours; the oldest goes first.
FOREIGN_BOUND: Final = 256
# Kinds of inbox items remembered between enqueued and delivered; the oldest goes first.
KINDS_BOUND: Final = 256
# Times `unattended` that an ask is left while the root runs a turn of somebody else.
ACTIVE_PATIENCE: Final = 5
# Cancels that outlive their turns; the oldest goes first.
LOOSE_BOUND: Final = 32


class Phase(Enum):
    """SUBMITTING until the POST's definite answer, WAITING in the inbox, RUNNING once delivered.

    CALLED: a command that the server took, whose item is not known yet; while a child carries it
    out there is none.
    """

    SUBMITTING = "submitting"
    CALLED = "called"
    WAITING = "waiting"
    RUNNING = "running"


class CancelStep(Enum):
    """ASKED by the client; WITHDRAWING (DELETE sent); STOPPING (interrupt or reject sent)."""

    NONE = "none"
    ASKED = "asked"
    WITHDRAWING = "withdrawing"
    STOPPING = "stopping"


class Loose(Enum):
    """A cancel that outlives its turn, by what is known of the prompt.

    QUEUED: not delivered yet; RUNNING: delivered, its end not seen; ENDED: it had ended by
    itself, so that the interrupt may stop whoever runs next.
    """

    QUEUED = "queued"
    RUNNING = "running"
    ENDED = "ended"


@dataclass(slots=True)
class Turn:
    """One ACP prompt in flight. `id` is X, the message id made before the POST.

    A command gets the server's id in its place once that is known; `submitted` stays. `pid` is the
    server process that has it, as far as is known; 0 for not known. `call` is what it calls by
    `/name`, `child` the session that carries a command out. `borrowed`: its item is somebody
    else's; `follows`: its item is that of another turn of ours. `summaries` counts the compactions
    under it that are over, `summary` is the one in progress.
    """

    id: str
    owner: int
    call: Call | None = None
    submitted: str = ""
    child: str | None = None
    borrowed: bool = False
    follows: str | None = None
    summaries: int = 0
    summary: str | None = None
    pid: int = 0
    phase: Phase = Phase.SUBMITTING
    cancel: CancelStep = CancelStep.NONE
    admitted: bool = False
    gaps: int = 0
    recovered: int = 0
    shared: bool = False
    tool_ran: bool = False
    last_finish: str | None = None
    tokens: Tokens | None = None
    rejected_in: set[str] = field(default_factory=set)
    failed_message: str | None = None
    failed_in_inbox: str | None = None
    asks: int = 0
    lost_seen: int = 0
    parked_seen: int = 0
    steered: bool = False
    waits_for: str = ""
    mark: CancelMark | None = None
    overtime: bool = False
    overfull: bool = False

    def __post_init__(self) -> None:
        self.submitted = self.submitted or self.id

    @property
    def is_named(self) -> bool:
        """Whether `id` is what the server calls it."""
        return self.call != "command" or self.id != self.submitted

    @property
    def key(self) -> str:
        """What its item is found by: its id, or before that is known its child or its mark."""
        return self.id if self.is_named else self.child or self.id

    @property
    def cancel_asked(self) -> bool:
        return self.cancel is not CancelStep.NONE

    def spend(self, tokens: Tokens | None) -> None:
        """Add a step's tokens to the turn's."""
        if tokens is None:
            return
        before = self.tokens or Tokens()
        self.tokens = Tokens(
            input=before.input + tokens.input,
            output=before.output + tokens.output,
            reasoning=before.reasoning + tokens.reasoning,
            cache=CacheTokens(
                read=before.cache.read + tokens.cache.read,
                write=before.cache.write + tokens.cache.write,
            ),
        )


@dataclass(slots=True)
class Message:
    """An assistant message that a turn of ours owns; `spent` once its tokens are counted.

    `folded`: it is over, its client has all of it, and nothing else is remembered of it.
    """

    turn_id: str
    spent: bool = False
    folded: bool = False
    model: str | None = None
    retry_of: str | None = None
    tools: dict[str, Tool] = field(default_factory=dict)

    def open_tools(self) -> list[Tool]:
        return [
            tool
            for tool in self.tools.values()
            if tool.status in (ToolStatus.PENDING, ToolStatus.IN_PROGRESS)
        ]


class Foreign(Enum):
    """A message that no turn in flight owns.

    UNCLAIMED: heard while no turn of ours was known to run; the rows may prove later that it
    answers one whose delivery fell into a gap. SETTLED: its turn is over.
    """

    UNCLAIMED = "unclaimed"
    SETTLED = "settled"


class AskStep(Enum):
    """SHOWN to the client; HELD, a rejection that waits for its siblings; REPLYING; UNATTENDED."""

    SHOWN = "shown"
    HELD = "held"
    REPLYING = "replying"
    UNATTENDED = "unattended"


AskDecision = Literal["once", "always", "reject", "stop", "answer", "dismiss"]
"""What an ask is settled with; "stop" ends its turn, the last two are for forms."""


@dataclass(slots=True)
class Ask:
    """An open permission or form at the server; `turn_id` is None for one of no turn of ours.

    Such a one is `due` when nobody answered it in time; `patience` is how often that is put up
    with while the root runs a turn, which may be the one that asks. `is_left`: it is of what a turn
    of ours left behind, so nobody but us may ever refuse it. `answer` is a form's: it may hold what
    nobody else should read.
    """

    ask: PermissionAsk | Form
    turn_id: str | None
    step: AskStep
    decision: AskDecision | None = None
    why: AskReason = "client"
    patience: int = 0
    due: bool = False
    is_left: bool = False
    answer: JsonObject = field(default_factory=dict, repr=False)

    @property
    def is_permission(self) -> bool:
        return isinstance(self.ask, PermissionAsk)


@dataclass(slots=True)
class SessionState:
    """One session. `running` are the delivered turns that share the answer in progress.

    `answering`: a prompt was delivered and its answer is not finished. `undelivered`: an
    execution was heard to start, and nothing was delivered in it so far. `surveyed`: the reads
    were looked at since the feed is without a gap. `judged` are the verdicts of the last
    reading, by name. `beside` are the offsets of what is shown of other sessions than this one,
    `errands` by (message, call). Of descendants, `children` has the parent of each, the one heard
    last at the end; `unfollowed` are those that the step in progress has let go of.
    """

    id: str
    offsets: OffsetTable
    turns: dict[str, Turn] = field(default_factory=dict)
    running: list[str] = field(default_factory=list)
    messages: dict[str, Message] = field(default_factory=dict)
    asks: dict[str, Ask] = field(default_factory=dict)
    children: OrderedDict[str, str] = field(default_factory=OrderedDict)
    makers: dict[str, int | None] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)
    unfollowed: list[str] = field(default_factory=list)
    errands: dict[tuple[str, str], Errand] = field(default_factory=dict)
    beside: OffsetTable = field(default_factory=OffsetTable)
    ambience: Ambience = field(default_factory=Ambience)
    judged: tuple[str, ...] = ()
    foreign: OrderedDict[str, Foreign] = field(default_factory=OrderedDict)
    kinds: OrderedDict[str, str] = field(default_factory=OrderedDict)
    answering: bool = False
    undelivered: bool = False
    surveyed: bool = False
    gap: bool = False
    pid: int = 0
    cost: float | None = None
    loose: OrderedDict[str, Loose] = field(default_factory=OrderedDict)
    heard: int = 0
    heard_at_check: int = -1
    limits: Limits = DEFAULTS

    def find(self, turn_id: str) -> Turn | None:
        """The turn of that id, or the one that was submitted under it."""
        known = self.turns.get(turn_id)
        if known is not None:
            return known
        return next((turn for turn in self.turns.values() if turn.submitted == turn_id), None)

    def unnamed(self, key: str) -> Turn | None:
        """The command whose item is not known yet, by its mark or by its child."""
        return next(
            (
                turn
                for turn in self.turns.values()
                if not turn.is_named and key in (turn.id, turn.child)
            ),
            None,
        )

    def carried_by(self, session_id: str) -> Turn | None:
        """The command that a descendant carries out, or works for."""
        while self.children.get(session_id, self.id) != self.id:
            session_id = self.children[session_id]
        return next(
            (
                turn
                for turn in self.turns.values()
                if turn.phase is Phase.CALLED and turn.child == session_id
            ),
            None,
        )

    def compacting(self) -> Turn | None:
        """The turn that is the compaction in progress."""
        return next(
            (
                turn
                for turn in self.turns.values()
                if turn.call == "compaction" and turn.phase is Phase.RUNNING
            ),
            None,
        )

    def head(self) -> Turn | None:
        """The running turn that gets the text."""
        return self.turns[self.running[0]] if self.running else None

    def waiting(self) -> list[Turn]:
        """Turns that are admitted and not delivered, oldest first."""
        return [turn for turn in self.turns.values() if turn.phase is Phase.WAITING]

    def leaving(self) -> list[Turn]:
        """Every turn in the order to settle them: the head of a shared answer last."""
        others = [turn for turn in self.turns.values() if turn.id not in self.running]
        return [*others, *(self.turns[key] for key in reversed(self.running))]

    def of_owner(self, owner: int) -> Turn | None:
        """The one turn that a connection may have in flight on a session."""
        return next((turn for turn in self.turns.values() if turn.owner == owner), None)

    def message_of(self, message_id: str) -> Message | None:
        """The message if a turn of ours owns it; claims an unseen one for the head turn."""
        known = self.messages.get(message_id)
        if known is not None or message_id in self.foreign:
            return known
        head = self.head()
        if head is None:
            self.disown(message_id, Foreign.UNCLAIMED)
            return None
        return self.claim(message_id, head)

    def claim(self, message_id: str, turn: Turn) -> Message:
        """A new message of a turn; the retry of the one that failed before it, if any did."""
        self.foreign.pop(message_id, None)
        message = self.messages[message_id] = Message(turn.id, retry_of=turn.failed_message)
        turn.failed_message = None
        self.inherit(message_id, turn.owner)
        return message

    def inherit(self, message_id: str, owner: int) -> None:
        """A client gets a message that it may have been shown in part as that of others."""
        spectator = self.ambience.of(owner)
        if spectator is None:
            return
        taken = spectator.take(message_id)
        if taken.folded:
            self.fold(message_id)
            return
        self.offsets.give(self.id, taken.offsets)
        for call_id, tool in taken.tools.items():
            shown = replace(tool, owner=owner, first=False, origin=None)
            self.messages[message_id].tools[call_id] = shown

    def fold(self, message_id: str) -> None:
        """The message is over and its client has all of it: nothing else is remembered."""
        message = self.messages[message_id]
        message.folded = True
        message.tools.clear()
        self.offsets.take(self.id, message_id)

    def loosen(self, turn_id: str, step: Loose) -> None:
        """Remember a cancel beyond its turn."""
        self.loose[turn_id] = step
        if len(self.loose) > LOOSE_BOUND:
            self.loose.popitem(last=False)

    def disown(self, message_id: str, why: Foreign) -> None:
        """Remember that a message belongs to no turn in flight."""
        self.foreign[message_id] = why
        if len(self.foreign) > FOREIGN_BOUND:
            self.foreign.popitem(last=False)

    def note_kind(self, inbox_id: str, kind: str) -> None:
        self.kinds[inbox_id] = kind
        if len(self.kinds) > KINDS_BOUND:
            self.kinds.popitem(last=False)

    def follows(self, session_id: str) -> bool:
        """Whether it is this session or a descendant of it."""
        return session_id == self.id or session_id in self.children
