"""What a turn's client is told of sub-agents: lines on their call, their updates, their asks."""

from __future__ import annotations

from typing import Any

import pytest

from adapter.core import values as v
from adapter.core.children import CALL_OVER
from adapter.core.errands import ARGUMENT_CHARS, LINES
from adapter.core.values import ToolStatus
from adapter.core.watched import NOT_KNOWN
from adapter.limits import DEFAULTS, Limits
from contract.shapes import PermissionAsk
from tests.support.drive import CHILD, SESSION, Drive, ask_data, event, of, row

A, B = "msg_acp_a", "msg_acp_b"
ROOT = "msg_1"
GRANDCHILD = "ses_grandchild"


class Family:
    """A turn with a sub-agent at work, and what its sessions do."""

    def __init__(self, *, linked: bool = True, limits: Limits = DEFAULTS) -> None:
        self.drive = Drive(limits=limits)
        self.drive.run(A)
        self.drive.tool(ROOT, "call_sub", "subagent")
        self.made(CHILD, SESSION, "look around")
        if linked:
            self.link(SESSION, ROOT, "call_sub", CHILD)

    def hear(self, session: str, kind: str, **data: Any) -> list[v.Output]:
        return self.drive.step(v.Heard(event(f"session.{kind}", {"sessionID": session, **data})))

    def made(self, session: str, parent: str, title: str = "") -> None:
        self.hear(session, "created", parentID=parent, title=title)

    def link(self, parent: str, message: str, call: str, child: str) -> list[v.Output]:
        told = {"sessionID": child, "status": "running"}
        return self.hear(
            parent, "tool.progress", assistantMessageID=message, id=call, metadata=told
        )

    def tool(
        self, call: str, command: str = "ls", session: str = CHILD, message: str = "msg_c"
    ) -> list[v.Output]:
        at = {"assistantMessageID": message, "id": call}
        self.hear(session, "tool.input.started", **at, name="shell")
        return self.hear(session, "tool.called", **at, input={"command": command})

    def done(self, call: str, session: str = CHILD, message: str = "msg_c") -> list[v.Output]:
        at = {"assistantMessageID": message, "id": call}
        return self.hear(session, "tool.success", **at, content=[{"type": "text", "text": "ok"}])

    def text(self, kind: str, session: str = CHILD, message: str = "msg_c", **data: Any) -> str:
        at = {"assistantMessageID": message, "ordinal": 0}
        return "".join(
            c.text for c in of(self.hear(session, f"text.{kind}", **at, **data), v.Chunk)
        )

    def lines(self) -> list[tuple[str, ToolStatus | None]]:
        """The last lines of the call: the command and its state."""
        last = of(self.drive.said, v.Progress)[-1]
        assert (last.owner, last.message_id, last.call_id) == (1, ROOT, "call_sub")
        return [(line.input["command"], line.status) for line in last.lines]

    def own(self) -> list[v.Output]:
        """The updates of descendants themselves."""
        return [
            one
            for one in self.drive.said
            if isinstance(one, v.Chunk | v.Tool) and isinstance(one.origin, v.OfChild)
        ]


def test_each_tool_of_a_child_is_a_line_of_the_call() -> None:
    family = Family()
    family.tool("call_1", "ls")
    family.tool("call_2", "pwd")
    family.done("call_1")
    assert family.lines() == [("ls", ToolStatus.COMPLETED), ("pwd", ToolStatus.IN_PROGRESS)]


def test_only_a_change_is_told() -> None:
    family = Family()
    family.tool("call_1")
    before = len(of(family.drive.said, v.Progress))
    family.text("started")
    family.text("delta", delta="a")
    family.hear(CHILD, "tool.progress", assistantMessageID="msg_c", id="call_1", metadata={"n": 1})
    assert len(of(family.drive.said, v.Progress)) == before == 1


def test_the_lines_are_bounded_and_say_how_many_went() -> None:
    family = Family()
    for n in range(LINES + 3):
        family.tool(f"call_{n}", f"echo {n}")
    last = of(family.drive.said, v.Progress)[-1]
    assert (len(last.lines), last.left_out) == (LINES, 3)
    assert last.lines[0].input == {"command": "echo 3"}
    # Calls whose line went do not push out another when they end.
    assert of(family.done("call_0"), v.Progress) == []


def test_arguments_are_kept_short() -> None:
    family = Family()
    family.tool("call_1", "x" * 10_000)
    (progress,) = of(family.drive.said, v.Progress)
    assert progress.lines[0].input == {"command": "x" * ARGUMENT_CHARS}


