"""Cancel in every phase: one request, a true answer, and nobody else's turn stopped."""

from __future__ import annotations

import pytest

from adapter.core import values as v
from adapter.core.values import Admission, Stop
from contract.errors import Code
from contract.events import Event
from contract.shapes import PermissionAsk
from tests.support.drive import Drive, ask_data, event, of, row, text_row

A, B = "msg_acp_a", "msg_acp_b"
REQUESTS = (v.Interrupt, v.Withdraw, v.Reply)


def requests(outputs: list[v.Output]) -> list[v.Output]:
    return [output for output in outputs if isinstance(output, REQUESTS)]


def cancelled(drive: Drive, turn: str, mark: str) -> None:
    outcome = drive.outcome(turn)
    assert (outcome.stop, outcome.cancel) == (Stop.CANCELLED, mark)


def test_without_a_turn_or_a_second_time_it_does_nothing() -> None:
    drive = Drive()
    assert drive.step(v.Cancel(1)) == []
    drive.run(A)
    assert requests(drive.step(v.Cancel(1))) == [v.Interrupt(A)]
    assert drive.step(v.Cancel(1)) == []
    assert drive.step(v.Cancel(2)) == []


def test_while_submitting_it_waits_for_the_answer_of_the_post() -> None:
    drive = Drive()
    drive.submit(A)
    assert requests(drive.step(v.Cancel(1))) == []
    assert requests(drive.step(v.Posted(A, Admission.ADMITTED))) == [v.Withdraw(A)]
    drive.hear("inbox.cancelled", inboxID=A)
    cancelled(drive, A, "confirmed")


@pytest.mark.parametrize("admission", [Admission.NOT_ADMITTED, Admission.UNREACHED])
def test_while_submitting_what_was_not_admitted_is_cancelled(admission: Admission) -> None:
    drive = Drive()
    drive.submit(A)
    drive.step(v.Cancel(1))
    drive.step(v.Posted(A, admission))
    cancelled(drive, A, "confirmed")


def test_while_submitting_an_unclear_answer_is_withdrawn_in_any_case() -> None:
    drive = Drive()
    drive.submit(A)
    drive.step(v.Cancel(1))
    assert requests(drive.step(v.Posted(A, Admission.UNCLEAR))) == [v.Withdraw(A)]
    drive.fire(f"cancel:{A}")
    cancelled(drive, A, "unconfirmed")


def test_a_withdrawal_that_lost_to_the_delivery_becomes_an_interrupt() -> None:
    drive = Drive()
    drive.admit(A)
    assert requests(drive.step(v.Cancel(1))) == [v.Withdraw(A)]
    assert requests(drive.deliver(A)) == [v.Interrupt(A)]
    drive.hear("execution.interrupted", reason="user")
    cancelled(drive, A, "confirmed")


def test_an_open_ask_is_rejected_without_a_message_and_nothing_else() -> None:
    drive = Drive()
    drive.run(A)
    drive.tool("msg_1")
    drive.ask("per_1", "msg_1")
    drive.ask("per_2", "msg_1", "call_2")
    out = drive.step(v.Cancel(1))
    assert {one.ask_id for one in of(out, v.WithdrawAsk)} == {"per_1", "per_2"}
    assert requests(out) == [v.Reply("ses_1", "per_1", "reject", go_on=False)]
    assert requests(drive.step(v.Replied("per_1", settled=True))) == []
    drive.hear("execution.interrupted", reason="shutdown")
    cancelled(drive, A, "confirmed")


def test_a_refusal_held_before_the_cancel_is_not_sent_beside_it() -> None:
    drive = Drive()
    drive.run(A)
    drive.ask("per_1", "msg_1")
    drive.ask("per_2", "msg_1", "call_2")
    drive.step(v.Answered("per_2", "reject"))
    assert len(requests(drive.step(v.Cancel(1)))) == 1
    assert requests(drive.step(v.Replied("per_1", settled=True))) == []


