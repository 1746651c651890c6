"""The events of the server's feed that the adapter uses (OpenCode facts, section 2).

One frozen class an event, its fields those of the event's `data`. Unknown fields are ignored;
an unknown type or a known type of another shape is no event to us (`parse` says which).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, ClassVar, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from contract.calls import CallMarks
from contract.shapes import (
    Form,
    JsonObject,
    ModelRef,
    PermissionAsk,
    ServerError,
    Tokens,
    ToolContent,
)

# Characters of a prompt's text that are kept from its echo.
PROMPT_CHARS: Final = 64 * 1024


class Event(BaseModel):
    """Base of all events. `session_id` is the session that the event speaks of."""

    model_config = ConfigDict(defer_build=True, frozen=True, extra="ignore", populate_by_name=True)
    type: ClassVar[str] = ""
    session_id: Annotated[str, Field(alias="sessionID")]


class MessageEvent(Event):
    """An event of one assistant message."""

    message_id: Annotated[str, Field(alias="assistantMessageID")]


class PartEvent(MessageEvent):
    """An event of one part; ordinals count per kind and message (facts, section 3)."""

    ordinal: int


class SessionCreated(Event):
    type: ClassVar[str] = "session.created"
    parent_id: Annotated[str | None, Field(alias="parentID")] = None
    title: str = ""


class SessionDeleted(Event):
    type: ClassVar[str] = "session.deleted"


class SessionRenamed(Event):
    type: ClassVar[str] = "session.renamed"
    title: str


class AgentSelected(Event):
    type: ClassVar[str] = "session.agent.selected"
    agent: str


class ModelSelected(Event):
    type: ClassVar[str] = "session.model.selected"
    model: ModelRef


def _beginning(text: object) -> object:
    return text[:PROMPT_CHARS] if isinstance(text, str) else text


class InboxPayload(CallMarks):
    """The text is read as far as it is shown: it may have many megabytes."""

    text: Annotated[str, BeforeValidator(_beginning)] = ""


class InboxEnqueuedItem(BaseModel):
    model_config = ConfigDict(defer_build=True, frozen=True, extra="ignore")
    type: str
    delivery: str | None = None
    payload: InboxPayload = Field(default_factory=InboxPayload)


class InboxEnqueued(Event):
    type: ClassVar[str] = "session.inbox.enqueued"
    inbox_id: Annotated[str, Field(alias="inboxID")]
    item: InboxEnqueuedItem


class InboxDelivered(Event):
    type: ClassVar[str] = "session.inbox.delivered"
    inbox_id: Annotated[str, Field(alias="inboxID")]


class InboxCancelled(Event):
    type: ClassVar[str] = "session.inbox.cancelled"
    inbox_id: Annotated[str, Field(alias="inboxID")]


class ExecutionStarted(Event):
    type: ClassVar[str] = "session.execution.started"


class ExecutionSucceeded(Event):
    type: ClassVar[str] = "session.execution.succeeded"


class ExecutionFailed(Event):
    type: ClassVar[str] = "session.execution.failed"
    error: ServerError


class ExecutionInterrupted(Event):
    type: ClassVar[str] = "session.execution.interrupted"
    reason: str = "user"


class StepStarted(MessageEvent):
    type: ClassVar[str] = "session.step.started"
    model: ModelRef | None = None


class StepEnded(MessageEvent):
    type: ClassVar[str] = "session.step.ended"
    finish: str
    cost: float | None = None
    tokens: Tokens | None = None


class StepFailed(MessageEvent):
    type: ClassVar[str] = "session.step.failed"
    error: ServerError


class RetryScheduled(MessageEvent):
    type: ClassVar[str] = "session.retry.scheduled"
    attempt: int
    at: float
    error: ServerError


class Synthetic(Event):
    type: ClassVar[str] = "session.synthetic"


class TextStarted(PartEvent):
    type: ClassVar[str] = "session.text.started"


class TextDelta(PartEvent):
    type: ClassVar[str] = "session.text.delta"
    delta: str


class TextEnded(PartEvent):
    type: ClassVar[str] = "session.text.ended"
    text: str


class ReasoningStarted(PartEvent):
    type: ClassVar[str] = "session.reasoning.started"


class ReasoningDelta(PartEvent):
    type: ClassVar[str] = "session.reasoning.delta"
    delta: str


class ReasoningEnded(PartEvent):
    type: ClassVar[str] = "session.reasoning.ended"
    text: str


class ToolEvent(MessageEvent):
    """An event of one tool call; `call_id` is the model's id of the call."""

    call_id: Annotated[str, Field(alias="id")]


class ToolInputStarted(ToolEvent):
    type: ClassVar[str] = "session.tool.input.started"
    name: str


class ToolInputEnded(ToolEvent):
    type: ClassVar[str] = "session.tool.input.ended"


class ToolCalled(ToolEvent):
    type: ClassVar[str] = "session.tool.called"
    input: JsonObject = Field(default_factory=dict)


class ToolProgress(ToolEvent):
    type: ClassVar[str] = "session.tool.progress"
    metadata: JsonObject = Field(default_factory=dict)


class ToolSuccess(ToolEvent):
    type: ClassVar[str] = "session.tool.success"
    content: tuple[ToolContent, ...] = ()
    metadata: JsonObject | None = None