def test_a_grandchild_is_folded_into_the_call_of_the_root() -> None:
    family = Family()
    at = {"assistantMessageID": "msg_c", "id": "call_sub"}
    family.hear(CHILD, "tool.called", **at, input={"command": "delegate"})
    family.made(GRANDCHILD, CHILD)
    family.link(CHILD, "msg_c", "call_sub", GRANDCHILD)
    family.tool("call_1", "ls", GRANDCHILD, "msg_g")
    last = of(family.drive.said, v.Progress)[-1]
    assert [(line.input["command"], line.depth) for line in last.lines] == [
        ("delegate", 0),
        ("ls", 1),
    ]
    (_, tool) = [one for one in of(family.own(), v.Tool) if one.message_id == "msg_g"]
    assert tool.origin == v.OfChild(GRANDCHILD, CHILD, "msg_c", "call_sub")


def test_a_childs_own_updates_say_whose_they_are() -> None:
    family = Family()
    family.text("started")
    family.text("delta", delta="ab")
    family.tool("call_1")
    family.done("call_1")
    chunks, tools = of(family.own(), v.Chunk), of(family.own(), v.Tool)
    made_by = v.OfChild(CHILD, SESSION, ROOT, "call_sub")
    assert {chunk.origin for chunk in chunks} == {tool.origin for tool in tools} == {made_by}
    assert [tool.status for tool in tools] == [
        ToolStatus.PENDING,
        ToolStatus.IN_PROGRESS,
        ToolStatus.COMPLETED,
    ]


def test_the_text_of_a_child_follows_the_offset_rules() -> None:
    family = Family()
    family.text("started")
    assert family.text("delta", delta="ab") == "ab"
    assert family.text("ended", text="abc") == "c"
    assert family.text("ended", text="abc") == ""
    # A start that was not heard: held until the end.
    assert family.text("delta", message="msg_c2", delta="x") == ""
    assert family.text("ended", message="msg_c2", text="xyz") == "xyz"


def test_after_a_gap_open_parts_wait_for_their_end_and_open_calls_are_in_doubt() -> None:
    family = Family()
    family.tool("call_1")
    family.text("started")
    family.text("delta", delta="ab")
    family.drive.gap()
    running = {"status": "running", "input": {"a": 1}, "metadata": {"sessionID": CHILD}}
    part = {"type": "tool", "id": "call_sub", "name": "subagent", "state": running}
    rows = (row("user", A), row("assistant", ROOT, content=[part]))
    family.drive.snapshot(*rows, active=True, children=((CHILD, SESSION),))
    assert family.text("delta", delta="d") == ""
    assert family.text("ended", text="abcd") == "cd"
    family.tool("call_2", "pwd")
    assert family.lines() == [("ls", None), ("pwd", ToolStatus.IN_PROGRESS)]


def test_a_child_whose_link_fell_into_a_gap_is_known_by_the_row_of_its_call() -> None:
    family = Family(linked=False)
    family.drive.gap()
    running = {"status": "running", "input": {"a": 1}, "metadata": {"sessionID": CHILD}}
    part = {"type": "tool", "id": "call_sub", "name": "subagent", "state": running}
    rows = (row("user", A), row("assistant", ROOT, content=[part]))
    family.drive.snapshot(*rows, active=True, children=((CHILD, SESSION),))
    family.tool("call_1")
    assert family.lines() == [("ls", ToolStatus.IN_PROGRESS)]


def test_a_call_that_names_somebody_elses_session_makes_no_child() -> None:
    family = Family(linked=False)
    family.made("ses_x", "ses_stranger")
    family.link(SESSION, ROOT, "call_sub", "ses_x")
    assert family.tool("call_1", session="ses_x") == []


def test_a_call_that_names_the_child_of_another_makes_no_child() -> None:
    family = Family()
    family.made(GRANDCHILD, CHILD)
    family.made("ses_sibling", SESSION)
    family.drive.tool(ROOT, "call_other", "subagent")
    family.link(SESSION, ROOT, "call_other", GRANDCHILD)
    family.link(CHILD, "msg_c", "call_1", "ses_sibling")
    assert family.tool("call_1", session=GRANDCHILD, message="msg_g") == []
    assert family.tool("call_1", session="ses_sibling", message="msg_s") == []


def test_a_child_in_the_background_says_nothing_more() -> None:
    family = Family()
    family.drive.tool_over(ROOT, "call_sub")
    assert family.tool("call_1") == []
    assert family.text("ended", text="late") == ""


def test_what_is_open_ends_with_the_call_and_before_it() -> None:
    family = Family()
    family.tool("call_1")
    out = of(family.drive.tool_over(ROOT, "call_sub"), v.Tool)
    assert [(tool.call_id, tool.status) for tool in out] == [
        ("call_1", ToolStatus.FAILED),
        ("call_sub", ToolStatus.COMPLETED),
    ]
    assert out[0].error == CALL_OVER and not out[0].first