def test_an_ask_that_was_gone_already_leaves_the_interrupt() -> None:
    drive = Drive()
    drive.run(A)
    drive.ask("per_1", "msg_1")
    drive.step(v.Cancel(1))
    drive.hear("permission.replied", requestID="per_1", reply="once")
    out = drive.step(v.Replied("per_1", settled=True, found=False))
    assert requests(out) == [v.Interrupt(A)]


def test_an_ask_of_a_child_is_no_way_to_stop_the_turn() -> None:
    drive = Drive()
    drive.run(A)
    drive.hear("created", sessionID="ses_child", parentID="ses_1")
    drive.ask("per_1", "msg_c", session="ses_child")
    assert requests(drive.step(v.Cancel(1))) == [v.Interrupt(A)]


def test_a_turn_that_ended_by_itself_has_its_real_stop_reason() -> None:
    drive = Drive()
    drive.run(A)
    drive.step(v.Cancel(1))
    drive.ended("msg_1", "length")
    assert (drive.stop(A), drive.outcome(A).cancel) == (Stop.MAX_TOKENS, None)


def test_the_successor_that_the_late_interrupt_stops_is_told_so() -> None:
    drive = Drive()
    drive.run(A, 1)
    drive.admit(B, 2)
    drive.step(v.Cancel(1))
    drive.ended("msg_1")
    drive.deliver(B)
    drive.hear("execution.interrupted", reason="user")
    outcome = drive.outcome(B)
    assert (outcome.code, outcome.message) == (
        Code.ENDED_ELSEWHERE,
        "Stopped by the cancel of the turn before it.",
    )


def test_defect_cancel_marker_surviving() -> None:
    """Once its end was seen, a cancel is blamed for nothing and marks no later turn."""
    drive = Drive()
    drive.run(A, 1)
    drive.step(v.Cancel(1))
    drive.ended("msg_1")
    drive.hear("execution.succeeded")
    drive.run(B, 1)
    drive.hear("execution.interrupted", reason="user")
    outcome = drive.outcome(B)
    assert (outcome.stop, outcome.message) == (None, "Another front end stopped this turn.")


def test_one_of_two_that_share_cancels() -> None:
    drive = Drive()
    drive.admit(A, 1)
    drive.admit(B, 2)
    drive.deliver(A)
    drive.deliver(B)
    assert requests(drive.step(v.Cancel(2))) == [v.Interrupt(B)]
    drive.hear("execution.interrupted", reason="user")
    cancelled(drive, B, "confirmed")
    assert drive.code(A) == Code.ENDED_ELSEWHERE
    assert "shared its answer" in drive.outcome(A).message


def test_it_is_answered_in_time_when_the_server_says_nothing() -> None:
    drive = Drive()
    drive.run(A)
    drive.step(v.Cancel(1))
    drive.fire(f"cancel:{A}")
    cancelled(drive, A, "unconfirmed")
    assert drive.notices() == ["cancel_unconfirmed"]


# --- a cancel that outlives its turn --------------------------------------------------------


def overdue(drive: Drive) -> None:
    drive.step(v.Cancel(1))
    drive.fire(f"cancel:{A}")


def test_the_interrupt_is_sent_again_when_the_server_is_back_and_still_runs_it() -> None:
    drive = Drive()
    drive.run(A)
    drive.step(v.FeedLost())
    overdue(drive)
    assert of(drive.step(v.FeedBack()), v.TakeSnapshot) == [v.TakeSnapshot(frozenset({A}))]
    out = drive.snapshot(row("user", A), text_row("msg_1"), active=True)
    assert requests(out) == [v.Interrupt(A)]
    drive.hear("execution.interrupted", reason="user")
    drive.step(v.FeedLost())
    assert drive.step(v.FeedBack()) == []


def test_it_is_not_sent_again_when_somebody_else_runs() -> None:
    drive = Drive()
    drive.run(A)
    drive.step(v.FeedLost())
    overdue(drive)
    drive.step(v.FeedBack())
    rows = (row("user", A), text_row("msg_1", "a", "stop"), row("user", "msg_f"))
    assert requests(drive.snapshot(*rows, active=True)) == []
    drive.step(v.FeedLost())
    assert drive.step(v.FeedBack()) == []


