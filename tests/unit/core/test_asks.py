"""Permissions: who is asked, what is held, and what becomes of those that nobody owns."""

from __future__ import annotations

import pytest

from adapter.core import values as v
from adapter.core.state import ACTIVE_PATIENCE
from adapter.core.values import Stop
from contract.shapes import PermissionAsk
from tests.support.drive import Drive, ask_data, event, of, row, text_row

A, B = "msg_acp_a", "msg_acp_b"


def running(drive: Drive, *asks: str) -> None:
    """A turn with these asks open, each of a tool of its own."""
    drive.run(A)
    for number, ask in enumerate(asks):
        drive.tool("msg_1", f"call_{number}")
        drive.ask(ask, "msg_1", f"call_{number}")


def answer(drive: Drive, ask: str, decision: v.Decision) -> list[v.Reply]:
    return of(drive.step(v.Answered(ask, decision)), v.Reply)


def shape(
    ask: str, message: str | None = "msg_1", call: str = "call_1", session: str = "ses_1"
) -> PermissionAsk:
    data = ask_data(ask, message, call) | {"sessionID": session}
    return PermissionAsk.model_validate(data)


def test_the_owner_of_the_turn_is_asked_once_with_the_tool_as_it_stands() -> None:
    drive = Drive()
    running(drive, "per_1")
    (asked,) = of(drive.said, v.AskClient)
    assert asked.owner == 1 and asked.tool is not None and asked.tool.input == {"a": 1}
    assert drive.ask("per_1", "msg_1", "call_0") == []


def test_an_approval_goes_at_once_and_a_late_answer_nowhere() -> None:
    drive = Drive()
    running(drive, "per_1", "per_2")
    assert answer(drive, "per_1", "always") == [v.Reply("ses_1", "per_1", "always")]
    assert answer(drive, "per_1", "reject") == []
    assert answer(drive, "per_unknown", "once") == []


def test_a_rejection_waits_for_its_siblings_and_approvals_go_first() -> None:
    drive = Drive()
    running(drive, "per_1", "per_2")
    assert answer(drive, "per_1", "reject") == []
    assert answer(drive, "per_2", "once") == [v.Reply("ses_1", "per_2", "once")]
    out = drive.step(v.Replied("per_2", settled=True))
    assert of(out, v.Reply) == [v.Reply("ses_1", "per_1", "reject", go_on=True)]


def test_a_rejection_is_let_go_when_the_sibling_is_settled_elsewhere() -> None:
    drive = Drive()
    running(drive, "per_1", "per_2")
    answer(drive, "per_1", "reject")
    out = drive.hear("permission.replied", requestID="per_2", reply="once")
    assert of(out, v.WithdrawAsk) == [v.WithdrawAsk("per_2")]
    assert [reply.ask_id for reply in of(out, v.Reply)] == ["per_1"]


def test_an_ask_of_a_child_waits_for_no_sibling_of_its_parent() -> None:
    drive = Drive()
    running(drive, "per_1")
    drive.hear("created", sessionID="ses_child", parentID="ses_1")
    drive.ask("per_c", "msg_c", session="ses_child")
    assert answer(drive, "per_c", "reject") == [v.Reply("ses_child", "per_c", "reject")]


def test_two_rejections_in_one_step_end_the_turn_and_it_is_told() -> None:
    drive = Drive()
    running(drive, "per_1", "per_2")
    answer(drive, "per_1", "reject")
    assert len(answer(drive, "per_2", "reject")) == 2
    drive.hear("execution.interrupted", reason="shutdown")
    assert (drive.stop(A), drive.outcome(A).reason) == (Stop.END_TURN, "rejected")
    assert drive.notices() == ["rejected"]


def test_a_stop_by_somebody_else_after_a_rejection_is_not_ours() -> None:
    drive = Drive()
    running(drive, "per_1")
    answer(drive, "per_1", "reject")
    drive.hear("execution.interrupted", reason="user")
    assert drive.stop(A) is None
    assert drive.notices() == []


def test_a_rejection_of_an_earlier_step_ends_nothing() -> None:
    drive = Drive()
    running(drive, "per_1")
    answer(drive, "per_1", "reject")
    drive.ended("msg_1", "tool-calls")
    drive.hear("execution.interrupted", reason="shutdown")
    assert drive.stop(A) is None


