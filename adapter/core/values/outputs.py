"""Everything that may follow from an input: what the engine performs, in order."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Literal

from adapter.core.values.counts import Oddity
from adapter.core.values.outcome import AskReason, Decision, Outcome, Wait
from adapter.limits import Bound
from contract.shapes import Form, JsonObject, PermissionAsk, ToolContent


@dataclass(frozen=True, slots=True)
class OfChild:
    """Of a descendant: itself, its parent, and the call of the parent that made it.

    The call is None for one that only asks and was found by the reads.
    """

    session_id: str
    parent_id: str
    message_id: str | None = None
    call_id: str | None = None


@dataclass(frozen=True, slots=True)
class OfRun:
    """An update of work that the client did not prompt.

    `run_id` is the inbox id of what began it; the first message heard of it, if that is not known.
    """

    run_id: str


Origin = OfChild | OfRun


@dataclass(frozen=True, slots=True)
class Chunk:
    """Text for the client: `session/update` agent_message_chunk or agent_thought_chunk.

    `ordinal` names the part, `start` is the offset of `text` in it, in characters. `origin` is
    None for what a turn of the client says itself.
    """

    owner: int
    message_id: str
    kind: Literal["text", "reasoning"]
    text: str
    retry_of: str | None = None
    recovered: bool = False
    ordinal: int = 0
    start: int = 0
    origin: Origin | None = None


class ToolStatus(Enum):
    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool call as it now stands; `first` for its first sight (`tool_call`)."""

    owner: int
    message_id: str
    call_id: str
    name: str
    status: ToolStatus
    first: bool = False
    input: JsonObject | None = None
    content: tuple[ToolContent, ...] | None = None
    metadata: JsonObject | None = None
    error: str | None = None
    origin: Origin | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """A tool call of a descendant in a few words; `status` None once events were missed.

    `input` holds the short texts of its arguments. `depth` is 0 for a child, 1 for its child.
    """

    name: str
    status: ToolStatus | None
    input: JsonObject
    depth: int = 0


@dataclass(frozen=True, slots=True)
class Progress:
    """What works for a running call of the turn, oldest first; `left_out` lines went before."""

    owner: int
    message_id: str
    call_id: str
    lines: tuple[Line, ...]
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Prompted:
    """The text of a prompt that is not the client's own, as it is put before the model."""

    owner: int
    message_id: str
    text: str
    origin: OfRun


@dataclass(frozen=True, slots=True)
class Usage:
    """Context in use after a step, and the session's cost when the server told it."""

    owner: int
    model: str | None
    used: int
    cost: float | None


@dataclass(frozen=True, slots=True)
class Compaction:
    """A compaction under a turn, or as one; `compaction_id` is the same in all of its states."""

    owner: int
    compaction_id: str
    status: Literal["in_progress", "completed", "failed", "cancelled"]
    reason: str = ""
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that the user should know; `kind` names it for programs."""

    owner: int
    kind: str
    title: str
    data: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AskClient:
    """Ask the client for a permission (`session/request_permission` under the root id).

    `child` is the title of the descendant that asks, "" for one without; None for the root.
    `origin` says which one that is.
    """

    owner: int
    ask: PermissionAsk
    tool: Tool | None
    child: str | None = None
    origin: OfChild | None = None


@dataclass(frozen=True, slots=True)
class ShowForm:
    """Ask the client to fill in a form (`elicitation/create` under the root id), if it can.

    `child` and `origin` as of `AskClient`.
    """

    owner: int
    form: Form
    tool: Tool | None
    child: str | None = None
    origin: OfChild | None = None


@dataclass(frozen=True, slots=True)
class WithdrawAsk:
    """Take a permission or a form back from the client (`$/cancel_request`)."""

    ask_id: str


@dataclass(frozen=True, slots=True)
class Reply:
    """Answer an ask at the server, on the session that owns it; `why` is for whoever counts."""

    session_id: str
    ask_id: str
    decision: Decision
    go_on: bool = True
    why: AskReason = field(default="client", compare=False)


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """Answer a form, on the session that owns it; with nothing, so that the turn goes on."""

    session_id: str
    form_id: str
    answer: JsonObject = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class DismissForm:
    """Take a form away that cannot be left unanswered: its tool fails, the turn goes on."""

    session_id: str
    form_id: str


@dataclass(frozen=True, slots=True)
class Interrupt:
    """Stop the running execution; the only stop that the server has (rule 12)."""

    turn_id: str


@dataclass(frozen=True, slots=True)
class StopChild:
    """Stop the execution of a child that carries out a command."""

    session_id: str


@dataclass(frozen=True, slots=True)
class Renamed:
    """The server's id of a turn that was submitted under another one is known now."""

    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Withdraw:
    """`DELETE inbox/{turn}`: says 204 in every case, the event tells."""

    turn_id: str


@dataclass(frozen=True, slots=True)
class Wake:
    """`PATCH inbox/{turn}`; `requeue` first for an item that is `steer` already (rule 3)."""

    turn_id: str
    requeue: bool


@dataclass(frozen=True, slots=True)
class ReadInbox:
    """Read `/inbox`, then `/active`, and come back with `InboxRead`."""


@dataclass(frozen=True, slots=True)
class TakeSnapshot:
    """Read everything and come back with `Reconcile`; events are buffered meanwhile.

    `needed` are the turns to judge: the rows are read back until all of them are in.
    """

    needed: frozenset[str]


@dataclass(frozen=True, slots=True)
class Arm:
    """Start (or restart) a timer; `wait` names a setting of `Waits`."""

    timer: str
    wait: Wait


@dataclass(frozen=True, slots=True)
class Disarm:
    timer: str


@dataclass(frozen=True, slots=True)
class Counted:
    """A limit was hit, or an oddity met, so many times."""

    bound: Bound | Oddity
    times: int = 1


@dataclass(frozen=True, slots=True)
class Settled:
    """A turn is over; every update of it went before this."""

    owner: int
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Unfollow:
    """A descendant is followed no more: nobody needs its events."""

    child_id: str


Output = (
    Chunk
    | Tool
    | Progress
    | Prompted
    | Usage
    | Compaction
    | Notice
    | AskClient
    | ShowForm
    | WithdrawAsk
    | Reply
    | AnswerForm
    | DismissForm
    | Interrupt
    | StopChild
    | Renamed
    | Withdraw
    | Wake
    | ReadInbox
    | TakeSnapshot
    | Arm
    | Disarm
    | Counted
    | Settled
    | Unfollow
)