@pytest.mark.parametrize("admit", [True, False])
def test_a_prompt_that_shows_up_after_its_cancel_was_answered_is_still_stopped(admit: bool) -> None:
    drive = Drive()
    drive.submit(A)
    if admit:
        drive.step(v.Posted(A, Admission.ADMITTED))
    overdue(drive)
    assert requests(drive.hear("inbox.enqueued", inboxID=A, item={"type": "user"})) == [
        v.Withdraw(A)
    ]
    assert requests(drive.step(v.Posted(A, Admission.ADMITTED))) == [v.Withdraw(A)]
    assert requests(drive.deliver(A)) == [v.Interrupt(A)]
    drive.hear("execution.interrupted", reason="user")
    assert requests(drive.deliver(A)) == []


def test_the_end_of_another_execution_does_not_forget_a_prompt_on_its_way() -> None:
    drive = Drive()
    drive.submit(A)
    overdue(drive)
    drive.hear("execution.succeeded")
    assert requests(drive.deliver(A)) == [v.Interrupt(A)]


def test_a_client_that_left_has_its_prompt_stopped_wherever_it_is() -> None:
    for phase, request in (("submitting", v.Withdraw(A)), ("running", v.Interrupt(A))):
        drive = Drive()
        drive.submit(A)
        if phase == "running":
            drive.deliver(A)
        assert requests(drive.step(v.Left(1, interrupt=True))) == [request]
    assert drive.step(v.Left(1, interrupt=True)) == []


# --- in a gap -------------------------------------------------------------------------------


def in_gap(drive: Drive) -> None:
    drive.step(v.FeedLost())
    assert v.Interrupt(A) not in drive.step(v.Cancel(1))
    drive.step(v.FeedBack())


def test_in_a_gap_a_running_turn_is_stopped_by_the_snapshot() -> None:
    drive = Drive()
    drive.run(A)
    in_gap(drive)
    out = drive.snapshot(row("user", A), text_row("msg_1"), active=True)
    assert requests(out) == [v.Interrupt(A)]


def test_in_a_gap_a_retry_is_still_the_turn() -> None:
    drive = Drive()
    drive.run(A)
    in_gap(drive)
    failed = text_row("msg_1", "a", "error", error={"type": "provider.transport"})
    rows = (row("user", A), failed, row("synthetic", "msg_s"), text_row("msg_2"))
    assert requests(drive.snapshot(*rows, active=True)) == [v.Interrupt(A)]


def test_in_a_gap_a_turn_behind_which_another_joined_is_not_stopped() -> None:
    drive = Drive()
    drive.run(A)
    in_gap(drive)
    rows = (row("user", A), text_row("msg_1", "a", "tool-calls"), row("user", "msg_f"))
    assert requests(drive.snapshot(*rows, active=True)) == []


def test_in_a_gap_an_end_in_the_buffer_comes_before_any_request() -> None:
    drive = Drive()
    drive.run(A)
    drive.started("msg_1")
    in_gap(drive)
    from_buffer = [_heard("session.step.ended", assistantMessageID="msg_1", finish="stop")]
    rows = (row("user", A), text_row("msg_1"))
    assert requests(drive.snapshot(*rows, active=True, buffer=from_buffer)) == []
    assert drive.stop(A) is Stop.END_TURN


def test_in_a_gap_the_withdrawal_that_was_delivered_waits_for_the_buffer() -> None:
    drive = Drive()
    drive.admit(A)
    drive.step(v.FeedLost())
    assert requests(drive.step(v.Cancel(1))) == [v.Withdraw(A)]
    drive.step(v.FeedBack())
    out = drive.snapshot(row("user", A), text_row("msg_1"), active=True)
    assert requests(out) == [v.Interrupt(A)]


