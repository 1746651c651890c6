"""The small client is strict: each breach of the protocol is noted, and nothing else."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

from stubs.client import AcpClient, AgentGone, Transcript
from stubs.client.observer import Observer

OPTIONS = [{"optionId": "y", "kind": "allow_once"}, {"optionId": "n", "kind": "reject_once"}]


class Wire:
    """An observer with one session `s` and one prompt (id 1) in flight."""

    def __init__(self) -> None:
        self.observer = Observer()
        self.observer.sent_request(1, "session/prompt", {"sessionId": "s"})

    def raw(self, **message: Any) -> None:
        self.observer.received(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def update(self, kind: str, **members: Any) -> None:
        update = {"sessionUpdate": kind, **members}
        self.raw(method="session/update", params={"sessionId": "s", "update": update})

    def text(self, text: str, message: str = "m") -> None:
        content = {"type": "text", "text": text}
        self.update("agent_message_chunk", messageId=message, content=content)

    def tool(self, kind: str, ident: str = "t", **members: Any) -> None:
        self.update(kind, toolCallId=ident, **members)

    def done(self) -> None:
        self.raw(id=1, result={"stopReason": "end_turn"})

    def ask(self, options: list[dict[str, str]]) -> None:
        params = {"sessionId": "s", "toolCall": {"toolCallId": "t"}, "options": options}
        self.raw(id="a", method="session/request_permission", params=params)

    def form(self) -> None:
        schema = {"type": "object", "properties": {}}
        params = {"mode": "form", "sessionId": "s", "message": "?", "requestedSchema": schema}
        self.raw(id="f", method="elicitation/create", params=params)


@pytest.fixture
def wire() -> Wire:
    return Wire()


def test_a_clean_turn_has_no_violation(wire: Wire) -> None:
    wire.text("a")
    wire.tool("tool_call", status="pending", title="shell")
    wire.ask(OPTIONS)
    result = {"outcome": {"outcome": "selected", "optionId": "n"}}
    wire.observer.sent_answer("a", {"result": result})
    wire.tool("tool_call_update", status="failed")
    wire.text("b")
    wire.text("c", "m2")
    wire.done()
    wire.update("session_info_update", title="x")
    transcript = wire.observer.transcript("s")
    assert wire.observer.violations == []
    assert transcript == Transcript(
        session="s",
        texts={("m", "agent_message_chunk"): "ab", ("m2", "agent_message_chunk"): "c"},
        tools={"t": {"toolCallId": "t", "status": "failed", "title": "shell"}},
        asks=[{"toolCallId": "t", "answer": "reject_once"}],
        outcomes=["end_turn"],
        latest={"session_info_update": {"sessionUpdate": "session_info_update", "title": "x"}},
    )
    assert transcript.text() == "abc"


def test_a_form_and_its_answer_are_in_the_transcript(wire: Wire) -> None:
    can: dict[str, Any] = {"elicitation": {"form": {}}}
    wire.observer.sent_request(0, "initialize", {"clientCapabilities": can})
    wire.form()
    wire.observer.sent_answer("f", {"result": {"action": "accept", "content": {}}})
    wire.form()
    wire.raw(method="$/cancel_request", params={"requestId": "f"})
    assert wire.observer.violations == []
    assert [one["answer"] for one in wire.observer.transcript("s").forms] == ["accept", "withdrawn"]


def late(wire: Wire) -> None:
    wire.done()
    wire.text("late")


def twice(wire: Wire) -> None:
    wire.done()
    wire.done()


def tool_after_its_end(wire: Wire) -> None:
    wire.tool("tool_call", status="completed")
    wire.tool("tool_call_update", status="in_progress")
    wire.tool("tool_call_update", status="completed")


def tool_left_open(wire: Wire) -> None:
    wire.tool("tool_call", status="in_progress")
    wire.done()


def announced_twice(wire: Wire) -> None:
    wire.tool("tool_call", status="completed")
    wire.tool("tool_call", status="completed")


def ask_after_the_turn(wire: Wire) -> None:
    wire.done()
    wire.ask(OPTIONS)


def ask_left_open(wire: Wire) -> None:
    wire.ask(OPTIONS)
    wire.done()


BREACHES: dict[str, Callable[[Wire], object]] = {
    "outside of a turn": late,
    "answered twice": twice,
    "never asked": lambda wire: wire.raw(id=9, result={}),
    "result or error": lambda wire: wire.raw(id=1),
    "empty agent_message_chunk": lambda wire: wire.text(""),
    "without a messageId": lambda wire: wire.update(
        "agent_thought_chunk", content={"type": "text", "text": "x"}
    ),
    "before it was announced": lambda wire: wire.tool("tool_call_update", status="failed"),
    "from completed to in_progress": tool_after_its_end,
    "still in_progress": tool_left_open,
    "announced twice": announced_twice,
    "asked outside": ask_after_the_turn,
    "still asked": ask_left_open,
    "shows none": lambda wire: wire.form(),
    "options are only": lambda wire: wire.ask(OPTIONS[:1]),
    "unknown request": lambda wire: wire.raw(id=5, method="fs/read_text_file", params={}),
    "unknown notification": lambda wire: wire.raw(method="hello", params={}),
    "unknown update": lambda wire: wire.update("surprise"),
    "unknown members": lambda wire: wire.raw(method="$/cancel_request", params={}, extra=1),
    "not JSON": lambda wire: wire.observer.received(b'{"jsonrpc":"2.0","id":1,"result":NaN}'),
    "not a JSON-RPC": lambda wire: wire.observer.received(b"[]"),
    "a line of": lambda wire: wire.text("x" * 2**20),
}


@pytest.mark.parametrize("words", BREACHES)
def test_a_breach_is_noted_once(wire: Wire, words: str) -> None:
    BREACHES[words](wire)
    assert [words in violation for violation in wire.observer.violations] == [True]


def test_two_runs_compare_equal_whatever_their_ids() -> None:
    runs = []
    for message, tool in (("m-1", "call-a"), ("m-2", "call-b")):
        wire = Wire()
        wire.text("same", message)
        wire.tool("tool_call", tool, status="completed", rawOutput={"of": message})
        wire.done()
        runs.append(wire.observer.transcript("s").comparable())
    assert runs[0] == runs[1]
    assert runs[0]["texts"] == [["message-1", "agent_message_chunk", "same"]]


async def test_an_agent_that_dies_leaves_its_last_words() -> None:
    code = "import sys; sys.stdin.readline(); print('no json'); sys.exit('boom')"
    async with AcpClient.spawn([sys.executable, "-c", code]) as client:
        with pytest.raises(AgentGone):
            await client.initialize()
        with pytest.raises(AgentGone):
            await client.wait_for(lambda: False)
        assert await client.hang_up() == 1
        assert client.violations == ["not JSON: b'no json'"]
        await client.wait_for(lambda: b"boom" in client.stderr or client.process.returncode == 1)


async def test_an_agent_that_ignores_eof_is_killed() -> None:
    code = "import time; time.sleep(600)"
    async with AcpClient.spawn([sys.executable, "-c", code]) as client:
        with pytest.raises(TimeoutError):
            await client.request("initialize", {}, timeout=0.01)
        assert await client.hang_up(timeout=0.01) == -9
