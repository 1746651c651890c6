"""What one input of the core leaves in a flight: its head, with less where more would say the same.

Pure, but for a run of events, which grows.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from adapter.core import values as v
from adapter.core.offsets import Kind, Part
from adapter.engine.heads import CLASS, ITEMS, TEXT, UNTRUE, head
from contract import events as ev
from contract.reads import AnyRow, AssistantRow, ReasoningPart, TextPart

Json = Any


@dataclass(slots=True)
class Run:
    """Events of the same kind about the same thing, one behind the other."""

    key: Hashable
    at: int
    head: dict[str, Json]
    pieces: int = 0
    size: int = 0

    def text(self) -> bytes:
        if "delta" in self.head:
            self.head["delta"] = {TEXT: self.size}
        return orjson.dumps([self.at, {CLASS: "Heard", "event": self.head}, self.pieces])


def head_of(what: v.Input, untrue: Callable[[Part, str], bool]) -> dict[str, Json]:
    told: dict[str, Json] = head(what)
    if isinstance(what, v.Reconcile):
        told["buffer"] = list(_buffered(what.buffer))
        rows = told["snapshot"].get("rows", ())
        for row, its in zip(what.snapshot.rows, rows, strict=False):
            for index in _untrue_texts(row, untrue):
                # One with the phrase of the step cap differs by itself from any stand-in.
                if index < ITEMS and TEXT in (text := its["content"][index]["text"]):
                    its["content"][index]["text"] = {UNTRUE: text[TEXT]}
    return told


def _buffered(events: Iterable[ev.Event]) -> Iterator[Json]:
    """Deltas that follow each other are one."""
    before: Hashable = None
    run: dict[str, Json] = {}
    for event in events:
        key = key_of(event)
        if key is not None and key == before:
            if isinstance(event, ev.TextDelta | ev.ReasoningDelta):
                run["delta"] = {TEXT: run["delta"][TEXT] + len(event.delta)}
            continue
        if run:
            yield run
        before, run = key, head(event)
        if isinstance(event, ev.TextDelta | ev.ReasoningDelta):
            run["delta"] = {TEXT: len(event.delta)}
    if run:
        yield run


def _untrue_texts(row: AnyRow, untrue: Callable[[Part, str], bool]) -> Iterator[int]:
    ordinals = {"text": 0, "reasoning": 0}
    for index, part in enumerate(row.content if isinstance(row, AssistantRow) else ()):
        if isinstance(part, TextPart | ReasoningPart):
            kind: Kind = part.type
            if untrue(Part(row.id, kind, ordinals[kind]), part.text):
                yield index
            ordinals[kind] += 1


def key_of(event: ev.Event) -> Hashable:
    """The same for events that may stand as one; None for one that stands alone."""
    kind = type(event)
    if kind is ev.TextDelta or kind is ev.ReasoningDelta:
        assert isinstance(event, ev.PartEvent)
        return (kind, event.session_id, event.message_id, event.ordinal)
    if isinstance(event, ev.ToolProgress):
        child = event.metadata.get("sessionID")
        named = child if isinstance(child, str) else None
        return (kind, event.session_id, event.message_id, event.call_id, named)
    return None


def turn_of(what: v.Input) -> str | None:
    match what:
        case v.Submit() | v.Recognised() | v.Posted():
            return what.turn_id
        case v.Heard(event=ev.InboxEnqueued() | ev.InboxDelivered() as event):
            return event.inbox_id
        case _:
            return None
