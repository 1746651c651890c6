"""What goes into the core and what comes out of it: plain frozen values.

The core decides; the engine performs. `Input` is everything that can happen to a session,
`Output` everything that may follow from it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Literal

from contract.events import Event
from contract.reads import AnyRow
from contract.shapes import Form, JsonObject, PermissionAsk, Tokens, ToolContent

Decision = Literal["once", "always", "reject"]
Wait = Literal[
    "cancel",
    "parked",
    "watch",
    "quiet",
    "gap",
    "lost_first",
    "lost_last",
    "ahead",
    "patience",
    "longest",
    "unattended",
    "reply",
    "loose",
]
CancelMark = Literal["confirmed", "unconfirmed"]


class Stop(Enum):
    """ACP stop reasons."""

    END_TURN = "end_turn"
    MAX_TOKENS = "max_tokens"
    MAX_TURN_REQUESTS = "max_turn_requests"
    REFUSAL = "refusal"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a turn ended: a stop reason, or an error code with one sentence.

    `admitted` is None when that itself is not known. `message_id` is the turn's id.
    """

    message_id: str
    stop: Stop | None = None
    code: int = 0
    message: str = ""
    reason: str = ""
    admitted: bool | None = True
    retry_safe: bool = False
    gaps: int = 0
    recovered: int = 0
    shared: bool = False
    cancel: CancelMark | None = None
    tokens: Tokens | None = None


# --- inputs ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Submit:
    """A client prompts: `turn_id` is the message id, made before the POST (rule 1)."""

    turn_id: str
    owner: int


class Admission(Enum):
    """What is known after the POST of a prompt (rule 2)."""

    ADMITTED = "admitted"
    NOT_ADMITTED = "not_admitted"
    UNREACHED = "unreached"
    UNCLEAR = "unclear"
    GONE = "gone"
    UNAUTHORISED = "unauthorised"


@dataclass(frozen=True, slots=True)
class Posted:
    """The definite answer of a submission; `probed` when it took a second POST to get it."""

    turn_id: str
    admission: Admission
    message: str = ""
    probed: bool = False


@dataclass(frozen=True, slots=True)
class Heard:
    """An event of the feed, of this session or of a descendant."""

    event: Event


@dataclass(frozen=True, slots=True)
class FeedLost:
    """Continuity of the feed is lost (rule 17)."""


@dataclass(frozen=True, slots=True)
class FeedBack:
    """The feed is connected again; events are heard from here on."""


@dataclass(frozen=True, slots=True)
class ServerSeen:
    """The process id of the server that the feed is connected to."""

    pid: int


@dataclass(frozen=True, slots=True)
class Cancel:
    """`session/cancel` or `$/cancel_request` from the owner of a turn."""

    owner: int


@dataclass(frozen=True, slots=True)
class Left:
    """The owner's connection is gone; `interrupt` is the setting `on_client_exit`."""

    owner: int
    interrupt: bool


@dataclass(frozen=True, slots=True)
class Answered:
    """The client's answer to an ask. Anything that is no clear approval is "reject"."""

    ask_id: str
    decision: Decision


@dataclass(frozen=True, slots=True)
class Replied:
    """The reply of an ask reached the server (`settled`), or could not be delivered."""

    ask_id: str
    settled: bool
    found: bool = True


@dataclass(frozen=True, slots=True)
class Fired:
    """A timer that the core had asked for."""

    timer: str


@dataclass(frozen=True, slots=True)
class Woken:
    """The answer of a wake: False when the item was no longer pending (409)."""

    turn_id: str
    pending: bool


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the reads of one session said, in lifecycle order (rule 18).

    `rows` ascend and hold the rows of all judged turns; `judged` are the turns that were
    admitted before the inbox was read. `complete` is False when the bound cut the rows.
    `asks` and `forms` are None when they could not be read: the turns are judged all the same.
    """

    inbox: frozenset[str] = frozenset()
    active: bool = False
    rows: tuple[AnyRow, ...] = ()
    complete: bool = True
    asks: tuple[PermissionAsk, ...] | None = ()
    forms: tuple[Form, ...] | None = ()
    children: tuple[tuple[str, str], ...] = ()
    pid: int = 0
    judged: frozenset[str] = frozenset()
    state: Literal["ok", "gone", "unauthorised"] = "ok"


@dataclass(frozen=True, slots=True)
class Reconcile:
    """A snapshot, and the events of this session heard since it was asked for."""

    snapshot: Snapshot
    buffer: tuple[Event, ...] = ()


@dataclass(frozen=True, slots=True)
class InboxRead:
    """`/inbox`, then `/active` (rule 5)."""

    inbox: tuple[str, ...]
    active: bool


Input = (
    Submit
    | Posted
    | Heard
    | FeedLost
    | FeedBack
    | ServerSeen
    | Cancel
    | Left
    | Answered
    | Replied
    | Fired
    | Woken
    | Reconcile
    | InboxRead
)


# --- outputs --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Chunk:
    """Text for the client: `session/update` agent_message_chunk or agent_thought_chunk.

    `ordinal` names the part, `start` is the offset of `text` in it, in characters.
    """

    owner: int
    message_id: str
    kind: Literal["text", "reasoning"]
    text: str
    retry_of: str | None = None
    recovered: bool = False
    ordinal: int = 0
    start: int = 0


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


@dataclass(frozen=True, slots=True)
class Usage:
    """Context in use after a step, and the session's cost when the server told it."""

    owner: int
    model: str | None
    used: int
    cost: float | None


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that the user should know; `kind` names it for programs."""

    owner: int
    kind: str
    title: str
    data: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AskClient:
    """Ask the client for a permission (`session/request_permission` under the root id)."""

    owner: int
    ask: PermissionAsk
    tool: Tool | None


@dataclass(frozen=True, slots=True)
class WithdrawAsk:
    """Take an ask back from the client (`$/cancel_request`)."""

    ask_id: str


@dataclass(frozen=True, slots=True)
class Reply:
    """Answer an ask at the server, on the session that owns it."""

    session_id: str
    ask_id: str
    decision: Decision
    go_on: bool = True


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """Answer a form with nothing, so that the turn goes on."""

    session_id: str
    form_id: str


@dataclass(frozen=True, slots=True)
class Interrupt:
    """Stop the running execution; the only stop that the server has (rule 12)."""

    turn_id: str


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
class Settled:
    """A turn is over; every update of it went before this."""

    owner: int
    outcome: Outcome


Output = (
    Chunk
    | Tool
    | Usage
    | Notice
    | AskClient
    | WithdrawAsk
    | Reply
    | AnswerForm
    | Interrupt
    | Withdraw
    | Wake
    | ReadInbox
    | TakeSnapshot
    | Arm
    | Disarm
    | Settled
)
