"""Where a turn begins and ends, and who gets the text when several prompts are served at once."""

from __future__ import annotations

import pytest

from adapter.core import values as v
from adapter.core.values import Admission, Stop
from contract.errors import Code
from tests.support.drive import Drive, of, row, text_row

A, B = "msg_acp_a", "msg_acp_b"


def enqueue(drive: Drive, inbox_id: str, kind: str = "user") -> list[v.Output]:
    return drive.hear("inbox.enqueued", inboxID=inbox_id, item={"type": kind})


def two_running(drive: Drive) -> None:
    """A and B were delivered together and share the answer."""
    drive.admit(A, 1)
    drive.admit(B, 2)
    drive.deliver(A)
    drive.deliver(B)
    drive.started("msg_1")


def test_a_turn_ends_at_its_own_last_step_and_the_next_prompt_has_its_own() -> None:
    drive = Drive()
    drive.admit(A, 1)
    drive.admit(B, 2)
    drive.deliver(A)
    drive.text("msg_1", "for a")
    drive.ended("msg_1")
    assert drive.stop(A) is Stop.END_TURN
    drive.deliver(B)
    drive.text("msg_2", "for b")
    drive.ended("msg_2")
    drive.hear("execution.succeeded")
    assert [(c.owner, c.text) for c in of(drive.said, v.Chunk)] == [(1, "for a"), (2, "for b")]
    assert not drive.outcome(A).shared and not drive.outcome(B).shared


def test_a_step_that_ends_for_tools_ends_no_turn() -> None:
    drive = Drive()
    drive.run(A)
    assert not of(drive.ended("msg_1", "tool-calls"), v.Settled)
    assert not of(drive.hear("step.failed", assistantMessageID="msg_2", error={}), v.Settled)
    assert not of(drive.hear("synthetic", text="Continue"), v.Settled)


def test_prompts_delivered_together_share_one_answer() -> None:
    drive = Drive()
    two_running(drive)
    drive.text("msg_1", "for both")
    drive.ended("msg_1", "length")
    assert {chunk.owner for chunk in of(drive.said, v.Chunk)} == {1}
    for turn in (A, B):
        assert (drive.stop(turn), drive.outcome(turn).shared) == (Stop.MAX_TOKENS, True)
    assert of(drive.said, v.Settled)[-1].outcome.message_id == A


def test_a_prompt_that_joins_in_the_tool_loop_shares_the_answer() -> None:
    drive = Drive()
    drive.run(A, 1)
    drive.admit(B, 2)
    drive.ended("msg_1", "tool-calls")
    drive.deliver(B)
    drive.ended("msg_2")
    assert drive.outcome(A).shared and drive.outcome(B).shared


def test_a_foreign_prompt_in_the_loop_shares_and_one_after_the_end_does_not() -> None:
    drive = Drive()
    drive.run(A)
    drive.ended("msg_1", "tool-calls")
    enqueue(drive, "msg_f")
    drive.deliver("msg_f")
    drive.ended("msg_2")
    assert drive.outcome(A).shared
    drive.run(B, 2)
    drive.ended("msg_3")
    drive.deliver("msg_g")
    assert not drive.outcome(B).shared


@pytest.mark.parametrize("kind", ["synthetic", "compaction"])
def test_an_item_that_is_no_prompt_shares_nothing(kind: str) -> None:
    drive = Drive()
    drive.admit(A)
    enqueue(drive, "msg_s", kind)
    drive.deliver("msg_s")
    drive.deliver(A)
    drive.text("msg_1", "mine")
    drive.ended("msg_1")
    assert not drive.outcome(A).shared
    assert drive.seen.texts == {("msg_1", "text"): "mine"}


def test_an_answer_that_was_begun_before_the_delivery_is_foreign() -> None:
    drive = Drive()
    drive.admit(A)
    drive.deliver("msg_f")
    drive.text("msg_1", "foreign")
    drive.ended("msg_1", "tool-calls")
    drive.deliver(A)
    drive.hear("text.ended", assistantMessageID="msg_1", ordinal=1, text="late foreign")
    drive.text("msg_2", "ours too")
    drive.ended("msg_2")
    assert drive.seen.texts == {("msg_2", "text"): "ours too"}
    assert drive.outcome(A).shared


def test_late_events_of_an_ended_turn_do_not_reach_the_next() -> None:
    drive = Drive()
    drive.run(A, 1)
    drive.text("msg_1", "a")
    drive.ended("msg_1")
    drive.run(B, 2)
    drive.text("msg_1", "late")
    assert not of(drive.ended("msg_1"), v.Settled)
    assert drive.seen.texts == {("msg_1", "text"): "a"}


def test_a_head_that_leaves_hands_the_answer_over_in_whole_parts() -> None:
    drive = Drive()
    two_running(drive)
    drive.hear("text.started", assistantMessageID="msg_1", ordinal=0)
    drive.hear("text.delta", assistantMessageID="msg_1", ordinal=0, delta="one ")
    drive.tool("msg_1")
    left = drive.step(v.Left(1, interrupt=False))
    assert [tool.owner for tool in of(left, v.Tool)] == [1]
    drive.hear("text.delta", assistantMessageID="msg_1", ordinal=0, delta="two")
    got = drive.hear("text.ended", assistantMessageID="msg_1", ordinal=0, text="one two")
    assert [(chunk.owner, chunk.text) for chunk in of(got, v.Chunk)] == [(2, "one two")]
    (tool,) = of(drive.tool_over("msg_1"), v.Tool)
    assert (tool.owner, tool.first, tool.status) == (2, True, v.ToolStatus.COMPLETED)
    drive.ended("msg_1")
    assert drive.stop(B) is Stop.END_TURN


