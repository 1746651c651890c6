"""Turns that are compactions: how they end, and those that several clients ask for."""

from __future__ import annotations

from typing import Any

import pytest

from adapter.core import values as v
from adapter.core.values import Stop
from contract.errors import Code
from tests.support.drive import Drive, of, row

TURN = "msg_acp_a"
THEIRS = "msg_theirs"
FAILED = {"type": "compaction.failed", "message": "Compaction produced no summary"}
ABORTED = {"type": "aborted", "message": "Compaction cancelled"}
UNAVAILABLE = {"type": "compaction.unavailable", "message": "Nothing to compact yet"}


def compact(
    drive: Drive | None = None, turn_id: str = TURN, owner: int = 1, item_id: str = ""
) -> Drive:
    """A compaction that waits in the inbox."""
    drive = drive or Drive()
    drive.submit(turn_id, owner)
    drive.step(v.Recognised(turn_id, "compaction"))
    drive.step(v.Posted(turn_id, v.Admission.ADMITTED, item_id=item_id or turn_id))
    return drive


def start(drive: Drive, item_id: str = TURN) -> Drive:
    drive.hear("inbox.enqueued", inboxID=item_id, item={"type": "compaction", "payload": {}})
    drive.deliver(item_id)
    drive.hear("compaction.started", reason="manual", inputID=item_id)
    return drive


def end(drive: Drive, error: dict[str, str] | None = None, item_id: str = TURN) -> list[v.Output]:
    if error is None:
        return drive.hear("compaction.ended", reason="manual", text="x")
    return drive.hear("compaction.failed", reason="manual", error=error, inputID=item_id)


def told(drive: Drive, owner: int = 1) -> list[str]:
    return [one.status for one in of(drive.said, v.Compaction) if one.owner == owner]


def shown(status: str, **more: Any) -> Any:
    return row("compaction", TURN, status=status, reason="manual", **more)


def test_it_ends_with_its_summary() -> None:
    drive = start(compact())
    drive.hear("execution.started")
    assert not drive.seen.outcomes
    end(drive)
    assert drive.stop(TURN) is Stop.END_TURN
    assert told(drive) == ["in_progress", "completed"]


def test_an_end_of_the_execution_is_not_its_end() -> None:
    drive = start(compact())
    assert of(drive.hear("execution.succeeded"), v.TakeSnapshot)
    assert not drive.seen.outcomes


def test_a_failure_is_the_servers() -> None:
    drive = start(compact())
    end(drive, FAILED)
    assert drive.code(TURN) == Code.INTERNAL
    assert "no summary" in drive.outcome(TURN).message
    assert drive.outcome(TURN).retry_safe
    assert told(drive) == ["in_progress", "failed"]


def test_nothing_to_sum_up_is_no_error() -> None:
    drive = start(compact())
    end(drive, UNAVAILABLE)
    assert drive.stop(TURN) is Stop.END_TURN
    assert drive.notices() == ["nothing_to_compact"]


def test_a_cancel_interrupts_it() -> None:
    drive = start(compact())
    assert of(drive.step(v.Cancel(1)), v.Interrupt)
    end(drive, ABORTED)
    assert drive.stop(TURN) is Stop.CANCELLED
    assert told(drive) == ["in_progress", "cancelled"]


def test_a_cancel_before_its_delivery_withdraws_it() -> None:
    drive = compact()
    assert of(drive.step(v.Cancel(1)), v.Withdraw) == [v.Withdraw(TURN)]
    drive.hear("inbox.cancelled", inboxID=TURN)
    assert drive.stop(TURN) is Stop.CANCELLED


def test_a_cancel_that_comes_too_late_for_that_stops_it() -> None:
    drive = compact()
    drive.step(v.Cancel(1))
    assert of(drive.deliver(TURN), v.Interrupt)


def test_an_interrupt_by_others_ends_it_elsewhere() -> None:
    drive = start(compact())
    end(drive, ABORTED)
    assert drive.code(TURN) == Code.ENDED_ELSEWHERE


@pytest.mark.parametrize("begun", [False, True])
def test_a_failure_of_another_one_is_not_its(begun: bool) -> None:
    drive = start(compact()) if begun else compact()
    end(drive, FAILED, THEIRS)
    assert not drive.seen.outcomes


def test_it_shares_nothing_with_the_prompt_behind_it() -> None:
    drive = start(compact())
    drive.admit("msg_acp_b", owner=2)
    end(drive)
    drive.deliver("msg_acp_b")
    drive.started("msg_1")
    drive.text("msg_1", "hello")
    drive.ended("msg_1")
    assert not drive.outcome("msg_acp_b").shared
    assert not drive.outcome(TURN).shared


def test_a_parked_one_is_woken() -> None:
    drive = compact()
    drive.hear("execution.interrupted", reason="user")
    for _ in range(2):
        drive.fire("parked")
        said = drive.step(v.InboxRead((TURN,), active=False))
    assert of(said, v.Wake) == [v.Wake(TURN, requeue=False)]


