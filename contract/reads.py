"""What the server's reads answer, as far as the adapter looks (OpenCode facts, section 7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from contract.calls import AgentMention, CallMarks, call_of, child_of
from contract.shapes import JsonObject, ModelRef, ServerError, Shape, Tokens, ToolContent


class Info(Shape):
    """`GET /api/info`."""

    version: str
    pid: int


class Location(Shape):
    directory: str


class RowTime(Shape):
    created: float = 0
    completed: float | None = None
    updated: float | None = None


class Session(Shape):
    """`GET /api/session/{id}`; agent and model only after an explicit choice."""

    id: str
    title: str = ""
    parent_id: Annotated[str | None, Field(alias="parentID")] = None
    location: Location | None = None
    agent: str | None = None
    model: ModelRef | None = None
    cost: float | None = None
    time: RowTime = Field(default_factory=RowTime)


class SessionRow(Shape):
    """An item of `GET /api/session`; a `parentID` of any shape is judged by whoever lists it."""

    id: str
    title: str = ""
    parent_id: Annotated[object, Field(alias="parentID")] = None
    location: Location | None = None
    time: RowTime = Field(default_factory=RowTime)


class ItemPayload(CallMarks):
    text: str = ""


class InboxItem(Shape):
    """`GET …/inbox`, and the answer of `POST …/prompt`."""

    id: str
    type: str = "user"
    delivery: str | None = None
    time: RowTime = Field(default_factory=RowTime)
    payload: ItemPayload = Field(default_factory=ItemPayload)


class ToolState(Shape):
    """A tool call in a message: status streaming, running, completed or error."""

    status: str
    input: JsonObject | str | None = None
    content: tuple[ToolContent, ...] = ()
    metadata: JsonObject | None = None
    error: ServerError | None = None


class TextPart(Shape):
    type: Literal["text"]
    text: str


class ReasoningPart(Shape):
    type: Literal["reasoning"]
    text: str


class ToolPart(Shape):
    type: Literal["tool"]
    id: str
    name: str
    state: ToolState


class OtherPart(Shape):
    type: str


Part = TextPart | ReasoningPart | ToolPart | OtherPart


class Row(Shape):
    """A row of `GET …/message` that ends or opens a segment by its type alone."""

    id: str
    type: str
    time: RowTime = Field(default_factory=RowTime)


class Source(Shape):
    """Where an attachment came from: `inline`, or `uri` with the file's address."""

    type: str = "inline"
    uri: str | None = None


class Attachment(Shape):
    """A file of a prompt, its bytes included (base64)."""

    data: str = ""
    mime: str = ""
    name: str | None = None
    source: Source = Field(default_factory=Source)


class UserRow(Row):
    type: Literal["user"]
    text: str = ""
    files: tuple[Attachment, ...] = ()
    agents: tuple[AgentMention, ...] = ()


class SyntheticRow(Row):
    """A message that the server put in: a reminder, a retry's request, the end of a child."""

    type: Literal["synthetic"]
    metadata: JsonObject | None = None


class IdleRow(Row):
    type: Literal["idle"]
    outcome: str = ""


class AssistantRow(Row):
    type: Literal["assistant"]
    content: tuple[Part, ...] = ()
    finish: str | None = None
    error: ServerError | None = None
    model: ModelRef | None = None
    cost: float | None = None
    tokens: Tokens | None = None


class ShellOutput(Shape):
    output: str = ""


class ShellRow(Row):
    """A command that a user of another front end ran beside any turn."""

    type: Literal["shell"]
    command: str = ""
    status: str = ""
    exit: int | None = None
    output: ShellOutput = Field(default_factory=ShellOutput)


class CompactionRow(Row):
    """`status` is running, completed or failed; `reason` manual or auto."""

    type: Literal["compaction"]
    status: str = ""
    reason: str = ""
    summary: str = ""
    error: ServerError | None = None


AnyRow = UserRow | IdleRow | AssistantRow | ShellRow | SyntheticRow | CompactionRow | Row


class ModelLimit(Shape):
    context: int | None = None


class Variant(Shape):
    id: str


class Capabilities(Shape):
    input: tuple[str, ...] = ()


class Model(Shape):
    """`GET /api/model`. `settings`, which holds the key in clear text, is not read at all.

    Workaround "the key of a model is never read".
    """

    id: str
    provider_id: Annotated[str, Field(alias="providerID")]
    name: str = ""
    enabled: bool = True
    variants: tuple[Variant, ...] = ()
    capabilities: Capabilities = Field(default_factory=Capabilities)
    limit: ModelLimit = Field(default_factory=ModelLimit)

    @property
    def key(self) -> str:
        return f"{self.provider_id}/{self.id}"


class Agent(Shape):
    """`GET /api/agent`; modes are those that are no sub-agent and not hidden."""

    id: str
    name: str = ""
    description: str | None = None
    mode: str = "primary"
    hidden: bool = False


class Command(Shape):
    """`GET /api/command`: the template stays with the server."""

    name: str
    description: str | None = None


class Skill(Shape):
    """`GET /api/skill`."""

    id: str
    name: str = ""
    description: str | None = None


def row_call(row: AnyRow) -> str | None:
    """The turn whose command made this row, or the child whose end it tells."""
    match row:
        case UserRow():
            return call_of(row.agents)
        case SyntheticRow():
            return child_of(row.metadata)
        case _:
            return None


def _part(raw: object) -> Part:
    if not isinstance(raw, dict):
        return OtherPart(type="unknown")
    match raw.get("type"):
        case "text":
            return TextPart.model_validate(raw)
        case "reasoning":
            return ReasoningPart.model_validate(raw)
        case "tool":
            return ToolPart.model_validate(raw)
        case kind:
            return OtherPart(type=str(kind))


def parse_row(raw: Mapping[str, Any]) -> AnyRow:
    """One message row; a type that the adapter does not use becomes a plain `Row`.

    Raises `pydantic.ValidationError` when a row that it does use has another shape.
    """
    match raw.get("type"):
        case "user":
            return UserRow.model_validate(raw)
        case "idle":
            return IdleRow.model_validate(raw)
        case "shell":
            return ShellRow.model_validate(raw)
        case "synthetic":
            return SyntheticRow.model_validate(raw)
        case "compaction":
            return CompactionRow.model_validate(raw)
        case "assistant":
            parts = tuple(_part(part) for part in raw.get("content") or ())
            return AssistantRow.model_validate({**raw, "content": parts})
        case _:
            return Row.model_validate(raw)


__all__ = [
    "Agent", "AnyRow", "AssistantRow", "Attachment", "Command", "CompactionRow", "IdleRow",
    "InboxItem", "Info", "ItemPayload", "Model", "Part", "ReasoningPart", "Row", "Session",
    "SessionRow", "ShellRow", "Skill", "SyntheticRow", "TextPart", "ToolPart", "ToolState",
    "UserRow", "ValidationError", "parse_row", "row_call",
]  # fmt: skip