def test_a_call_that_may_have_ended_in_a_gap_is_not_told_failed_for_that() -> None:
    family = Family()
    for call in ("call_1", "call_2", "call_3"):
        family.tool(call)
    family.drive.gap()
    running = {"status": "running", "input": {"a": 1}, "metadata": {"sessionID": CHILD}}
    part = {"type": "tool", "id": "call_sub", "name": "subagent", "state": running}
    rows = (row("user", A), row("assistant", ROOT, content=[part]))
    family.drive.snapshot(*rows, active=True, children=((CHILD, SESSION),))
    at = {"assistantMessageID": "msg_c", "id": "call_2"}
    family.hear(CHILD, "tool.progress", **at, metadata={"n": 1})
    family.done("call_3")
    out = of(family.drive.tool_over(ROOT, "call_sub"), v.Tool)
    assert [(one.call_id, one.error) for one in out[:2]] == [
        ("call_1", NOT_KNOWN),
        ("call_2", CALL_OVER),
    ]


@pytest.mark.parametrize("how", ["answer", "cancel", "left"])
def test_nothing_of_a_child_follows_the_answer(how: str) -> None:
    family = Family()
    family.tool("call_1")
    match how:
        case "answer":
            family.drive.ended(ROOT)
        case "cancel":
            family.drive.step(v.Cancel(1))
            family.drive.fire(f"cancel:{A}")
        case _:
            family.drive.step(v.Left(1, interrupt=True))
    # Drive checks that no update follows; here that what was open is closed.
    assert of(family.own(), v.Tool)[-1].status is ToolStatus.FAILED
    assert family.tool("call_2") == []
    assert family.text("ended", text="late") == ""


def test_whoever_takes_the_answer_over_sees_the_child_from_there_on() -> None:
    family = Family()
    family.text("started")
    family.text("delta", delta="ab")
    family.tool("call_1")
    family.drive.admit(B, owner=2)
    family.drive.ended(ROOT, "tool-calls")
    family.drive.deliver(B)
    family.drive.step(v.Left(1, interrupt=False))
    assert family.text("delta", delta="c") == ""
    (chunk,) = of(
        family.hear(CHILD, "text.ended", assistantMessageID="msg_c", ordinal=0, text="abc"), v.Chunk
    )
    assert (chunk.owner, chunk.text, chunk.start) == (2, "abc", 0)
    (tool,) = of(family.done("call_1"), v.Tool)
    assert (tool.owner, tool.first) == (2, True)


def test_a_client_that_loads_in_its_turn_gets_the_child_anew() -> None:
    family = Family()
    family.text("started")
    family.text("delta", delta="ab")
    family.tool("call_1")
    family.drive.step(v.Reloading(1))
    assert family.text("delta", delta="c") == ""
    assert family.text("ended", text="abc") == "abc"
    at = {"assistantMessageID": "msg_c", "id": "call_1"}
    told = of(family.hear(CHILD, "tool.progress", **at, metadata={"n": 1}), v.Tool)
    assert [tool.first for tool in told] == [True]


def test_an_ask_of_a_child_tells_its_title_and_its_call() -> None:
    family = Family()
    family.tool("call_1", "rm x")
    family.drive.step(
        v.Heard(event("permission.asked", ask_data("per_1", "msg_c", "call_1", CHILD)))
    )
    (asked,) = of(family.drive.said, v.AskClient)
    assert asked.child == "look around"
    assert asked.origin == v.OfChild(CHILD, SESSION, ROOT, "call_sub")
    assert asked.tool is not None and asked.tool.input == {"command": "rm x"}


def test_an_ask_of_the_root_has_no_child() -> None:
    family = Family()
    family.drive.ask("per_1", ROOT, "call_sub")
    (asked,) = of(family.drive.said, v.AskClient)
    assert (asked.child, asked.origin) == (None, None)


def test_a_child_found_by_the_reads_has_its_title_from_them() -> None:
    drive = Drive()
    drive.run(A)
    drive.gap()
    ask = PermissionAsk.model_validate(ask_data("per_1", "msg_c", "call_1", CHILD))
    drive.snapshot(
        row("user", A),
        active=True,
        asks=(ask,),
        children=((CHILD, SESSION),),
        titles=((CHILD, "found"),),
    )
    (asked,) = of(drive.said, v.AskClient)
    assert asked.child == "found"
    assert asked.origin == v.OfChild(CHILD, SESSION)
