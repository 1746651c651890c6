"""What is remembered of calls and texts, in bytes as `turn_context_bytes` counts them (S3-L8)."""

from __future__ import annotations

from typing import Final

from adapter.core.values import Tool, ToolStatus

# Bytes that a message, a call and a part weigh, besides the texts that a call holds.
ENTRY: Final = 256
# Messages whose ids are remembered: more than the rows that one reading can show, so that no row
# of an older one is taken for news.
MESSAGES: Final = 1280
# A part of the limit that is freed on top when something is let go of: that is work for every
# entry.
SLACK: Final = 8


def texts_of(tool: Tool) -> int:
    """Bytes of what a running call was told; of one that is over nothing is kept."""
    if tool.status not in (ToolStatus.PENDING, ToolStatus.IN_PROGRESS):
        return 0
    return size_of(tool.input) + size_of(tool.metadata)


def size_of(value: object) -> int:
    """Characters of the texts in a JSON value, and a few for every other one."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(len(key) + size_of(item) for key, item in value.items())
    if isinstance(value, list | tuple):
        return sum(map(size_of, value))
    return 0 if value is None else 8
