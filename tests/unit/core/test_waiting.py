"""Turns that wait: what they are told, when they are woken, and what does not fail them."""

from __future__ import annotations

from adapter.core import values as v
from adapter.core.values import Admission
from contract.errors import Code
from tests.support.drive import Drive, of, row, text_row

A, B = "msg_acp_a", "msg_acp_b"


def look(drive: Drive, *inbox: str, active: bool) -> list[v.Output]:
    return drive.step(v.InboxRead(inbox, active))


def two_waiting() -> Drive:
    drive = Drive()
    drive.admit(A, 1)
    drive.admit(B, 2)
    return drive


def test_what_is_ahead_is_told_once_for_every_change() -> None:
    drive = Drive()
    drive.admit(A)
    drive.fire(f"ahead:{A}")
    told = [look(drive, *inbox, active=True) for inbox in (["f", A], ["f", A], [A])]
    assert [len(of(out, v.Notice)) for out in told] == [1, 0, 1]
    assert "1 queued prompt" in of(told[0], v.Notice)[0].title


def test_what_moves_in_the_queue_is_looked_at_once_something_was_told() -> None:
    drive = Drive()
    drive.admit(A)
    drive.hear("inbox.enqueued", inboxID="msg_f", item={"type": "user"})
    assert "parked" not in drive.timers
    look(drive, "msg_f", A, active=True)
    for kind in ("enqueued", "delivered", "cancelled"):
        drive.timers.pop("parked", None)
        drive.hear(f"inbox.{kind}", inboxID="msg_g", item={"type": "user"})
        assert "parked" in drive.timers
        assert of(drive.fire("parked"), v.ReadInbox)


def test_parked_in_two_readings_the_oldest_is_woken_and_only_it() -> None:
    drive = two_waiting()
    assert of(look(drive, A, B, active=False), v.Wake) == []
    drive.fire("parked")
    assert of(look(drive, A, B, active=False), v.Wake) == [v.Wake(A, requeue=False)]


def test_an_item_that_was_woken_before_is_queued_anew_first() -> None:
    drive = two_waiting()
    for requeue in (False, True):
        look(drive, A, B, active=False)
        assert of(look(drive, A, B, active=False), v.Wake) == [v.Wake(A, requeue)]


def test_activity_between_two_readings_is_not_parked() -> None:
    drive = two_waiting()
    for active in (False, True, False):
        assert of(look(drive, A, B, active=active), v.Wake) == []


def test_absence_between_two_readings_is_not_parked() -> None:
    drive = Drive()
    drive.admit(A)
    for inbox in ([A], [], [A]):
        assert of(look(drive, *inbox, active=False), v.Wake) == []


def test_gone_from_the_inbox_the_reads_decide() -> None:
    drive = two_waiting()
    assert of(look(drive, B, active=True), v.TakeSnapshot) == [v.TakeSnapshot(frozenset({A, B}))]


def test_a_wake_that_came_too_late_leaves_it_to_the_reads() -> None:
    drive = two_waiting()
    assert drive.step(v.Woken(A, pending=True)) == []
    assert of(drive.step(v.Woken(A, pending=False)), v.TakeSnapshot)


def test_a_cancelled_turn_is_not_woken() -> None:
    drive = two_waiting()
    drive.step(v.Cancel(1))
    look(drive, A, B, active=False)
    assert of(look(drive, A, B, active=False), v.Wake) == [v.Wake(B, requeue=False)]


def test_the_watch_goes_on_as_long_as_a_turn_waits() -> None:
    drive = Drive()
    drive.admit(A)
    assert of(drive.fire("watch"), v.ReadInbox)
    assert "watch" in drive.timers
    drive.hear("inbox.cancelled", inboxID=A)
    assert drive.timers == {}


def test_a_probed_prompt_may_be_parked_and_is_looked_after_at_once() -> None:
    drive = Drive()
    drive.submit(A)
    drive.step(v.Posted(A, Admission.ADMITTED, probed=True))
    assert of(drive.fire("parked"), v.ReadInbox)


def test_a_foreign_failure_with_ours_queued_is_not_ours() -> None:
    drive = Drive()
    drive.admit(A)
    drive.hear("execution.started")
    drive.deliver("msg_f")
    drive.hear("execution.failed", error={"message": "boom"})
    drive.hear("execution.started")
    drive.deliver(A)
    drive.ended("msg_1")
    assert drive.code(A) == 0


def test_a_bad_agent_fails_the_oldest_once_it_is_out_of_the_inbox() -> None:
    drive = two_waiting()
    drive.hear("execution.started")
    out = drive.hear("execution.failed", error={"message": "Agent not found"})
    assert of(out, v.Withdraw) == [v.Withdraw(A)]
    assert set(drive.core.turn_ids) == {A, B}
    drive.hear("inbox.cancelled", inboxID=A)
    assert drive.code(A) == Code.INTERNAL
    assert set(drive.core.turn_ids) == {B}
    assert "Agent missing" in drive.outcome(A).message


def test_a_bad_agent_whose_withdrawal_fell_into_a_gap_keeps_its_error() -> None:
    drive = Drive()
    drive.admit(A)
    drive.hear("execution.started")
    drive.hear("execution.failed", error={"message": "Agent unknown"})
    drive.gap()
    drive.snapshot()
    assert "Agent unknown" in drive.outcome(A).message


def test_a_turn_admitted_after_the_reads_is_looked_after_soon() -> None:
    drive = Drive()
    drive.run(A, 1)
    drive.gap()
    judged = drive.core.admitted_ids
    drive.admit(B, 2)
    drive.snapshot(row("user", A), text_row("msg_1"), active=True, judged=judged)
    assert "parked" in drive.timers
    assert B in drive.core.turn_ids


def test_a_prompt_that_waited_long_enough_joins_the_running_turn() -> None:
    drive = Drive()
    drive.admit(A)
    assert of(drive.fire(f"patience:{A}"), v.Wake) == [v.Wake(A, requeue=False)]
    drive.deliver(A)
    assert drive.step(v.Fired(f"patience:{A}")) == []
