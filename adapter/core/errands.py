"""A running call of a turn that made a child, and the descendants that work for it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from adapter.core.heard import OVER
from adapter.core.offsets import OffsetTable
from adapter.core.values import Line, OfChild, Progress, Tool, ToolStatus
from adapter.core.watched import Watched
from adapter.core.weights import ENTRY, size_of
from contract import events as ev
from contract.shapes import JsonObject

# Calls of descendants that one call of a turn shows, the newest; arguments and characters of each.
LINES: Final = 64
LEAST_LINES: Final = 4
ARGUMENTS: Final = 8
ARGUMENT_CHARS: Final = 200


@dataclass(slots=True)
class Helper:
    """A descendant: the call that made it, and what the client has of it."""

    origin: OfChild
    depth: int
    watched: Watched


@dataclass(slots=True)
class Errand:
    """The call `call_id` of the root's message; its helpers by their sessions."""

    message_id: str
    call_id: str
    helpers: dict[str, Helper] = field(default_factory=dict)
    lines: OrderedDict[tuple[str, str], Line] = field(default_factory=OrderedDict)
    left_out: int = 0

    @property
    def weight(self) -> int:
        """Bytes that are remembered of its helpers and their lines."""
        helpers = sum(ENTRY + one.watched.weight for one in self.helpers.values())
        return helpers + sum(map(_weight, self.lines.values()))

    def fold(self, excess: int) -> int:
        """Let go of messages that are over, and then of lines, to free so many bytes; bytes freed.

        The newest lines stay.
        """
        freed = 0
        for helper in self.helpers.values():
            freed += helper.watched.fold(excess - freed) if freed < excess else 0
        while freed < excess and len(self.lines) > LEAST_LINES:
            _, line = self.lines.popitem(last=False)
            self.left_out += 1
            freed += _weight(line)
        return freed

    def join(self, made_by: OfChild, depth: int, offsets: OffsetTable) -> None:
        """One more that works for this call; known ones stay as they are."""
        child_id = made_by.session_id
        if child_id not in self.helpers:
            self.helpers[child_id] = Helper(made_by, depth, Watched(offsets, child_id))

    def note(self, helper: Helper, event: ev.ToolEvent, tool: Tool) -> bool:
        """Keep the line of a call that runs or is over; whether it says something new.

        A line that went for lack of room does not come back.
        """
        if tool.status is ToolStatus.PENDING:
            return False
        at = (tool.message_id, tool.call_id)
        known = self.lines.get(at)
        if known is None and not (tool.first or isinstance(event, ev.ToolCalled)):
            return False
        given = known.input if known is not None else {}
        if isinstance(event, ev.ToolCalled):
            given = _brief(event.input)
        line = Line(tool.name, tool.status, given, helper.depth)
        if line == known:
            return False
        self.lines[at] = line
        if len(self.lines) > LINES:
            self.lines.popitem(last=False)
            self.left_out += 1
        return True

    def progress(self, owner: int) -> Progress:
        """The lines as they stand, for the client."""
        return Progress(
            owner, self.message_id, self.call_id, tuple(self.lines.values()), self.left_out
        )

    def hold(self) -> None:
        """Events were missed: open parts wait for their full text, open calls may have ended."""
        for helper in self.helpers.values():
            helper.watched.hold()
        for at, line in self.lines.items():
            if line.status not in OVER:
                self.lines[at] = Line(line.name, None, line.input, line.depth)

    def restart(self) -> None:
        """Another client goes on with the call, or the same one from nothing."""
        for helper in self.helpers.values():
            helper.watched.restart()

    def end(self, why: str) -> Iterator[Tool]:
        """The call is over; calls of helpers that are still open end as failed."""
        for helper in self.helpers.values():
            yield from helper.watched.close(why)


def _weight(line: Line) -> int:
    return ENTRY + size_of(line.input)


def _brief(given: JsonObject) -> JsonObject:
    texts = [(key, value) for key, value in given.items() if isinstance(value, str)]
    return {key: value[:ARGUMENT_CHARS] for key, value in texts[:ARGUMENTS]}
