"""Values that events and reads share, as the server writes them (OpenCode facts)."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field

# JSON of the server that is passed on and not looked into.
JsonObject = dict[str, Any]


class Shape(BaseModel):
    """Base: frozen, unknown fields ignored, names by alias or by field."""

    model_config = ConfigDict(defer_build=True, frozen=True, extra="ignore", populate_by_name=True)


class ServerError(Shape):
    """An error of a step, a tool or an execution. Types: facts, section 12."""

    type: str = "unknown"
    message: str = ""
    status: int | None = None


class ModelRef(Shape):
    """A chosen model; `variant` is the effort."""

    id: str
    provider_id: Annotated[str, Field(alias="providerID")]
    variant: str | None = None

    @property
    def key(self) -> str:
        """`provider/model`, the id of the ACP choice."""
        return f"{self.provider_id}/{self.id}"


class CacheTokens(Shape):
    read: int = 0
    write: int = 0


class Tokens(Shape):
    """Tokens of a step: `input` excludes cached ones, `output` excludes reasoning."""

    input: int = 0
    output: int = 0
    reasoning: int = 0
    cache: CacheTokens = Field(default_factory=CacheTokens)

    @property
    def total(self) -> int:
        return self.input + self.output + self.reasoning + self.cache.read + self.cache.write


class ToolContent(Shape):
    """One piece of a tool's result: `text` or `file` (with `uri`, `mime`, `name`)."""

    type: str
    text: str | None = None
    uri: str | None = None
    mime: str | None = None
    name: str | None = None


class AskSource(Shape):
    """What asks: for a tool the assistant message and the call."""

    type: str = "tool"
    message_id: Annotated[str | None, Field(alias="messageID")] = None
    call_id: Annotated[str | None, Field(alias="id")] = None


class PermissionAsk(Shape):
    """A pending permission request of a session (facts, section 5)."""

    id: str
    session_id: Annotated[str, Field(alias="sessionID")]
    action: str
    resources: tuple[str, ...] = ()
    metadata: JsonObject | None = None
    source: AskSource | None = None


GLOBAL: Final = "global"
"""What stands for the session of a form that has none: an MCP server's."""


class Form(Shape):
    """A pending form: of the question tool, of another tool, or of an MCP server (facts, 6).

    A form of an MCP server has no session; it stands under `GLOBAL`.
    """

    id: str
    session_id: Annotated[str, Field(alias="sessionID")]
    title: str = ""
    metadata: JsonObject | None = None
    fields: tuple[JsonObject, ...] = ()

    @property
    def source(self) -> AskSource | None:
        """The call that asks; only the question tool says which."""
        tool = (self.metadata or {}).get("tool")
        if not isinstance(tool, dict):
            return None
        message_id, call_id = tool.get("messageID"), tool.get("id")
        if not isinstance(message_id, str) or not isinstance(call_id, str):
            return None
        return AskSource(message_id=message_id, call_id=call_id)
