"""What works for a call of a turn has bounds: of what is remembered, and of what is shown."""

from __future__ import annotations

from adapter.core import values as v
from adapter.core.values import ToolStatus
from adapter.core.weights import ENTRY
from adapter.limits import Bound, Limits
from tests.support.drive import of
from tests.unit.core.test_children import ROOT, Family

# --- what is remembered -----------------------------------------------------------------------

ROOM = 40 * ENTRY


def hits(family: Family) -> int:
    found = of(family.drive.said, v.Counted)
    return sum(one.times for one in found if one.bound is Bound.TURN_CONTEXT_BYTES)


def test_steps_of_a_child_that_are_over_are_let_go_of_and_no_news_later() -> None:
    family = Family(limits=Limits(turn_context_bytes=ROOM))
    for n in range(200):
        family.tool(f"call_{n}", message=f"msg_c{n}")
        family.done(f"call_{n}", message=f"msg_c{n}")
        assert family.text("ended", message=f"msg_c{n}", text="x") == "x"
    assert family.drive.core.beside_bytes <= ROOM
    assert (hits(family), len(of(family.own(), v.Chunk))) == (0, 200)
    assert family.text("ended", message="msg_c0", text="x") == ""
    assert of(family.done("call_0", message="msg_c0"), v.Tool) == []


def test_a_step_of_a_child_that_is_too_large_leaves_room_for_the_turn() -> None:
    family = Family(limits=Limits(turn_context_bytes=ROOM))
    for n in range(100):
        family.tool(f"call_{n}")
    shown = {tool.call_id for tool in of(family.own(), v.Tool)}
    assert 0 < len(shown) < 40 and hits(family) >= 100 - len(shown)
    family.drive.text(ROOT, "on we go")
    assert family.drive.seen.texts[ROOT, "text"] == "on we go"
    family.drive.tool_over(ROOT, "call_sub")
    assert family.drive.core.beside_bytes == 0


def test_what_running_calls_of_a_child_were_told_is_let_go_of() -> None:
    family = Family(limits=Limits(turn_context_bytes=ROOM))
    for n in range(4):
        family.tool(f"call_{n}", "x" * ROOM)
        assert family.drive.core.beside_bytes <= ROOM
    assert hits(family) == 4
    for n in range(4):
        family.done(f"call_{n}")
    assert family.lines()[-1][1] is ToolStatus.COMPLETED


# --- what is shown ----------------------------------------------------------------------------


def test_results_and_texts_of_children_have_a_limit_of_their_own_together() -> None:
    family = Family(limits=Limits(turn_output_bytes=5))
    family.tool("call_1")
    family.done("call_1")
    family.tool("call_2")
    family.done("call_2")
    assert family.text("ended", text="123") == ""
    first, second = [one for one in of(family.own(), v.Tool) if one.status is ToolStatus.COMPLETED]
    # "ok" twice, and then no text any more.
    assert first.content and second.content
    family.tool("call_3")
    (third,) = of(family.done("call_3"), v.Tool)
    assert third.content is None
    assert [one.bound for one in of(family.drive.said, v.Counted)] == [Bound.TURN_OUTPUT_BYTES]
    # The turn's own is not over, and nobody is told.
    family.drive.text(ROOT, "12345")
    assert family.drive.seen.texts[ROOT, "text"] == "12345"
    assert family.drive.notices() == []


def test_calls_of_children_that_run_at_once_have_a_limit_of_their_own_together() -> None:
    family = Family(limits=Limits(open_tools=2))
    for call in ("call_1", "call_2", "call_3"):
        family.tool(call)
    assert {one.call_id for one in of(family.own(), v.Tool)} == {"call_1", "call_2"}
    assert [one.bound for one in of(family.drive.said, v.Counted)] == [Bound.OPEN_TOOLS]
    family.drive.tool(ROOT, "call_own")
    assert (ROOT, "call_own") in family.drive.seen.tools
    family.done("call_3")
    family.done("call_1")
    family.tool("call_4")
    assert of(family.own(), v.Tool)[-1].call_id == "call_4"
    assert family.drive.notices() == []
