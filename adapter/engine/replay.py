"""The rows of a session as the updates that a client would have seen when they came. Pure.

Everything is marked as a replay in `_meta`, so that a client can tell it from what happens now.
Rows that are no part of the conversation (choices, reminders of the server to the model, marks of
idleness) are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from adapter.acp import toolcalls, updates
from adapter.acp.bounded import cut
from adapter.acp.capabilities import Capabilities
from adapter.core.offsets import Kind, Part
from adapter.core.parts import tool_of
from adapter.core.reconcile import is_retried
from adapter.core.values import Chunk, Compaction, Notice, Tool, ToolStatus
from adapter.engine.owed import Shown
from adapter.limits import DEFAULTS, Limits
from contract.reads import (
    AnyRow,
    AssistantRow,
    Attachment,
    CompactionRow,
    ReasoningPart,
    ShellRow,
    TextPart,
    ToolPart,
    UserRow,
)
from contract.shapes import ToolContent
from contract.words import counted

Json = dict[str, object]

ORIGIN: Final = "replay"
# Characters of base64 that one image may take; a larger one is named only.
IMAGE_CHARS: Final = 256 * 1024
NAME_CHARS: Final = 256
UNFINISHED: Final = "The call did not come to its end."
OPEN: Final = (ToolStatus.PENDING, ToolStatus.IN_PROGRESS)
OVER: Final = frozenset({ToolStatus.COMPLETED.value, ToolStatus.FAILED.value})
# Updates of a replay belong to whoever loads.
OWNER: Final = 0


class Replay:
    """Rows in, oldest first; updates out. What was shown of each part and tool is kept."""

    def __init__(self, directory: str, can: Capabilities, limits: Limits = DEFAULTS) -> None:
        self._directory = directory
        self._can = can
        self._limits = limits
        self.active = False
        """Whether the session runs, so that what is open may still end."""
        self._failed: str | None = None
        self.texts: dict[Part, int] = {}
        """Characters that were shown of each part."""
        self.tools: dict[str, bool] = {}
        """Tool calls that were shown, by their ACP id; True for one that is over."""
        self.prompts: set[str] = set()
        """Prompts that were shown."""

    def shown(self) -> Shown:
        """What the client has of it."""
        return Shown(self.texts, self.tools, self.prompts)

    def notice(self, kind: str, title: str, **data: object) -> Json:
        """A notice about the replay itself."""
        told = Notice(OWNER, kind, title, {"origin": ORIGIN, **data})
        return updates.notice(told, self._limits, advertised=self._can.notices)

    def updates(self, row: AnyRow) -> Iterator[Json]:
        """What the row shows, in the order of its parts; `time` in milliseconds since 1970."""
        when: Json = {"time": row.time.created} if row.time.created else {}
        for update in self._updates(row):
            yield updates.with_meta(update, origin=ORIGIN, **when)

    def _updates(self, row: AnyRow) -> Iterator[Json]:
        match row:
            case UserRow():
                self._failed = None
                self.prompts.add(row.id)
                yield from _user(row, self._limits)
            case AssistantRow():
                yield from self._assistant(row)
            case ShellRow():
                yield self._tool(_shell(row))
            case CompactionRow(status="completed"):
                done = Compaction(OWNER, row.id, "completed", row.reason)
                advertised = self._can.compaction
                yield updates.compaction(done, self._limits, advertised=advertised)
            case _:
                pass

    def _assistant(self, row: AssistantRow) -> Iterator[Json]:
        retry_of, self._failed = self._failed, row.id if is_retried(row) else None
        ordinals: dict[Kind, int] = {"text": 0, "reasoning": 0}
        for part in row.content:
            match part:
                case TextPart() | ReasoningPart():
                    key = Part(row.id, part.type, ordinals[part.type])
                    ordinals[part.type] += 1
                    self.texts[key] = len(part.text)
                    chunk = Chunk(OWNER, row.id, part.type, part.text, retry_of)
                    yield from updates.chunks(chunk, self._limits)
                case ToolPart():
                    yield self._tool(tool_of(OWNER, row.id, part))
                case _:
                    pass
        if row.error is not None and row.error.type != "aborted":
            yield self.notice("failed", row.error.message, messageId=row.id)

    def _tool(self, tool: Tool) -> Json:
        if tool.status in OPEN and not self.active:
            tool = replace(tool, status=ToolStatus.FAILED, error=UNFINISHED)
        # The server keeps what a model made: it may name two calls of one answer alike.
        seen = toolcalls.call_id(tool.message_id, tool.call_id) in self.tools
        update = updates.tool(replace(tool, first=not seen), self._directory, self._limits)
        self.tools[str(update["toolCallId"])] = update["status"] in OVER
        return update


def _user(row: UserRow, limits: Limits) -> Iterator[Json]:
    if row.text:
        yield from updates.user_text(row.id, row.text, limits)
    for file in row.files:
        yield updates.user_block(row.id, _block(file))


def _block(file: Attachment) -> Json:
    """An attachment as a prompt could have sent it; one that is too large is named."""
    name = cut(file.name or "", NAME_CHARS)
    uri = file.source.uri
    if uri is not None:
        link: Json = {"type": "resource_link", "uri": uri, "name": name or uri}
        return link | ({"mimeType": file.mime} if file.mime else {})
    if file.mime.startswith("image/") and len(file.data) <= IMAGE_CHARS:
        return {"type": "image", "data": file.data, "mimeType": file.mime}
    size = len(file.data) * 3 // 4
    what = f"[{name or 'attachment'}: {file.mime or 'unknown type'}, {counted(size, 'byte')}]"
    return {"type": "text", "text": what}


def _shell(row: ShellRow) -> Tool:
    status = ToolStatus.IN_PROGRESS if row.status == "running" else ToolStatus.COMPLETED
    return Tool(
        OWNER,
        row.id,
        "shell",
        "shell",
        status,
        input={"command": row.command},
        content=(ToolContent(type="text", text=row.output.output),) if row.output.output else (),
        metadata=None if row.exit is None else {"exit": row.exit},
    )
