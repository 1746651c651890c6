"""Events of the assistant's messages become updates, once each and only forwards."""

from __future__ import annotations

from typing import Any

from adapter.core import values as v
from adapter.core.values import ToolStatus
from tests.support.drive import Drive, of, row, text_row

A = "msg_acp_a"


def running() -> Drive:
    drive = Drive()
    drive.run(A)
    drive.started("msg_1")
    return drive


def tool_row(status: str, **state: Any) -> Any:
    part = {"type": "tool", "id": "call_1", "name": "shell", "state": {"status": status, **state}}
    return row("assistant", "msg_1", content=[{"type": "text", "text": "before"}, part])


def test_thought_and_text_of_one_ordinal_are_two_parts() -> None:
    drive = running()
    part = {"assistantMessageID": "msg_1", "ordinal": 0}
    drive.hear("reasoning.started", **part)
    drive.hear("text.started", **part)
    drive.hear("reasoning.delta", **part, delta="why")
    drive.hear("text.delta", **part, delta="what")
    drive.hear("reasoning.ended", **part, text="why")
    drive.hear("text.ended", **part, text="what")
    assert drive.seen.texts == {("msg_1", "reasoning"): "why", ("msg_1", "text"): "what"}


def test_empty_deltas_and_texts_are_no_chunks() -> None:
    drive = running()
    drive.text("msg_1", "")
    assert of(drive.said, v.Chunk) == []


def test_a_tool_moves_forward_only() -> None:
    drive = running()
    drive.tool("msg_1")
    drive.hear("tool.progress", assistantMessageID="msg_1", id="call_1", metadata={"a": 1})
    drive.tool_over("msg_1")
    assert drive.tool_over("msg_1", error="late") == []
    drive.tool("msg_1")
    tools = of(drive.said, v.Tool)
    assert [tool.status for tool in tools] == [
        ToolStatus.PENDING,
        ToolStatus.IN_PROGRESS,
        ToolStatus.IN_PROGRESS,
        ToolStatus.COMPLETED,
    ]
    assert [tool.first for tool in tools] == [True, False, False, False]
    assert tools[-1].name == "shell" and tools[-1].input == {"a": 1}


def test_a_read_completes_text_and_tools_in_their_order() -> None:
    drive = running()
    drive.gap()
    done = tool_row("completed", input={"a": 1}, content=[{"type": "text", "text": "ok"}])
    out = drive.snapshot(row("user", A), done, active=True)
    assert [type(one) for one in out[:2]] == [v.Chunk, v.Tool]
    (tool,) = of(out, v.Tool)
    assert (tool.first, tool.status, tool.name) == (True, ToolStatus.COMPLETED, "shell")
    assert not of(drive.snapshot(row("user", A), done, active=True), v.Tool)


def test_an_open_part_of_a_read_stays_open() -> None:
    drive = running()
    drive.gap()
    drive.snapshot(row("user", A), text_row("msg_1"), active=True)
    drive.hear("text.delta", assistantMessageID="msg_1", ordinal=0, delta="b")
    drive.hear("text.ended", assistantMessageID="msg_1", ordinal=0, text="ab")
    assert drive.seen.texts == {("msg_1", "text"): "ab"}


def test_a_retry_names_its_message_and_one_notice_tells_it() -> None:
    drive = running()
    drive.text("msg_1", "half")
    error = {"type": "provider.transport", "message": "reset"}
    drive.hear("step.failed", assistantMessageID="msg_1", error=error)
    drive.hear("retry.scheduled", assistantMessageID="msg_1", attempt=2, at=0, error=error)
    drive.started("msg_2")
    drive.text("msg_2", "whole")
    assert [chunk.retry_of for chunk in of(drive.said, v.Chunk)] == [None, "msg_1"]
    assert drive.notices() == ["retry"]


def test_a_retry_in_the_gap_names_its_message_too() -> None:
    drive = running()
    drive.gap()
    failed = text_row("msg_1", "half", "error", error={"type": "provider.transport"})
    rows = (row("user", A), failed, row("synthetic", "msg_s"), text_row("msg_2", "whole", "stop"))
    chunks = of(drive.snapshot(*rows), v.Chunk)
    assert [(chunk.text, chunk.retry_of) for chunk in chunks] == [
        ("half", None),
        ("whole", "msg_1"),
    ]


def test_a_retry_before_any_content_is_the_same_message() -> None:
    drive = running()
    drive.hear("retry.scheduled", assistantMessageID="msg_1", attempt=2, at=0, error={})
    drive.started("msg_1")
    drive.text("msg_1", "a")
    drive.ended("msg_1", "tool-calls")
    drive.text("msg_2", "b")
    assert [chunk.retry_of for chunk in of(drive.said, v.Chunk)] == [None, None]


def test_usage_is_the_context_of_the_step_and_the_cost_of_the_session() -> None:
    drive = running()
    drive.hear("usage.updated", cost=1.0, tokens={})
    tokens = {"input": 800, "output": 43, "reasoning": 7, "cache": {"read": 200, "write": 0}}
    (usage,) = of(drive.ended("msg_1", "tool-calls", tokens=tokens, cost=0.5), v.Usage)
    assert (usage.used, usage.cost) == (1050, 1.5)


def test_nothing_is_said_without_a_turn() -> None:
    drive = Drive()
    drive.text("msg_f", "foreign")
    drive.tool("msg_f")
    drive.ended("msg_f")
    assert drive.said == []
