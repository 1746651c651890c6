"""What a client has of messages that are not its own turn's: those of descendants, and of runs.

The same rules as for a turn (rule 9): a part whose start was heard takes deltas, every other one
is held until its full text comes with `ended`; tools move forwards. The server's reads are not
looked at here, so a text whose `ended` fell into a gap stays as far as it came.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from adapter.core.heard import OVER, advance, kept, part_of, text_of
from adapter.core.offsets import Kind, Offset, OffsetTable, Part
from adapter.core.parts import tool_of
from adapter.core.values import Chunk, Origin, Tool, ToolStatus
from contract import events as ev
from contract.reads import AssistantRow, ReasoningPart, TextPart, ToolPart


class Watched:
    """Its entries of `offsets` stand under `key`, which nobody else uses."""

    def __init__(self, offsets: OffsetTable, key: str) -> None:
        self._offsets = offsets
        self._key = key
        self.tools: dict[tuple[str, str], Tool] = {}

    def hear(self, owner: int, event: ev.MessageEvent, origin: Origin) -> list[Chunk | Tool]:
        """The updates for `owner` that follow from one event."""
        match event:
            case ev.PartEvent():
                return self._text(owner, event, origin)
            case ev.ToolEvent():
                at = (event.message_id, event.call_id)
                known = self.tools.get(at)
                tool = advance(owner, known, event)
                if tool is None:
                    return []
                first = known is None or known.owner != owner
                tool = replace(tool, owner=owner, first=first, origin=origin)
                self.tools[at] = kept(tool)
                return [tool]
            case _:
                return []

    def hold(self) -> None:
        """Events were missed: no part takes deltas any more."""
        self._offsets.hold(self._key)

    def restart(self) -> None:
        """Another client, or the same one from nothing: it gets what is open in whole."""
        messages = {part.message_id for part in self._offsets.parts(self._key)}
        self._offsets.restart(self._key, frozenset(messages))
        self.tools = {at: replace(tool, owner=0) for at, tool in self.tools.items()}

    def seed(self, owner: int, row: AssistantRow) -> None:
        """The client has what the row holds: full texts, and the calls as they stand."""
        ordinals: dict[Kind, int] = {"text": 0, "reasoning": 0}
        for part in row.content:
            if isinstance(part, TextPart | ReasoningPart):
                at = Part(row.id, part.type, ordinals[part.type])
                ordinals[part.type] += 1
                if part.text:
                    self._offsets.full(self._key, at, part.text)
            elif isinstance(part, ToolPart):
                self.tools[row.id, part.id] = kept(tool_of(owner, row.id, part))

    def take(self, message_id: str) -> tuple[dict[Part, Offset], dict[str, Tool]]:
        """Hand a message over to a turn: how far its texts and its calls were shown."""
        mine = [at for at in self.tools if at[0] == message_id]
        tools = {at[1]: self.tools.pop(at) for at in mine}
        return self._offsets.take(self._key, message_id), tools

    def close(self, why: str) -> Iterator[Tool]:
        """Nothing more will be heard: calls that are open end as failed."""
        for at, tool in self.tools.items():
            if tool.status not in OVER:
                over = replace(tool, first=False, status=ToolStatus.FAILED, error=why)
                self.tools[at] = kept(over)
                yield over
        self.forget()

    def forget(self) -> None:
        """Remove its entries of the table."""
        self._offsets.drop(self._key)

    def _text(self, owner: int, event: ev.PartEvent, origin: Origin) -> list[Chunk | Tool]:
        text = text_of(self._offsets, self._key, event)
        if not text:
            return []
        part = part_of(event)
        start = self._offsets.sent(self._key, part) - len(text)
        return [
            Chunk(
                owner,
                part.message_id,
                part.kind,
                text,
                ordinal=part.ordinal,
                start=start,
                origin=origin,
            )
        ]
