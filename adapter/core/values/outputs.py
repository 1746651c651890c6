"""Everything that may follow from an input: what the engine performs, in order."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Literal

from adapter.core.values.outcome import Decision, Outcome, Wait
from contract.shapes import JsonObject, PermissionAsk, ToolContent


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