def test_one_that_waits_long_does_not_join_a_running_turn() -> None:
    assert not of(compact().fire(f"patience:{TURN}"), v.Wake)


# Gaps


@pytest.mark.parametrize(
    ("error", "stop", "code"),
    [
        (None, Stop.END_TURN, 0),
        (UNAVAILABLE, Stop.END_TURN, 0),
        (FAILED, None, Code.INTERNAL),
        (ABORTED, None, Code.ENDED_ELSEWHERE),
    ],
)
def test_its_row_proves_its_end(error: Any, stop: Stop | None, code: int) -> None:
    drive = compact()
    drive.gap()
    fields = {} if error is None else {"error": error}
    drive.snapshot(shown("completed" if error is None else "failed", **fields))
    assert (drive.stop(TURN), drive.code(TURN)) == (stop, code)
    assert len(told(drive)) == 1


def test_a_row_that_runs_keeps_it() -> None:
    drive = compact()
    drive.gap()
    drive.snapshot(shown("running"), active=True)
    assert told(drive) == ["in_progress"]
    end(drive)
    assert drive.stop(TURN) is Stop.END_TURN


def test_a_row_that_a_dead_server_left_is_unknown() -> None:
    drive = start(compact())
    drive.gap()
    drive.snapshot(shown("running"), pid=2)
    assert drive.code(TURN) == Code.UNKNOWN_OUTCOME
    assert told(drive) == ["in_progress", "failed"]


def test_one_that_runs_in_an_idle_session_is_lost_in_the_end() -> None:
    drive = start(compact())
    drive.gap()
    for _ in range(3):
        drive.snapshot(shown("running"))
    assert drive.code(TURN) == Code.UNKNOWN_OUTCOME


def test_one_that_is_nowhere_was_taken_out() -> None:
    drive = compact()
    drive.gap()
    drive.snapshot()
    assert drive.code(TURN) == Code.ENDED_ELSEWHERE


def test_a_cancel_in_a_gap_stops_the_one_that_runs() -> None:
    drive = start(compact())
    drive.gap()
    drive.step(v.Cancel(1))
    said = drive.snapshot(row("idle", "msg_i", outcome="succeeded"), shown("running"), active=True)
    assert of(said, v.Interrupt)


# One that stands for another


def test_the_one_that_somebody_else_asked_for_becomes_the_turns() -> None:
    drive = compact(item_id=THEIRS)
    assert drive.core.turn_ids == (THEIRS,)
    end(start(drive, THEIRS))
    assert drive.stop(THEIRS) is Stop.END_TURN


def test_a_cancel_leaves_it_to_somebody_else() -> None:
    drive = compact(item_id=THEIRS)
    said = drive.step(v.Cancel(1))
    assert not of(said, v.Withdraw) and not of(said, v.Interrupt)
    assert drive.stop(THEIRS) is Stop.CANCELLED
    assert drive.notices() == ["compaction_goes_on"]


def test_so_does_a_client_that_leaves() -> None:
    said = compact(item_id=THEIRS).step(v.Left(1, interrupt=True))
    assert not of(said, v.Withdraw) and not of(said, v.Interrupt)


def two() -> Drive:
    """The second turn of ours was told the item of the first."""
    return compact(compact(), "msg_acp_b", owner=2, item_id=TURN)


def test_two_turns_of_ours_end_with_the_one_item() -> None:
    drive = two()
    end(start(drive))
    assert (drive.stop(TURN), drive.stop("msg_acp_b")) == (Stop.END_TURN, Stop.END_TURN)


def test_both_are_told_what_their_one_item_waits_for() -> None:
    drive = two()
    drive.step(v.Fired("ahead:msg_acp_b"))
    drive.step(v.InboxRead((TURN,), active=True))
    assert [one.owner for one in of(drive.said, v.Notice)] == [1, 2]


def test_the_second_can_be_cancelled_without_the_first() -> None:
    drive = two()
    said = drive.step(v.Cancel(2))
    assert not of(said, v.Withdraw)
    assert drive.stop("msg_acp_b") is Stop.CANCELLED
    end(start(drive))
    assert drive.stop(TURN) is Stop.END_TURN


def test_the_cancel_of_the_first_ends_the_second_elsewhere() -> None:
    drive = two()
    drive.step(v.Cancel(1))
    drive.hear("inbox.cancelled", inboxID=TURN)
    assert drive.stop(TURN) is Stop.CANCELLED
    assert drive.code("msg_acp_b") == Code.ENDED_ELSEWHERE


def test_the_second_takes_over_what_the_first_leaves_running() -> None:
    drive = start(two())
    drive.step(v.Left(1, interrupt=False))
    assert drive.outcome(TURN).reason == "detached"
    assert drive.core.turn("msg_acp_b") is not None
    drive.hear("compaction.ended", reason="manual", text="x")
    assert drive.core.turn_ids == ()