def test_an_interrupt_that_takes_the_tool_takes_the_ask_too() -> None:
    drive = Drive()
    running(drive, "per_1")
    out = drive.tool_over("msg_1", "call_0", error="interrupted")
    assert of(out, v.WithdrawAsk) == [v.WithdrawAsk("per_1")]


def test_nobody_is_asked_for_a_turn_that_is_being_stopped() -> None:
    drive = Drive()
    drive.run(A)
    drive.step(v.Cancel(1))
    assert drive.ask("per_1", "msg_1") == []


# --- what stops a turn ----------------------------------------------------------------------


def stops(drive: Drive) -> list[v.Output]:
    """The requests that follow a cancel."""
    return [one for one in drive.step(v.Cancel(1)) if isinstance(one, v.Interrupt | v.Reply)]


@pytest.mark.parametrize("answered", [False, True])
def test_beside_a_tool_that_runs_a_rejection_would_stop_nothing_for_as_long(answered: bool) -> None:
    drive = Drive()
    drive.run(A)
    drive.tool("msg_1", "call_1")
    drive.tool("msg_1", "call_2")
    drive.ask("per_2", "msg_1", "call_2")
    if answered:
        drive.ask("per_1", "msg_1", "call_1")
        drive.step(v.Answered("per_1", "once"))
    assert stops(drive) == [v.Interrupt(A)]


def test_a_tool_that_is_over_is_no_reason_to_interrupt() -> None:
    drive = Drive()
    drive.run(A)
    drive.tool("msg_1", "call_1")
    drive.tool("msg_1", "call_2")
    drive.ask("per_2", "msg_1", "call_2")
    drive.tool_over("msg_1", "call_1")
    assert stops(drive) == [v.Reply("ses_1", "per_2", "reject", go_on=False)]


# --- without a turn of ours -----------------------------------------------------------------


def child_ask(drive: Drive) -> PermissionAsk:
    """An ask of a child that was made without a turn of ours."""
    drive.step(v.Heard(event("session.created", {"sessionID": "ses_2", "parentID": "ses_1"})))
    drive.ask("per_1", None, session="ses_2")
    return shape("per_1", session="ses_2")


def test_a_childs_ask_without_a_turn_is_left_to_others_for_a_while() -> None:
    drive = Drive()
    drive.admit(B, 2)
    ask = child_ask(drive)
    assert drive.timers["unattended:per_1"] == "unattended"
    assert of(drive.said, v.AskClient) == []
    assert drive.notices() == ["waiting"]
    assert of(drive.fire("unattended:per_1"), v.TakeSnapshot)
    out = drive.snapshot(inbox=[B], asks=(ask,))
    assert of(out, v.Reply) == [v.Reply("ses_2", "per_1", "reject", go_on=True)]


def test_one_that_a_running_turn_of_others_may_own_is_left_longer() -> None:
    drive = Drive()
    ask = child_ask(drive)
    replies: list[int] = []
    for _ in range(ACTIVE_PATIENCE):
        drive.fire("unattended:per_1")
        replies.append(len(of(drive.snapshot(active=True, asks=(ask,)), v.Reply)))
    assert replies == [0] * (ACTIVE_PATIENCE - 1) + [1]


def test_one_that_others_answered_is_not_rejected() -> None:
    drive = Drive()
    child_ask(drive)
    drive.hear("permission.replied", sessionID="ses_2", requestID="per_1", reply="once")
    assert drive.timers == {}
    assert drive.step(v.Fired("unattended:per_1")) == []


def test_the_roots_ask_of_somebody_elses_turn_is_left_alone() -> None:
    drive = Drive()
    drive.ask("per_1", None)
    for _ in range(3 * ACTIVE_PATIENCE):
        assert of(drive.fire("unattended:per_1"), v.TakeSnapshot) == []
    assert of(drive.said, v.Reply) == []


def test_unless_a_turn_of_ours_waits_behind_it_for_long() -> None:
    drive = Drive()
    drive.admit(B, 2)
    drive.ask("per_1", None)
    assert drive.notices() == ["waiting"]
    asks = (shape("per_1", None),)
    replies: list[int] = []
    for _ in range(ACTIVE_PATIENCE):
        drive.fire("unattended:per_1")
        replies.append(len(of(drive.snapshot(inbox=[B], active=True, asks=asks), v.Reply)))
    assert replies == [0] * (ACTIVE_PATIENCE - 1) + [1]


