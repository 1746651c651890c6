"""Compactions under turns, told to their clients once."""

from __future__ import annotations

from typing import Any

import pytest

from adapter.core import values as v
from adapter.core.values import Stop
from contract.errors import Code
from tests.support.drive import Drive, event, of, row, text_row

TURN = "msg_acp_a"
ERROR = {"type": "compaction.failed", "message": "no summary"}


def running() -> Drive:
    drive = Drive()
    drive.run(TURN)
    return drive


def told(drive: Drive, owner: int = 1) -> list[str]:
    return [one.status for one in of(drive.said, v.Compaction) if one.owner == owner]


def shown(status: str, reason: str = "auto", row_id: str = "msg_row", **more: Any) -> Any:
    return row("compaction", row_id, status=status, reason=reason, **more)


def test_an_automatic_one_is_told_and_the_turn_goes_on() -> None:
    drive = running()
    drive.hear("compaction.started", reason="auto")
    drive.hear("compaction.ended", reason="auto", text="x")
    drive.hear("compaction.started", reason="auto")
    drive.hear("compaction.ended", reason="auto", text="x")
    assert told(drive) == ["in_progress", "completed"] * 2
    ids = [one.compaction_id for one in of(drive.said, v.Compaction)]
    assert ids[0] == ids[1] != ids[2] == ids[3]
    assert not drive.seen.outcomes


def test_a_failed_one_ends_the_turn_by_its_execution() -> None:
    drive = running()
    drive.hear("compaction.started", reason="auto")
    drive.hear("compaction.failed", reason="auto", error=ERROR)
    assert not drive.seen.outcomes
    drive.hear("execution.failed", error=ERROR)
    assert drive.code(TURN) == Code.INTERNAL
    assert told(drive) == ["in_progress", "failed"]


def test_one_that_somebody_asked_for_carries_its_item() -> None:
    drive = running()
    drive.hear("compaction.started", reason="manual", inputID="msg_x")
    drive.hear("compaction.failed", reason="manual", inputID="msg_x", error=ERROR)
    assert {one.compaction_id for one in of(drive.said, v.Compaction)} == {"msg_x"}
    drive.started("msg_1")
    drive.ended("msg_1")
    assert drive.stop(TURN) is Stop.END_TURN


def test_nobody_is_told_without_a_turn_that_runs() -> None:
    drive = Drive()
    drive.admit(TURN)
    drive.hear("compaction.started", reason="auto")
    drive.hear("compaction.ended", reason="auto", text="x")
    assert told(drive) == []


def test_every_client_that_shares_the_answer_is_told() -> None:
    drive = running()
    drive.admit("msg_acp_b", owner=2)
    drive.deliver("msg_acp_b")
    drive.hear("compaction.started", reason="auto")
    drive.hear("compaction.ended", reason="auto", text="x")
    assert told(drive) == told(drive, owner=2) == ["in_progress", "completed"]


def test_what_a_gap_hid_is_told_by_the_rows() -> None:
    drive = running()
    drive.hear("compaction.started", reason="auto")
    drive.gap()
    drive.snapshot(
        row("user", TURN),
        shown("completed"),
        text_row("msg_1", "a", "tool-calls"),
        shown("running", row_id="msg_row2"),
        active=True,
    )
    assert told(drive) == ["in_progress", "completed", "in_progress"]
    drive.hear("compaction.ended", reason="auto", text="x")
    assert told(drive) == ["in_progress", "completed"] * 2


def test_what_was_told_before_a_gap_is_not_told_again() -> None:
    drive = running()
    drive.hear("compaction.started", reason="auto")
    drive.hear("compaction.ended", reason="auto", text="x")
    drive.gap()
    rows = [shown("completed"), shown("failed", row_id="msg_row2", error=ERROR)]
    drive.snapshot(row("user", TURN), *rows, active=True)
    drive.gap()
    drive.snapshot(row("user", TURN), *rows, active=True)
    assert told(drive) == ["in_progress", "completed", "failed"]


def test_rows_and_buffer_do_not_tell_it_twice() -> None:
    drive = running()
    drive.gap()
    data = {"sessionID": drive.session, "reason": "auto"}
    drive.snapshot(
        row("user", TURN),
        shown("completed"),
        active=True,
        buffer=[
            event("session.compaction.started", data),
            event("session.compaction.ended", {**data, "text": "x"}),
        ],
    )
    assert told(drive) == ["in_progress", "completed"]


def test_a_check_without_a_gap_tells_nothing() -> None:
    drive = running()
    drive.snapshot(row("user", TURN), shown("completed"), active=True)
    assert told(drive) == []


@pytest.mark.parametrize(("cancelled", "status"), [(True, "cancelled"), (False, "failed")])
def test_one_whose_end_nobody_heard_is_closed_with_the_turn(cancelled: bool, status: str) -> None:
    drive = running()
    drive.hear("compaction.started", reason="auto")
    if cancelled:
        drive.step(v.Cancel(1))
        drive.fire(f"cancel:{TURN}")
    else:
        drive.hear("execution.failed", error=ERROR)
    assert told(drive) == ["in_progress", status]