def test_in_a_gap_what_is_in_the_inbox_is_withdrawn_again_and_nowhere_is_cancelled() -> None:
    drive = Drive()
    drive.admit(A)
    in_gap(drive)
    assert requests(drive.snapshot(inbox=[A], active=True)) == [v.Withdraw(A)]
    drive.snapshot()
    cancelled(drive, A, "confirmed")


def test_in_a_gap_a_rejection_on_its_way_is_repeated_without_an_interrupt() -> None:
    drive = Drive()
    drive.run(A)
    drive.ask("per_1", "msg_1")
    drive.step(v.Cancel(1))
    drive.gap()
    rows = (row("user", A), text_row("msg_1"))
    ask = PermissionAsk.model_validate(ask_data("per_1", "msg_1"))
    out = drive.snapshot(*rows, active=True, asks=(ask,))
    assert requests(out) == [v.Reply("ses_1", "per_1", "reject", go_on=False)]


def test_a_check_without_a_gap_sends_no_second_interrupt() -> None:
    drive = Drive()
    drive.run(A)
    drive.step(v.Cancel(1))
    assert requests(drive.snapshot(row("user", A), text_row("msg_1"), active=True)) == []


def _heard(kind: str, **data: object) -> Event:
    return event(kind, {"sessionID": "ses_1", **data})


def test_a_stop_that_did_not_arrive_is_looked_after_until_it_is_seen() -> None:
    drive = Drive()
    drive.run(A)
    drive.step(v.Cancel(1))
    drive.fire(f"cancel:{A}")
    assert drive.outcome(A).cancel == "unconfirmed"
    for _ in range(2):
        assert of(drive.fire("loose"), v.TakeSnapshot)
        out = drive.snapshot(row("user", A), active=True)
        assert of(out, v.Interrupt) == [v.Interrupt(A)]
        assert drive.core.owes_a_stop
    drive.hear("execution.interrupted", reason="user")
    assert not drive.core.owes_a_stop
    assert drive.fire("loose") == []


def test_a_turn_that_begins_and_is_stopped_in_the_buffer_is_stopped_once() -> None:
    drive = Drive()
    drive.admit(A)
    drive.step(v.FeedLost())
    drive.step(v.Cancel(1))
    drive.step(v.FeedBack())
    delivered = event("session.inbox.delivered", {"sessionID": "ses_1", "inboxID": A})
    out = drive.snapshot(row("user", A), active=True, buffer=[delivered])
    assert of(out, v.Interrupt) == [v.Interrupt(A)]


def test_a_cancel_that_outlived_its_turn_is_sent_once_for_a_delivery_in_the_buffer() -> None:
    drive = Drive()
    drive.admit(A)
    drive.step(v.FeedLost())
    drive.step(v.Cancel(1))
    drive.fire(f"cancel:{A}")
    drive.step(v.FeedBack())
    delivered = event("session.inbox.delivered", {"sessionID": "ses_1", "inboxID": A})
    out = drive.snapshot(row("user", A), active=True, buffer=[delivered])
    assert len(of(out, v.Interrupt)) == 1
    assert of(out, v.Withdraw) == []


def test_a_turn_that_runs_longer_than_allowed_is_stopped_and_fails_as_a_limit() -> None:
    drive = Drive()
    drive.run(A)
    assert of(drive.fire(f"longest:{A}"), v.Interrupt) == [v.Interrupt(A)]
    drive.hear("execution.interrupted", reason="user")
    assert drive.code(A) == Code.LIMIT
    drive.run(B)
    drive.ended("msg_2")
    assert drive.stop(B) is Stop.END_TURN
    assert drive.step(v.Fired(f"longest:{B}")) == []


def test_a_client_that_cancels_a_turn_in_overtime_is_answered_as_it_asked() -> None:
    drive = Drive()
    drive.run(A)
    drive.fire(f"longest:{A}")
    assert drive.step(v.Cancel(1)) == []
    drive.hear("execution.interrupted", reason="user")
    assert drive.stop(A) is Stop.CANCELLED
