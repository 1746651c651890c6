"""How much of a turn its client is shown; the turn itself always comes to its end."""

from __future__ import annotations

from adapter.core import values as v
from adapter.limits import Bound, Limits
from tests.support.drive import Drive, of, text_row

TURN = "msg_acp_1"


def running(**limits: int) -> Drive:
    drive = Drive(limits=Limits(**limits))
    drive.run(TURN)
    drive.started("msg_a")
    return drive


def hits(drive: Drive, bound: Bound) -> int:
    return sum(one.times for one in of(drive.said, v.Counted) if one.bound is bound)


def told(drive: Drive) -> list[object]:
    """The limits that the client was told of."""
    return [one.data["limit"] for one in of(drive.said, v.Notice) if one.kind == "limit"]


# Output of a turn


def write(drive: Drive, ordinal: int, *texts: str) -> None:
    part = {"assistantMessageID": "msg_a", "ordinal": ordinal}
    drive.hear("text.started", **part)
    for text in texts:
        drive.hear("text.delta", **part, delta=text)
    drive.hear("text.ended", **part, text="".join(texts))


def test_text_at_the_limit_is_whole_and_one_character_more_is_left_out() -> None:
    drive = running(turn_output_bytes=10)
    write(drive, 0, "12345", "ééx")
    assert told(drive) == []
    write(drive, 1, "y")
    write(drive, 2, "zz")
    drive.ended("msg_a")
    assert drive.seen.texts == {("msg_a", "text"): "12345ééx"}
    assert drive.stop(TURN) is v.Stop.END_TURN
    assert drive.outcome(TURN).omitted == 3
    assert told(drive) == ["turn_output_bytes"]
    assert hits(drive, Bound.TURN_OUTPUT_BYTES) == 1


def test_nothing_follows_a_hole() -> None:
    drive = running(turn_output_bytes=10)
    write(drive, 0, "12345", "too long", "1")
    drive.ended("msg_a")
    assert drive.seen.texts == {("msg_a", "text"): "12345"}
    assert drive.outcome(TURN).omitted == 9


def test_a_reading_brings_nothing_back_that_was_left_out() -> None:
    drive = running(turn_output_bytes=10)
    write(drive, 0, "12345", "too long")
    drive.gap()
    drive.snapshot(text_row(TURN), text_row("msg_a", "12345too long", finish="stop"))
    if drive.core.turn_ids:
        drive.ended("msg_a")
    assert drive.seen.texts == {("msg_a", "text"): "12345"}


def test_a_result_over_the_limit_is_left_out_and_its_call_is_over() -> None:
    drive = running(turn_output_bytes=6)
    drive.tool("msg_a", "call_1")
    drive.tool_over("msg_a", "call_1")
    drive.tool("msg_a", "call_2")
    drive.tool_over("msg_a", "call_2", error="12345")
    last = of(drive.said, v.Tool)[-1]
    assert (last.status, last.error, last.content) == (v.ToolStatus.FAILED, None, None)
    drive.ended("msg_a")
    assert drive.outcome(TURN).omitted == 5


def test_the_next_turn_begins_anew() -> None:
    drive = running(turn_output_bytes=5)
    write(drive, 0, "123456")
    drive.ended("msg_a")
    drive.run("msg_acp_2")
    drive.started("msg_b")
    drive.text("msg_b", "12345")
    drive.ended("msg_b")
    assert drive.seen.texts == {("msg_b", "text"): "12345"}
    assert (drive.outcome(TURN).omitted, drive.outcome("msg_acp_2").omitted) == (6, 0)


# Open tools


def test_calls_over_the_limit_are_not_shown_and_those_before_go_on() -> None:
    drive = running(open_tools=2)
    for number in range(5):
        drive.tool("msg_a", f"call_{number}")
    for number in range(5):
        drive.tool_over("msg_a", f"call_{number}")
    shown = {call for _, call in drive.seen.tools}
    assert shown == {"call_0", "call_1"}
    assert set(drive.seen.tools.values()) == {v.ToolStatus.COMPLETED}
    assert hits(drive, Bound.OPEN_TOOLS) == 3
    assert told(drive) == ["open_tools"]
    drive.tool("msg_a", "call_5")
    drive.ended("msg_a")
    assert drive.seen.tools["msg_a", "call_5"] is v.ToolStatus.FAILED
    assert drive.stop(TURN) is v.Stop.END_TURN


def test_a_failure_after_a_call_that_was_not_shown_is_not_safe_to_retry() -> None:
    drive = running(open_tools=1)
    drive.hear("tool.input.started", assistantMessageID="msg_a", id="call_1", name="shell")
    drive.tool("msg_a", "call_2")
    drive.hear("execution.failed", error={"type": "unknown", "message": "no"})
    assert not drive.outcome(TURN).retry_safe
    assert drive.code(TURN) == -32056


# Asks, cancels


def test_declined_asks_are_counted() -> None:
    drive = running(open_asks=2, turn_asks=3)
    for number in range(5):
        drive.ask(f"per_{number}", "msg_a")
    assert hits(drive, Bound.OPEN_ASKS) == 1
    assert hits(drive, Bound.TURN_ASKS) == 2
    assert len(of(drive.said, v.AskClient)) == 2


def test_a_cancel_that_is_not_confirmed_in_time_is_counted() -> None:
    drive = running()
    drive.step(v.Cancel(1))
    assert hits(drive, Bound.CANCEL_SECONDS) == 0
    drive.fire(f"cancel:{TURN}")
    assert hits(drive, Bound.CANCEL_SECONDS) == 1
    assert drive.outcome(TURN).cancel == "unconfirmed"


def test_a_client_that_leaves_hits_no_limit() -> None:
    drive = running()
    drive.step(v.Left(1, interrupt=True))
    assert drive.outcome(TURN).cancel == "unconfirmed"
    assert of(drive.said, v.Counted) == []
