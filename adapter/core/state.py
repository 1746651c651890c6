"""The state of one session, as far as turns of ours are in flight.

Everything here exists because of a turn and goes with it: `settle` (settle.py) is the only
function that removes a turn or anything that belongs to one.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Literal

from adapter.core.offsets import OffsetTable
from adapter.core.values import CancelMark, Tool, ToolStatus
from contract.shapes import CacheTokens, PermissionAsk, Tokens

# Messages of other front ends that are remembered, so that a late event of one is not taken
# for ours; the oldest goes first.
FOREIGN_BOUND: Final = 256
# Kinds of inbox items remembered between enqueued and delivered; the oldest goes first.
KINDS_BOUND: Final = 256
# Descendants of a session that are followed; further ones are not (their asks are found by
# the reads of a gap only).
CHILDREN_BOUND: Final = 1024
# Asks of one session that may be open, further ones are declined in their turn; and asks of one
# turn in all, further ones are declined at once.
OPEN_ASKS_BOUND: Final = 32
TURN_ASKS_BOUND: Final = 256
# Cancels that outlive their turns; the oldest goes first.
LOOSE_BOUND: Final = 32


class Phase(Enum):
    """SUBMITTING until the POST's definite answer, WAITING in the inbox, RUNNING once delivered."""

    SUBMITTING = "submitting"
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

    `pid` is the server process that has it, as far as is known; 0 for not known.
    """

    id: str
    owner: int
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
    """An assistant message that a turn of ours owns; `spent` once its tokens are counted."""

    turn_id: str
    spent: bool = False
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


@dataclass(slots=True)
class Ask:
    """A permission request at the server; `turn_id` is None for one without a turn of ours.

    Such a one is `due` when nobody answered it in time; `patience` is how often that is put up
    with while the root runs a turn, which may be the one that asks.
    """

    ask: PermissionAsk
    turn_id: str | None
    step: AskStep
    decision: Literal["once", "always", "reject", "stop"] | None = None
    patience: int = 0
    due: bool = False


@dataclass(slots=True)
class SessionState:
    """One session. `running` are the delivered turns that share the answer in progress.

    `answering`: a prompt was delivered and its answer is not finished. `undelivered`: an
    execution was heard to start, and nothing was delivered in it so far. `surveyed`: the reads
    were looked at since the feed is without a gap.
    """

    id: str
    offsets: OffsetTable
    turns: dict[str, Turn] = field(default_factory=dict)
    running: list[str] = field(default_factory=list)
    messages: dict[str, Message] = field(default_factory=dict)
    asks: dict[str, Ask] = field(default_factory=dict)
    children: dict[str, str] = field(default_factory=dict)
    makers: dict[str, int | None] = field(default_factory=dict)
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
        return message

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

    def adopt(self, child_id: str, parent_id: str) -> bool:
        """Follow a child session of this one or of a descendant; False if it is not ours."""
        if child_id in self.children:
            return True
        ours = parent_id == self.id or parent_id in self.children
        if not ours or child_id == self.id or len(self.children) >= CHILDREN_BOUND:
            return False
        self.children[child_id] = parent_id
        return True

    def made(self, child_id: str, parent_id: str) -> None:
        """A child was made just now: by the turn that runs, or by what its parent belongs to."""
        if self.adopt(child_id, parent_id) and child_id not in self.makers:
            head = self.head()
            owner = head.owner if head is not None else None
            self.makers[child_id] = self.makers.get(parent_id, owner)
