"""One assistant message while it grows: its row, and the events of its parts.

Deltas of a part are coalesced: the first piece starts a timer, and what has come when it fires is
one delta. A part's row stays empty until the part has ended.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Final, Literal

from stubs.script import Tool
from stubs.server.journal import Journal
from stubs.server.store import Session
from stubs.server.wire import Json, now_ms

Kind = Literal["reasoning", "text"]
STATE: Final = {"reasoningField": "reasoning_content"}
ABORTED: Final[Json] = {"type": "aborted", "message": "Step interrupted"}


@dataclass(slots=True)
class _Part:
    entry: Json
    text: str = ""
    sent: int = 0
    timer: asyncio.TimerHandle | None = None


@dataclass(slots=True)
class Calling:
    """A tool call of the message. `metadata` is its last progress."""

    id: str
    tool: Tool
    entry: Json
    ran: bool = False
    done: bool = False
    metadata: Json = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Header:
    """Who answers: agent, model reference, and the snapshot at the start."""

    agent: str
    model: Json
    snapshot: str


class Answer:
    """The message `id`; nothing is visible of it before `start`."""

    def __init__(
        self, journal: Journal, session: Session, message_id: str, header: Header, interval: float
    ) -> None:
        self.id = message_id
        self.header = header
        self.calls: list[Calling] = []
        self.streamed = False
        self._journal = journal
        self._session = session
        self._interval = interval
        self._parts: dict[Kind, _Part] = {}
        self._row: Json | None = None

    @property
    def has_content(self) -> bool:
        """Whether anything was streamed."""
        return bool(self._parts or self.calls)

    def start(self) -> None:
        """The first bytes of the model, or the end of an attempt that brought none."""
        header, created = self.header, now_ms()
        if self._row is None:
            self._row = {
                "id": self.id,
                "time": {"created": created},
                "type": "assistant",
                "agent": header.agent,
                "model": header.model,
                "content": [],
                "snapshot": {"start": header.snapshot},
            }
            self._session.rows.append(self._row)
        self._row["time"]["created"] = created
        self._row.pop("retry", None)
        self._durable(
            "step.started",
            {"agent": header.agent, "model": header.model},
            {"snapshot": header.snapshot, "started": created},
        )

    def note_retry(self, retry: Json) -> None:
        """The row says that another attempt is due ({attempt, at, error}) until it starts."""
        assert self._row is not None
        self._row["retry"] = retry

    def forget_retry(self) -> None:
        """An interrupt has taken the next attempt of this message away."""
        if self._row is not None and not self.has_content:
            self._row.pop("retry", None)

    def add(self, kind: Kind, piece: str) -> None:
        """A piece of reasoning or text."""
        if not piece:
            return
        part = self._parts.get(kind)
        if part is None:
            entry: Json = {"type": kind, "text": ""}
            if kind == "reasoning":
                entry |= {"state": dict(STATE), "time": {"created": now_ms()}}
            part = self._parts[kind] = _Part(entry)
            self._content.append(entry)
            self._durable(f"{kind}.started", {"ordinal": 0}, _state(kind))
        part.text += piece
        if part.timer is None:
            loop = asyncio.get_running_loop()
            part.timer = loop.call_later(self._interval, self._flush, kind, part)

    def call(self, call_id: str, tool: Tool) -> None:
        """A tool call; its arguments are complete at the end of the stream only."""
        state: Json = {"status": "streaming", "input": ""}
        entry: Json = {"type": "tool", "id": call_id, "name": tool.name, "state": state}
        entry["time"] = {"created": now_ms()}
        self._content.append(entry)
        self.calls.append(Calling(call_id, tool, entry))
        self._durable("tool.input.started", {"id": call_id, "name": tool.name})

    def close(self, *, calls: bool) -> None:
        """The stream has ended well: reasoning, then the tools, then the text.

        Without `calls` the arguments are complete but nothing is called.
        """
        self._end_part("reasoning")
        for call in self.calls:
            self._end_input(call)
            if not calls:
                continue
            call.ran = True
            given = call.tool.input
            call.entry |= {
                "executed": False,
                "state": {"status": "running", "input": given, "metadata": {}},
            }
            call.entry["time"]["ran"] = now_ms()
            self._durable("tool.called", {"id": call.id, "input": given, "executed": False})
        self._end_part("text")
        self._note_streamed()

    def break_off(self) -> None:
        """The stream has broken or was stopped: text, reasoning, then the tools' inputs."""
        if self.streamed:
            return
        self._end_part("text")
        self._end_part("reasoning")
        for call in self.calls:
            self._end_input(call)
        if self.has_content:
            self._note_streamed()

    def abandon(self) -> None:
        """Stop the timers and say nothing more, as a killed server."""
        for part in self._parts.values():
            if part.timer is not None:
                part.timer.cancel()

    def progress(self, call: Calling, metadata: Json) -> None:
        """What a running tool reports."""
        call.metadata = metadata
        self._passing("tool.progress", {"id": call.id, "metadata": metadata})

    def succeed(self, call: Calling, content: list[Json], metadata: Json) -> None:
        """A tool's result."""
        done = {"status": "completed", "input": call.tool.input}
        self._end_call(call, {**done, "content": content, "metadata": metadata})
        body = {"id": call.id, "content": content, "metadata": metadata, "executed": False}
        self._durable("tool.success", body, version=2)

    def fail_call(self, call: Calling, error: Json) -> None:
        """A tool's failure; nothing when it is done already."""
        if call.done:
            return
        metadata = {"metadata": call.metadata} if call.metadata else {}
        given = call.tool.input if call.ran else {}
        call.entry["executed"] = False
        self._end_call(call, {"status": "error", "input": given, "error": error, **metadata})
        body = {"id": call.id, "error": error, **metadata, "executed": False}
        self._durable("tool.failed", body, version=2)

    def fail_open_calls(self, error: Json) -> None:
        """Fail every call that is not done."""
        for call in self.calls:
            self.fail_call(call, error)

    def end(self, finish: str, raw: str, cost: float, tokens: Json, tree: Json) -> None:
        """The step's regular end. `tree`: the snapshot at the end and the files changed."""
        body: Json = {"finish": finish, "rawFinish": raw, "cost": cost, "tokens": tokens}
        self._complete(tree, body)
        self._durable("step.ended", body, tree)

    def fail(self, error: Json, tree: Json, usage: Json | None = None) -> None:
        """The step's failure; with `usage` ({finish?, rawFinish, cost, tokens}) after a stream."""
        usage = usage or {}
        self._complete(tree, {"finish": "error", **usage, "error": error})
        self._durable("step.failed", {"error": error, **usage}, tree)

    @property
    def text(self) -> str:
        """The text so far."""
        part = self._parts.get("text")
        return "" if part is None else part.text

    @property
    def _content(self) -> list[Json]:
        assert self._row is not None, "start comes first"
        content: list[Json] = self._row["content"]
        return content

    def _flush(self, kind: Kind, part: _Part) -> None:
        if part.timer is not None:
            part.timer.cancel()
            part.timer = None
        if part.sent < len(part.text):
            delta = part.text[part.sent :]
            part.sent = len(part.text)
            self._passing(f"{kind}.delta", {"ordinal": 0, "delta": delta})

    def _end_part(self, kind: Kind) -> None:
        part = self._parts.get(kind)
        if part is None:
            return
        self._flush(kind, part)
        part.entry["text"] = part.text
        if kind == "reasoning":
            part.entry["time"]["completed"] = now_ms()
        body = {"ordinal": 0, "text": part.text}
        self._durable(f"{kind}.ended", body, _state(kind))

    def _end_input(self, call: Calling) -> None:
        self._durable("tool.input.ended", {"id": call.id, "text": call.tool.arguments})

    def _end_call(self, call: Calling, state: Json) -> None:
        call.done = True
        call.entry["state"] = state
        call.entry["time"]["completed"] = now_ms()

    def _note_streamed(self) -> None:
        assert self._row is not None
        self.streamed = True
        self._row["time"]["streamed"] = now_ms()
        self._durable("step.streamed", {})

    def _complete(self, tree: Json, body: Json) -> None:
        assert self._row is not None
        self._row["time"]["completed"] = now_ms()
        self._row["snapshot"] |= {"end": tree["snapshot"], "files": tree["files"]}
        self._row |= body

    def _durable(
        self, kind: str, body: Json, more: Json | None = None, *, version: int = 1
    ) -> None:
        """An event of the message; the keys come in the order of the recordings."""
        named = {"assistantMessageID": self.id}
        tail = more or {}
        first, second = (body, named) if kind == "step.started" else (named, body)
        data = {**first, **second, **tail}
        self._journal.durable(self._session, f"session.{kind}", data, version=version)

    def _passing(self, kind: str, body: Json) -> None:
        data = {"assistantMessageID": self.id, **body}
        self._journal.passing(self._session, f"session.{kind}", data)


def _state(kind: Kind) -> Json:
    return {"state": dict(STATE)} if kind == "reasoning" else {}