@pytest.mark.parametrize("kind", ["permission", "form"])
def test_a_turn_that_comes_to_wait_behind_an_ask_is_told_of_it_once(kind: str) -> None:
    drive = Drive()
    if kind == "permission":
        drive.ask("per_1", None)
    else:
        drive.step(v.Heard(event("form.created", {"form": {"id": "frm_1", "sessionID": "ses_1"}})))
    drive.admit(B, 2)
    for _ in range(2):
        drive.step(v.InboxRead((B,), active=True))
    (told,) = of(drive.said, v.Notice)
    assert "the answer of others" in told.title


def test_a_background_child_asks_the_client_that_it_was_made_for() -> None:
    drive = Drive()
    drive.run(A, 1)
    drive.step(v.Heard(event("session.created", {"sessionID": "ses_2", "parentID": "ses_1"})))
    drive.ended("msg_1")
    drive.run(B, 2)
    drive.ask("per_1", None, session="ses_2")
    assert of(drive.said, v.AskClient) == []
    assert "unattended:per_1" in drive.timers


def test_what_a_background_child_asked_is_left_to_others_when_its_turn_ends() -> None:
    drive = Drive()
    drive.run(A)
    drive.step(v.Heard(event("session.created", {"sessionID": "ses_2", "parentID": "ses_1"})))
    drive.ask("per_1", None, session="ses_2")
    out = drive.ended("msg_1")
    assert of(out, v.WithdrawAsk) == [v.WithdrawAsk("per_1")]
    assert of(drive.fire("unattended:per_1"), v.TakeSnapshot)
    out = drive.snapshot(asks=(shape("per_1", session="ses_2"),))
    assert of(out, v.Reply) == [v.Reply("ses_2", "per_1", "reject", go_on=True)]


def test_an_ask_of_a_turn_that_was_given_up_holds_nobody_up_for_ever() -> None:
    drive = Drive()
    running(drive, "per_1")
    drive.admit(B, 2)
    drive.step(v.FeedLost())
    drive.step(v.Cancel(1))
    drive.fire(f"cancel:{A}")
    drive.snapshot(*ROWS, inbox=[B], active=True, asks=(shape("per_1"),))
    drive.fire("unattended:per_1")
    out = drive.snapshot(*ROWS, inbox=[B], active=True, asks=(shape("per_1"),))
    assert [reply.ask_id for reply in of(out, v.Reply)] == ["per_1"]


def test_an_ask_of_a_turn_in_doubt_is_refused_though_no_turn_waits_behind_it() -> None:
    drive = Drive()
    running(drive, "per_1")
    drive.step(v.FeedLost())
    drive.fire("gap")
    assert drive.outcome(A).reason == "unknown"
    drive.step(v.FeedBack())
    assert of(drive.snapshot(*ROWS, active=True, asks=(shape("per_1"),)), v.Reply) == []
    assert drive.core.owes_a_refusal
    assert of(drive.fire("unattended:per_1"), v.TakeSnapshot)
    out = drive.snapshot(*ROWS, active=True, asks=(shape("per_1"),))
    assert of(out, v.Reply) == [v.Reply("ses_1", "per_1", "reject", go_on=True, why="unattended")]
    assert not drive.core.owes_a_refusal


def test_what_a_turn_of_ours_left_behind_is_refused_at_once_when_the_process_ends() -> None:
    drive = Drive()
    drive.run(A)
    drive.step(v.Heard(event("session.created", {"sessionID": "ses_2", "parentID": "ses_1"})))
    drive.ended("msg_1")
    drive.ask("per_theirs", None)
    before = drive.core.owes_a_refusal
    drive.ask("per_1", None, session="ses_2")
    assert (before, drive.core.owes_a_refusal) == (False, True)
    out = drive.step(v.Parting())
    assert of(out, v.Reply) == [v.Reply("ses_2", "per_1", "reject", go_on=True, why="left")]
    assert drive.timers.keys() == {"unattended:per_theirs"}


