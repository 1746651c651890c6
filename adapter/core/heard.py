"""What one event of a message adds to a part or to a tool call.

Shared by the turns, which own their messages, and by those who only watch the work of others.
"""

from __future__ import annotations

from dataclasses import replace

from adapter.core.offsets import Kind, OffsetTable, Part
from adapter.core.values import Tool, ToolStatus
from contract import events as ev

OVER = (ToolStatus.COMPLETED, ToolStatus.FAILED)


def part_of(event: ev.PartEvent) -> Part:
    kind: Kind = (
        "reasoning"
        if isinstance(event, ev.ReasoningStarted | ev.ReasoningDelta | ev.ReasoningEnded)
        else "text"
    )
    return Part(event.message_id, kind, event.ordinal)


def text_of(offsets: OffsetTable, key: str, event: ev.PartEvent) -> str:
    """The text that the event brings and that was not sent yet (rule 9); `key` as in `offsets`."""
    part = part_of(event)
    match event:
        case ev.TextStarted() | ev.ReasoningStarted():
            offsets.started(key, part)
            return ""
        case ev.TextDelta() | ev.ReasoningDelta():
            return offsets.delta(key, part, event.delta)
        case ev.TextEnded() | ev.ReasoningEnded():
            return offsets.full(key, part, event.text)
        case _:
            return ""


def advance(owner: int, known: Tool | None, event: ev.ToolEvent) -> Tool | None:
    """The call after the event; None if nothing changes, since a tool moves forward only."""
    if known is not None and known.status in OVER:
        return None
    tool = known or Tool(owner, event.message_id, event.call_id, "tool", ToolStatus.PENDING)
    match event:
        case ev.ToolInputStarted():
            return replace(tool, name=event.name) if known is None else None
        case ev.ToolCalled():
            return replace(tool, status=ToolStatus.IN_PROGRESS, input=event.input)
        case ev.ToolProgress():
            metadata = {**(tool.metadata or {}), **event.metadata}
            return replace(tool, status=ToolStatus.IN_PROGRESS, metadata=metadata)
        case ev.ToolSuccess():
            return replace(
                tool, status=ToolStatus.COMPLETED, content=event.content, metadata=event.metadata
            )
        case ev.ToolFailed():
            return replace(
                tool, status=ToolStatus.FAILED, error=event.error.message, metadata=event.metadata
            )
        case _:
            return None


def kept(tool: Tool) -> Tool:
    """What is remembered of a call: of one that is over only its state, for there may be many."""
    if tool.status in OVER:
        return replace(tool, input=None, content=None, metadata=None, error=None)
    return tool
