"""What a client has of messages that are not its own turn's: those of descendants, and of runs.

The same rules as for a turn (rule 9): a part whose start was heard takes deltas, every other one
is held until its full text comes with `ended`; tools move forwards. The server's reads are not
looked at here, so a text whose `ended` fell into a gap stays as far as it came, and what became of
a call whose end fell into one is not known.

Of a message that is over no more than its id need be remembered: it is *folded* then.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from adapter.core.heard import OVER, advance, kept, part_of, text_of
from adapter.core.offsets import Kind, Offset, OffsetTable, Part, State
from adapter.core.parts import tool_of
from adapter.core.values import Chunk, Origin, Tool, ToolStatus
from adapter.core.weights import ENTRY, MESSAGES, texts_of
from contract import events as ev
from contract.reads import AssistantRow, ReasoningPart, TextPart, ToolPart

NOT_KNOWN: Final = "What became of this tool call is not known."


@dataclass(frozen=True, slots=True)
class Taken:
    """How far a message was shown: its texts and its calls; `folded` if in whole."""

    offsets: dict[Part, Offset]
    tools: dict[str, Tool]
    folded: bool = False


class Watched:
    """Its entries of `offsets` stand under `key`, which nobody else uses."""

    def __init__(self, offsets: OffsetTable, key: str) -> None:
        self._offsets = offsets
        self._key = key
        self.tools: dict[tuple[str, str], Tool] = {}
        # In the order of first sight; True for one that is folded.
        self._messages: OrderedDict[str, bool] = OrderedDict()
        self._in_doubt: set[tuple[str, str]] = set()
        self._folded = 0
        # Bytes of what running calls were told.
        self._texts = 0

    @property
    def weight(self) -> int:
        """Bytes that are remembered of messages that are not folded."""
        messages = len(self._messages) - self._folded
        entries = messages + len(self.tools) + self._offsets.count(self._key)
        return ENTRY * entries + self._texts

    def adds(self, event: ev.MessageEvent) -> bool:
        """Whether the event speaks of a part or a call that is not remembered yet."""
        if self._messages.get(event.message_id):
            return False
        if isinstance(event, ev.ToolEvent):
            return (event.message_id, event.call_id) not in self.tools
        if isinstance(event, ev.PartEvent):
            return self._offsets.state(self._key, part_of(event)) is None
        return False

    def hear(self, owner: int, event: ev.MessageEvent, origin: Origin) -> list[Chunk | Tool]:
        """The updates for `owner` that follow from one event."""
        if self._messages.get(event.message_id):
            return []
        match event:
            case ev.PartEvent():
                self._meet(event.message_id)
                return self._text(owner, event, origin)
            case ev.ToolEvent():
                self._meet(event.message_id)
                at = (event.message_id, event.call_id)
                self._in_doubt.discard(at)
                known = self.tools.get(at)
                tool = advance(owner, known, event)
                if tool is None:
                    return []
                first = known is None or known.owner != owner
                tool = replace(tool, owner=owner, first=first, origin=origin)
                self._keep(at, kept(tool))
                return [tool]
            case _:
                return []

    def hold(self) -> None:
        """Events were missed: no part takes deltas any more, and open calls may have ended."""
        self._offsets.hold(self._key)
        self._in_doubt |= {at for at, tool in self.tools.items() if tool.status not in OVER}

    def restart(self) -> None:
        """Another client, or the same one from nothing: it gets what is open in whole."""
        messages = {part.message_id for part in self._offsets.parts(self._key)}
        self._offsets.restart(self._key, frozenset(messages))
        self.tools = {at: replace(tool, owner=0) for at, tool in self.tools.items()}

    def seed(self, owner: int, row: AssistantRow) -> None:
        """The client has what the row holds: full texts, and the calls as they stand."""
        self._meet(row.id)
        ordinals: dict[Kind, int] = {"text": 0, "reasoning": 0}
        for part in row.content:
            if isinstance(part, TextPart | ReasoningPart):
                at = Part(row.id, part.type, ordinals[part.type])
                ordinals[part.type] += 1
                if part.text:
                    self._offsets.full(self._key, at, part.text)
            elif isinstance(part, ToolPart):
                self._keep((row.id, part.id), kept(tool_of(owner, row.id, part)))

    def take(self, message_id: str) -> Taken:
        """Hand a message over to a turn, or forget it."""
        tools = self._take_tools(message_id)
        folded = self._messages.pop(message_id, False)
        self._folded -= folded
        return Taken(self._offsets.take(self._key, message_id), tools, folded)

    def fold(self, excess: int, *, newest: bool = False) -> int:
        """Fold messages that are over, the oldest first, to free so many bytes; bytes freed.

        The newest one may go on, so that it is folded only if `newest` says so.
        """
        open_ones = [key for key, folded in self._messages.items() if not folded]
        weights = dict.fromkeys(open_ones, ENTRY)
        going_on: set[str] = set() if newest else set(open_ones[-1:])
        for part in self._offsets.parts(self._key):
            weights[part.message_id] = weights.get(part.message_id, ENTRY) + ENTRY
            if self._offsets.state(self._key, part) is not State.CLOSED:
                going_on.add(part.message_id)
        for (message_id, _), tool in self.tools.items():
            weights[message_id] = weights.get(message_id, ENTRY) + ENTRY
            if tool.status not in OVER:
                going_on.add(message_id)
        freed = 0
        for message_id in open_ones:
            if freed >= excess:
                break
            if message_id not in going_on:
                freed += weights[message_id]
                self._fold(message_id)
        return freed

    def lighten(self, excess: int) -> tuple[int, int]:
        """Let go of what running calls were told, the largest first; bytes freed, and calls."""
        freed = calls = 0
        for at, tool in sorted(self.tools.items(), key=lambda one: -texts_of(one[1])):
            size = texts_of(tool)
            if freed >= excess or not size:
                break
            self._keep(at, replace(tool, input=None, metadata=None))
            freed, calls = freed + size, calls + 1
        return freed, calls

    def close(self, why: str) -> Iterator[Tool]:
        """Nothing more will be heard: calls that are open end as failed, as far as is known."""
        for at, tool in self.tools.items():
            if tool.status not in OVER:
                error = NOT_KNOWN if at in self._in_doubt else why
                over = replace(tool, first=False, status=ToolStatus.FAILED, error=error)
                self._keep(at, kept(over))
                yield over
        self.forget()

    def forget(self) -> None:
        """Remove its entries of the table."""
        self._offsets.drop(self._key)

    def _meet(self, message_id: str) -> None:
        self._messages.setdefault(message_id, False)
        if len(self._messages) > MESSAGES:
            oldest = next((key for key, folded in self._messages.items() if folded), None)
            if oldest is not None:
                del self._messages[oldest]
                self._folded -= 1

    def _fold(self, message_id: str) -> None:
        self._messages[message_id] = True
        self._folded += 1
        self._offsets.take(self._key, message_id)
        self._take_tools(message_id)

    def _keep(self, at: tuple[str, str], tool: Tool) -> None:
        known = self.tools.get(at)
        self._texts += texts_of(tool) - (texts_of(known) if known is not None else 0)
        self.tools[at] = tool

    def _take_tools(self, message_id: str) -> dict[str, Tool]:
        mine = [at for at in self.tools if at[0] == message_id]
        tools = {at[1]: self.tools.pop(at) for at in mine}
        self._texts -= sum(map(texts_of, tools.values()))
        self._in_doubt.difference_update(mine)
        return tools

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