class ToolFailed(ToolEvent):
    type: ClassVar[str] = "session.tool.failed"
    error: ServerError
    metadata: JsonObject | None = None


class CompactionEvent(Event):
    """An event of the one compaction that a session may have at a time.

    `reason` is manual or auto; only a manual one that starts or fails tells the id of its item.
    """

    reason: str = "manual"


class CompactionStarted(CompactionEvent):
    type: ClassVar[str] = "session.compaction.started"
    input_id: Annotated[str | None, Field(alias="inputID")] = None


class CompactionEnded(CompactionEvent):
    type: ClassVar[str] = "session.compaction.ended"
    text: str = ""


class CompactionFailed(CompactionEvent):
    type: ClassVar[str] = "session.compaction.failed"
    error: ServerError
    input_id: Annotated[str | None, Field(alias="inputID")] = None


class UsageUpdated(Event):
    type: ClassVar[str] = "session.usage.updated"
    cost: float
    tokens: Tokens


class PermissionAsked(Event):
    type: ClassVar[str] = "permission.asked"
    ask: PermissionAsk


class PermissionReplied(Event):
    type: ClassVar[str] = "permission.replied"
    request_id: Annotated[str, Field(alias="requestID")]
    reply: str


class FormCreated(Event):
    type: ClassVar[str] = "form.created"
    form: Form


class FormReplied(Event):
    type: ClassVar[str] = "form.replied"
    form_id: Annotated[str, Field(alias="id")]


class FormCancelled(Event):
    type: ClassVar[str] = "form.cancelled"
    form_id: Annotated[str, Field(alias="id")]


class CatalogueChanged(BaseModel):
    """A list of a directory changed: `what` is agent, model, provider, command, skill, ..."""

    model_config = ConfigDict(defer_build=True, frozen=True)
    what: str
    directory: str | None


class Unused(BaseModel):
    """A line that is no event to the adapter; `why` is "type" or "shape"."""

    model_config = ConfigDict(defer_build=True, frozen=True)
    type: str
    why: Literal["type", "shape"]


Execution = ExecutionSucceeded | ExecutionFailed | ExecutionInterrupted

SESSION_EVENTS: Final[Mapping[str, type[Event]]] = MappingProxyType(
    {
        kind.type: kind
        for kind in (
            SessionCreated, SessionDeleted, SessionRenamed, AgentSelected, ModelSelected,
            InboxEnqueued, InboxDelivered, InboxCancelled,
            ExecutionStarted, ExecutionSucceeded, ExecutionFailed, ExecutionInterrupted,
            StepStarted, StepEnded, StepFailed, RetryScheduled, Synthetic,
            TextStarted, TextDelta, TextEnded,
            ReasoningStarted, ReasoningDelta, ReasoningEnded,
            ToolInputStarted, ToolInputEnded, ToolCalled, ToolProgress, ToolSuccess, ToolFailed,
            CompactionStarted, CompactionEnded, CompactionFailed,
            UsageUpdated, PermissionAsked, PermissionReplied,
            FormCreated, FormReplied, FormCancelled,
        )
    }
)  # fmt: skip

# Types whose lines carry no session and are passed to the engine all the same.
SESSIONLESS_TYPES: Final = frozenset(
    {
        "server.connected",
        "location.shutdown",
        "mcp.status.changed",
        # A form of an MCP server has no session.
        "form.created",
        "form.replied",
        "form.cancelled",
        *(
            f"{what}.updated"
            for what in (
                "config", "agent", "model", "provider", "command", "skill", "plugin",
                "reference", "integration", "websearch",
            )
        ),
    }
)  # fmt: skip

# Heard on the feed and of no use to a turn: not counted as unknown.
IGNORED_TYPES: Final = frozenset(
    {
        "session.instructions.updated", "session.step.streamed", "session.metadata.updated",
        "session.inbox.delivery.changed", "session.skill.activated", "session.permissions",
        "session.compaction.delta", "session.updated", "shell.created", "shell.exited",
        "project.updated", "mcp.resources.changed", "session.viewed",
    }
)  # fmt: skip


def parse(raw: Mapping[str, object]) -> Event | CatalogueChanged | Unused:
    """One decoded `data:` line of the feed as an event, or `Unused` with the reason.

    `permission.asked` carries its ask as `data` itself and `form.created` as `data.form`
    (facts, sections 5 and 6); both become one field here.
    """
    kind = raw.get("type")
    data = raw.get("data")
    if not isinstance(kind, str) or not isinstance(data, dict):
        return Unused(type=str(kind), why="shape")
    if kind in SESSIONLESS_TYPES and kind.endswith(".updated"):
        location = raw.get("location")
        directory = location.get("directory") if isinstance(location, dict) else None
        return CatalogueChanged(
            what=kind.removesuffix(".updated"),
            directory=directory if isinstance(directory, str) else None,
        )
    model = SESSION_EVENTS.get(kind)
    if model is None:
        return Unused(type=kind, why="type")
    try:
        if model is PermissionAsked:
            return PermissionAsked.model_validate({**data, "ask": data})
        if model is FormCreated:
            form = data.get("form")
            owner = form.get("sessionID") if isinstance(form, dict) else None
            return FormCreated.model_validate({"sessionID": owner, "form": form})
        return model.model_validate(data)
    except ValidationError:
        return Unused(type=kind, why="shape")
