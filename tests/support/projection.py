"""What the server's reads say after some of its events: a small pure model of its projection.

As measured: partial text is never readable, a tool goes from streaming over running to its end,
the end of an execution writes an idle row, except after a rejection ("shutdown"), and an ask
disappears with its answer, its tool or its execution.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from adapter.core.values import Snapshot
from contract import events as ev
from contract.reads import parse_row
from contract.shapes import Form, PermissionAsk


@dataclass
class Projection:
    """The readable state of one root session, folded from events."""

    session: str
    pid: int = 1
    inbox: list[str] = field(default_factory=list)
    active: bool = False
    deleted: bool = False
    asks: dict[str, PermissionAsk] = field(default_factory=dict)
    forms: dict[str, Form] = field(default_factory=dict)
    children: dict[str, str] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)
    _kinds: dict[str, str] = field(default_factory=dict)
    _ends: int = 0

    def fold(self, events: Iterable[ev.Event]) -> Projection:
        for event in events:
            self.apply(event)
        return self

    def apply(self, event: ev.Event) -> None:
        match event:
            case ev.SessionCreated() if event.parent_id is not None:
                self.children[event.session_id] = event.parent_id
            case ev.PermissionAsked():
                self.asks[event.ask.id] = event.ask
            case ev.PermissionReplied():
                self.asks.pop(event.request_id, None)
            case ev.FormCreated():
                self.forms[event.form.id] = event.form
            case ev.FormReplied() | ev.FormCancelled():
                self.forms.pop(event.form_id, None)
            case ev.ToolSuccess() | ev.ToolFailed():
                self._drop_asks(event)
        if event.session_id == self.session:
            self._apply_own(event)

    def _apply_own(self, event: ev.Event) -> None:
        match event:
            case ev.InboxEnqueued():
                self._kinds[event.inbox_id] = event.item.type
                self.inbox.append(event.inbox_id)
            case ev.InboxDelivered():
                self._take(event.inbox_id)
                kind = self._kinds.get(event.inbox_id, "user")
                self.rows.append({"id": event.inbox_id, "type": kind})
            case ev.InboxCancelled():
                self._take(event.inbox_id)
            case ev.ExecutionStarted():
                self.active = True
            case ev.ExecutionSucceeded():
                self._end("succeeded")
            case ev.ExecutionFailed():
                self._end("failed")
            case ev.ExecutionInterrupted():
                self._end("interrupted" if event.reason == "user" else None)
            case ev.SessionDeleted():
                self.deleted = True
            case ev.Synthetic():
                self.rows.append({"id": f"msg_synthetic_{len(self.rows)}", "type": "synthetic"})
            case ev.MessageEvent():
                self._apply_message(event)
            case _:
                pass

    def _apply_message(self, event: ev.MessageEvent) -> None:
        row = self._assistant(event.message_id)
        match event:
            case ev.StepEnded():
                row["finish"] = event.finish
                row["tokens"] = event.tokens.model_dump() if event.tokens else None
            case ev.StepFailed():
                row["finish"] = "error"
                row["error"] = event.error.model_dump()
            case ev.TextStarted() | ev.ReasoningStarted():
                self._part(row, event)
            case ev.TextEnded() | ev.ReasoningEnded():
                self._part(row, event)["text"] = event.text
            case ev.ToolEvent():
                self._apply_tool(row, event)
            case _:
                pass

    def _apply_tool(self, row: dict[str, Any], event: ev.ToolEvent) -> None:
        part = next((one for one in row["content"] if one.get("id") == event.call_id), None)
        if part is None:
            part = {"type": "tool", "id": event.call_id, "name": "tool", "state": {}}
            row["content"].append(part)
        state = part["state"]
        match event:
            case ev.ToolInputStarted():
                part["name"] = event.name
                state.update(status="streaming", input="")
            case ev.ToolCalled():
                state.update(status="running", input=event.input)
            case ev.ToolSuccess():
                content = [one.model_dump() for one in event.content]
                state.update(status="completed", content=content)
            case ev.ToolFailed():
                state.update(status="error", error=event.error.model_dump())
            case _:
                state.setdefault("status", "running")

    def snapshot(self, judged: Iterable[str], inbox: Iterable[str] | None = None) -> Snapshot:
        """The reads at this moment; `inbox` as it was when that was read, if earlier."""
        return Snapshot(
            inbox=frozenset(self.inbox if inbox is None else inbox),
            active=self.active,
            rows=tuple(parse_row(row) for row in self.rows),
            asks=tuple(self.asks.values()),
            forms=tuple(self.forms.values()),
            children=tuple(self.children.items()),
            pid=self.pid,
            judged=frozenset(judged),
            state="gone" if self.deleted else "ok",
        )

    def _take(self, inbox_id: str) -> None:
        if inbox_id in self.inbox:
            self.inbox.remove(inbox_id)

    def _end(self, outcome: str | None) -> None:
        self.active = False
        self.asks = {key: ask for key, ask in self.asks.items() if ask.session_id != self.session}
        self._ends += 1
        if outcome is not None:
            self.rows.append({"id": f"msg_idle_{self._ends}", "type": "idle", "outcome": outcome})

    def _assistant(self, message_id: str) -> dict[str, Any]:
        found = next((row for row in self.rows if row["id"] == message_id), None)
        if found is None:
            found = {"id": message_id, "type": "assistant", "content": []}
            self.rows.append(found)
        return found

    @staticmethod
    def _part(row: dict[str, Any], event: ev.PartEvent) -> dict[str, Any]:
        kind = "text" if isinstance(event, ev.TextStarted | ev.TextEnded) else "reasoning"
        same = [part for part in row["content"] if part["type"] == kind]
        if len(same) <= event.ordinal:
            same.append({"type": kind, "text": ""})
            row["content"].append(same[-1])
        found: dict[str, Any] = same[event.ordinal]
        return found

    def _drop_asks(self, event: ev.ToolEvent) -> None:
        over = (event.message_id, event.call_id)
        for key, ask in list(self.asks.items()):
            if ask.source is not None and (ask.source.message_id, ask.source.call_id) == over:
                del self.asks[key]
