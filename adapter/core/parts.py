"""What a row of the server shows of a tool call, as the client is told it."""

from __future__ import annotations

from adapter.core.values import Tool, ToolStatus
from contract.reads import ToolPart

_STATUS = (
    ("completed", ToolStatus.COMPLETED),
    ("error", ToolStatus.FAILED),
    ("running", ToolStatus.IN_PROGRESS),
)


def tool_of(owner: int, message_id: str, part: ToolPart) -> Tool:
    """The call as the row has it; one whose input still streams is pending, without an input."""
    state = part.state
    status = dict(_STATUS).get(state.status, ToolStatus.PENDING)
    error = None
    if status is ToolStatus.FAILED:
        error = state.error.message if state.error else "The tool failed."
    return Tool(
        owner,
        message_id,
        part.id,
        part.name,
        status,
        input=state.input if isinstance(state.input, dict) else None,
        content=state.content if status is ToolStatus.COMPLETED else None,
        metadata=state.metadata,
        error=error,
    )
