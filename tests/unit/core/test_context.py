"""What is remembered of a turn stays within its limit, and costs the client nothing that it has."""

from __future__ import annotations

from typing import Any

from adapter.core import values as v
from adapter.core.weights import ENTRY, MESSAGES
from adapter.limits import Bound, Limits
from contract.reads import AnyRow
from tests.support.drive import SESSION, Drive, of, row

TURN = "msg_acp_1"
PARTS = 4


def running(entries: int) -> Drive:
    """A turn that may remember so many messages, calls and parts together."""
    drive = Drive(limits=Limits(turn_context_bytes=entries * ENTRY))
    drive.run(TURN)
    return drive


def step(drive: Drive, number: int) -> None:
    """A step of the turn: a text, a call and its end."""
    message = f"msg_{number}"
    drive.started(message)
    drive.text(message, f"text {number} ")
    drive.tool(message)
    drive.tool_over(message)
    drive.ended(message, finish="tool-calls")


def step_row(number: int) -> AnyRow:
    """What a reading shows of it."""
    state = {"status": "completed", "input": {"a": 1}, "content": []}
    tool = {"type": "tool", "id": "call_1", "name": "shell", "state": state}
    text = {"type": "text", "text": f"text {number} "}
    return row("assistant", f"msg_{number}", content=[text, tool], finish="tool-calls")


def hits(drive: Drive) -> int:
    found = of(drive.said, v.Counted)
    return sum(one.times for one in found if one.bound is Bound.TURN_CONTEXT_BYTES)


def remembered(drive: Drive) -> int:
    """Parts whose offsets are kept."""
    return len(drive.offsets.parts(SESSION))


def test_steps_that_are_over_are_let_go_of_and_nothing_is_said() -> None:
    drive = running(entries=12)
    for number in range(50):
        step(drive, number)
        assert remembered(drive) <= 4
    assert hits(drive) == 0
    assert drive.notices() == []
    assert drive.core.tables()["messages"] == 50
    drive.started("msg_last")
    drive.text("msg_last", "end")
    drive.ended("msg_last")
    assert drive.stop(TURN) is v.Stop.END_TURN
    assert len(drive.seen.texts) == 51


def test_what_was_let_go_of_is_no_news_in_a_reading() -> None:
    drive = running(entries=12)
    for number in range(30):
        step(drive, number)
    drive.gap()
    before = len(drive.said)
    rows = [row("user", TURN), *map(step_row, range(30))]
    drive.snapshot(*rows, active=True)
    news = drive.said[before:]
    assert of(news, v.Chunk) + of(news, v.Tool) == []
    # Late events of such a step are none either.
    part: dict[str, Any] = {"assistantMessageID": "msg_0", "ordinal": 0}
    assert of(drive.hear("text.ended", **part, text="text 0 "), v.Chunk) == []
    assert of(drive.tool_over("msg_0"), v.Tool) == []
    step(drive, 30)
    assert drive.seen.texts["msg_30", "text"] == "text 30 "


def test_in_a_gap_nothing_is_let_go_of_that_a_reading_may_complete() -> None:
    drive = running(entries=12)
    for number in range(3):
        step(drive, number)
    drive.started("msg_3")
    drive.text("msg_3", "half", end=False)
    drive.gap()
    rows = [row("user", TURN), *map(step_row, range(3))]
    text = {"type": "text", "text": "half and half"}
    drive.snapshot(
        *rows, row("assistant", "msg_3", content=[text], finish="tool-calls"), active=True
    )
    for number in range(4, 9):
        step(drive, number)
    assert drive.seen.texts["msg_3", "text"] == "half and half"


def test_messages_that_no_reading_shows_are_forgotten() -> None:
    drive = running(entries=12)
    for number in range(MESSAGES + 20):
        step(drive, number)
    assert drive.core.tables()["messages"] == MESSAGES


def test_a_call_that_never_ends_keeps_no_later_message() -> None:
    drive = running(entries=12)
    drive.started("msg_open")
    drive.tool("msg_open")
    for number in range(MESSAGES + 20):
        step(drive, number)
    assert drive.core.tables()["messages"] == MESSAGES + 1
    drive.tool_over("msg_open")
    assert drive.seen.tools["msg_open", "call_1"] is v.ToolStatus.COMPLETED
    step(drive, MESSAGES + 20)
    assert drive.core.tables()["messages"] == MESSAGES


def test_large_inputs_of_running_calls_are_let_go_of_and_the_calls_end() -> None:
    drive = running(entries=40)
    drive.started("msg_a")
    for number in range(4):
        at: dict[str, Any] = {"assistantMessageID": "msg_a", "id": f"call_{number}"}
        drive.hear("tool.input.started", **at, name="write")
        drive.hear("tool.called", **at, input={"path": "a", "content": "x" * 20 * ENTRY})
    assert hits(drive) > 0
    for number in range(4):
        drive.tool_over("msg_a", f"call_{number}")
    drive.ended("msg_a")
    assert set(drive.seen.tools.values()) == {v.ToolStatus.COMPLETED}
    assert len(drive.seen.tools) == 4
    first = next(tool for tool in of(drive.said, v.Tool) if tool.input is not None)
    assert len(str(first.input)) > 20 * ENTRY


def test_a_step_that_is_too_large_in_itself_is_shown_in_part_and_ends() -> None:
    drive = running(entries=6)
    drive.started("msg_a")
    for ordinal in range(12):
        part: dict[str, Any] = {"assistantMessageID": "msg_a", "ordinal": ordinal}
        drive.hear("text.started", **part)
        drive.hear("text.delta", **part, delta=f"{ordinal} ")
        drive.hear("text.ended", **part, text=f"{ordinal} ")
    assert drive.seen.texts["msg_a", "text"] == "0 1 2 3 4 "
    assert remembered(drive) == 5
    assert drive.notices() == ["limit"]
    assert hits(drive) == 3 * 7
    drive.tool("msg_a")
    assert drive.seen.tools == {}
    drive.hear("execution.failed", error={"type": "unknown", "message": "no"})
    # A call that is not shown may have done something all the same.
    assert drive.code(TURN) == -32056


def test_another_turn_has_room_of_its_own() -> None:
    drive = running(entries=6)
    drive.admit("msg_acp_2", owner=2)
    step(drive, 0)
    drive.started("msg_end")
    drive.ended("msg_end")
    drive.deliver("msg_acp_2")
    for number in range(1, 9):
        step(drive, number)
    assert hits(drive) == 0
    assert len(drive.seen.texts) == 9