def test_a_turn_that_ends_hands_nothing_to_one_that_shares_nothing() -> None:
    drive = Drive()
    drive.run(A, 1)
    drive.started("msg_1")
    drive.admit(B, 2)
    drive.gap()
    drive.snapshot(
        row("user", A), text_row("msg_1", "a", "stop"), row("user", B), text_row("msg_2"),
        active=True,
    )  # fmt: skip
    assert drive.core.tables()["messages"] == 1
    assert not of(drive.ended("msg_1"), v.Settled)
    assert drive.core.turn_ids == (B,)


def test_the_end_of_an_execution_decides_nothing_for_a_turn_that_waits() -> None:
    drive = Drive()
    drive.admit(A)
    drive.deliver("msg_f")
    for kind in ("failed", "succeeded", "interrupted"):
        out = drive.hear(f"execution.{kind}", error={})
        assert of(out, v.Arm) == [v.Arm("parked", "parked")]
        assert not of(out, v.Withdraw)


def test_a_success_without_a_final_step_is_left_to_the_reads() -> None:
    drive = Drive()
    drive.run(A)
    assert of(drive.hear("execution.succeeded"), v.TakeSnapshot)
    assert drive.core.turn_ids == (A,)


def test_a_failure_of_an_execution_that_we_came_into_is_not_ours() -> None:
    drive = Drive()  # attached in the middle of a foreign turn: its delivery was not heard
    drive.admit(A)
    assert not of(drive.hear("execution.failed", error={}), v.Withdraw)
    drive.hear("execution.started")
    drive.step(v.FeedLost())
    drive.step(v.FeedBack())
    drive.snapshot(inbox=[A], active=True)
    assert not of(drive.hear("execution.failed", error={}), v.Withdraw)
    drive.hear("execution.started")
    assert of(drive.hear("execution.failed", error={}), v.Withdraw) == [v.Withdraw(A)]


@pytest.mark.parametrize(
    "admission", [Admission.UNCLEAR, Admission.UNREACHED, Admission.NOT_ADMITTED]
)
def test_a_lost_answer_unsettles_no_turn_that_was_heard_to_run(admission: Admission) -> None:
    drive = Drive()
    drive.submit(A)
    drive.deliver(A)
    drive.step(v.Posted(A, admission))
    drive.text("msg_1", "a")
    drive.ended("msg_1")
    assert drive.stop(A) is Stop.END_TURN


@pytest.mark.parametrize("admission", [Admission.UNCLEAR, Admission.UNREACHED])
def test_a_prompt_heard_to_enter_the_inbox_is_admitted(admission: Admission) -> None:
    drive = Drive()
    drive.submit(A)
    enqueue(drive, A)
    drive.step(v.Posted(A, admission))
    assert drive.core.admitted_ids == {A}
    assert "parked" in drive.timers


@pytest.mark.parametrize(
    ("admission", "admitted", "safe"),
    [
        (Admission.NOT_ADMITTED, False, True),
        (Admission.UNREACHED, False, True),
        (Admission.UNCLEAR, None, False),
        (Admission.GONE, False, False),
        (Admission.UNAUTHORISED, False, False),
    ],
)
def test_only_a_proven_refusal_is_safe_to_retry(
    admission: Admission, admitted: bool | None, safe: bool
) -> None:
    drive = Drive()
    drive.submit(A)
    drive.step(v.Posted(A, admission, "why"))
    outcome = drive.outcome(A)
    assert (outcome.admitted, outcome.retry_safe) == (admitted, safe)


def test_a_failure_after_a_tool_is_never_called_safe() -> None:
    for with_tool, code in ((False, Code.INTERNAL), (True, Code.FAILED_AFTER_TOOL)):
        drive = Drive()
        drive.run(A)
        if with_tool:
            drive.tool("msg_1")
            drive.tool_over("msg_1")
        drive.hear("execution.failed", error={"type": "x", "message": "model not found"})
        outcome = drive.outcome(A)
        assert (outcome.code, outcome.retry_safe) == (code, not with_tool)
        assert "not found" not in outcome.message


def test_a_deleted_session_settles_every_turn_and_leaves_no_timer() -> None:
    drive = Drive()
    drive.run(A, 1)
    drive.admit(B, 2)
    drive.submit("msg_acp_c", 3)
    drive.ask("per_1", "msg_1")
    drive.hear("deleted")
    assert set(drive.seen.outcomes) == {A, B, "msg_acp_c"}
    assert drive.timers == {}


def test_whatever_settles_all_settles_the_head_last() -> None:
    drive = Drive()
    two_running(drive)
    drive.tool("msg_1")
    out = drive.hear("deleted")
    assert [one.outcome.message_id for one in of(out, v.Settled)] == [B, A]
    assert [tool.owner for tool in of(out, v.Tool)] == [1]


def test_a_session_that_is_deleted_while_a_prompt_is_sent_says_nothing_of_its_admission() -> None:
    drive = Drive()
    drive.submit(A, 1)
    drive.admit(B, 2)
    drive.hear("deleted")
    assert [drive.outcome(turn).admitted for turn in (A, B)] == [None, True]
    assert {drive.code(turn) for turn in (A, B)} == {Code.ENDED_ELSEWHERE}