def test_an_ask_that_was_open_before_we_came_is_looked_for_by_a_turn_that_waits() -> None:
    drive = Drive()
    drive.admit(A)
    assert of(drive.fire(f"ahead:{A}"), v.TakeSnapshot)
    drive.snapshot(row("user", "msg_f"), inbox=[A], active=True, asks=(shape("per_1", "msg_f1"),))
    assert drive.notices() == ["waiting"]
    assert not of(drive.fire("watch"), v.TakeSnapshot)


def test_a_session_that_is_not_followed_is_not_ours() -> None:
    drive = Drive()
    drive.run(A)
    assert drive.ask("per_1", None, session="ses_stranger") == []


# --- after a gap ----------------------------------------------------------------------------

ROWS = (row("user", A), text_row("msg_1"))


def test_after_a_gap_a_shown_ask_is_not_shown_twice_and_a_vanished_one_is_withdrawn() -> None:
    drive = Drive()
    running(drive, "per_0", "per_1")
    drive.gap()
    out = drive.snapshot(*ROWS, active=True, asks=(shape("per_0", call="call_0"),))
    assert of(out, v.AskClient) == []
    assert of(out, v.WithdrawAsk) == [v.WithdrawAsk("per_1")]


def test_a_reply_that_did_not_arrive_is_sent_again_until_it_does() -> None:
    drive = Drive()
    running(drive, "per_1")
    answer(drive, "per_1", "once")
    for _ in range(3):
        drive.step(v.Replied("per_1", settled=False))
        out = drive.fire("reply:per_1")
        assert of(out, v.Reply) == [v.Reply("ses_1", "per_1", "once")]
    drive.step(v.Replied("per_1", settled=True))
    assert drive.step(v.Fired("reply:per_1")) == []


def test_after_a_gap_a_reply_that_did_not_arrive_is_sent_again_once() -> None:
    drive = Drive()
    running(drive, "per_0", "per_1")
    answer(drive, "per_0", "reject")
    answer(drive, "per_1", "once")
    drive.step(v.Replied("per_1", settled=False))
    drive.gap()
    asks = (shape("per_0", call="call_0"), shape("per_1"))
    out = drive.snapshot(*ROWS, active=True, asks=asks)
    assert of(out, v.Reply) == [v.Reply("ses_1", "per_1", "once")]
    drive.gap()
    out = drive.snapshot(*ROWS, active=True, asks=asks[:1])
    assert of(out, v.Reply) == [v.Reply("ses_1", "per_0", "reject", go_on=True)]


def test_an_ask_of_the_snapshot_belongs_to_the_turn_that_begins_in_the_buffer() -> None:
    drive = Drive()
    drive.admit(A)
    drive.gap()
    buffer = [
        event("session.inbox.delivered", {"sessionID": "ses_1", "inboxID": A}),
        event("permission.asked", ask_data("per_1", "msg_1")),
    ]
    drive.snapshot(*ROWS, active=True, asks=(shape("per_1"),), buffer=buffer)
    assert [ask.ask.id for ask in of(drive.said, v.AskClient)] == ["per_1"]
    assert drive.timers.get("unattended:per_1") is None


def test_an_ask_of_the_snapshot_that_the_buffer_settles_is_not_shown() -> None:
    drive = Drive()
    drive.run(A)
    drive.gap()
    replied = {"sessionID": "ses_1", "requestID": "per_1", "reply": "once"}
    drive.snapshot(
        *ROWS, active=True, asks=(shape("per_1"),), buffer=[event("permission.replied", replied)]
    )
    assert of(drive.said, v.AskClient) == []


def test_an_ask_that_was_heard_before_its_turn_was_known_is_shown_once_it_is() -> None:
    drive = Drive()
    drive.submit(A)
    drive.gap()
    drive.snapshot()
    drive.started("msg_1")
    drive.tool("msg_1")
    drive.ask("per_1", "msg_1")
    assert of(drive.said, v.AskClient) == []
    drive.step(v.Posted(A, v.Admission.ADMITTED, probed=True))
    drive.snapshot(*ROWS, active=True, asks=(shape("per_1"),))
    assert [ask.ask.id for ask in of(drive.said, v.AskClient)] == ["per_1"]
    assert "unattended:per_1" not in drive.timers
