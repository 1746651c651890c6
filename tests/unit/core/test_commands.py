"""Turns of commands: known by their mark, whatever comes first; and those that a child runs."""

from __future__ import annotations

from typing import Any

import pytest

from adapter.core import values as v
from adapter.core.values import Stop
from contract.calls import mention
from contract.errors import Code
from tests.support.drive import CHILD, SESSION, Drive, event, of, row, text_row

TURN = "msg_acp_a"
ITEM = "msg_item"


def mark(turn_id: str = TURN) -> dict[str, Any]:
    """An inbox item with the mark of a turn."""
    return {"type": "user", "payload": {"text": "x", "agents": [mention(turn_id)]}}


def end_of_child(state: str = "completed") -> dict[str, Any]:
    """The item that tells of a child's end."""
    metadata = {"source": "subagent", "childID": CHILD, "state": state}
    return {"type": "synthetic", "payload": {"text": "x", "metadata": metadata}}


def command(turn_id: str = TURN, owner: int = 1) -> Drive:
    """A command whose POST is under way."""
    drive = Drive()
    drive.submit(turn_id, owner)
    drive.step(v.Recognised(turn_id, "command"))
    return drive


def taken(drive: Drive, **more: Any) -> list[v.Output]:
    return drive.step(v.Posted(TURN, v.Admission.ADMITTED, **more))


def enqueue(drive: Drive, item: dict[str, Any] | None = None) -> list[v.Output]:
    return drive.hear("inbox.enqueued", inboxID=ITEM, item=item or mark())


def answer(drive: Drive) -> None:
    drive.deliver(ITEM)
    drive.started("msg_1")
    drive.text("msg_1", "hello")
    drive.ended("msg_1")


def helped() -> Drive:
    """A command that a child carries out."""
    drive = command()
    made = {"sessionID": CHILD, "parentID": SESSION, "title": "sub"}
    drive.step(v.Heard(event("session.created", made)))
    hear_child(drive, "inbox.enqueued", inboxID="msg_c", item=mark())
    taken(drive)
    return drive


def hear_child(drive: Drive, kind: str, **data: Any) -> list[v.Output]:
    return drive.step(v.Heard(event(f"session.{kind}", {"sessionID": CHILD, **data})))


@pytest.mark.parametrize("first", ["event", "answer"])
def test_the_item_with_its_mark_becomes_the_turn(first: str) -> None:
    drive = command()
    for what in (enqueue, taken) if first == "event" else (taken, enqueue):
        what(drive)
    assert drive.core.turn_ids == (ITEM,)
    assert drive.core.turn(TURN) is drive.core.turn(ITEM)
    answer(drive)
    assert drive.stop(ITEM) is Stop.END_TURN
    assert drive.seen.texts["msg_1", "text"] == "hello"


def test_it_may_be_delivered_before_its_post_is_answered() -> None:
    drive = command()
    enqueue(drive)
    answer(drive)
    assert drive.stop(ITEM) is Stop.END_TURN
    assert taken(drive) == []


def test_an_item_with_another_mark_is_somebody_else() -> None:
    drive = command()
    taken(drive)
    enqueue(drive, mark("msg_acp_other"))
    drive.hear("inbox.enqueued", inboxID="msg_x", item={"type": "user", "payload": {"text": "x"}})
    assert drive.core.turn_ids == (TURN,)


def test_its_timers_go_with_it() -> None:
    drive = command()
    drive.step(v.Cancel(1))
    assert "cancel:msg_acp_a" in drive.timers
    assert of(enqueue(drive), v.Renamed) == [v.Renamed(TURN, ITEM)]
    assert f"cancel:{ITEM}" in drive.timers


def test_a_refused_command_was_not_taken() -> None:
    drive = command()
    drive.step(v.Posted(TURN, v.Admission.NOT_ADMITTED, "Agent not found: x"))
    assert drive.code(TURN) == Code.INTERNAL
    assert drive.outcome(TURN).admitted is False


def test_a_command_that_was_nowhere_to_be_found_was_not_taken_but_may_have_been_expanded() -> None:
    drive = command()
    drive.step(v.Posted(TURN, v.Admission.NOT_ADMITTED, "lost", probed=True))
    assert drive.outcome(TURN).admitted is False
    assert not drive.outcome(TURN).retry_safe


def test_one_that_was_heard_of_was_taken_whatever_the_search_said() -> None:
    drive = command()
    enqueue(drive)
    drive.step(v.Posted(TURN, v.Admission.NOT_ADMITTED, probed=True))
    answer(drive)
    assert drive.stop(ITEM) is Stop.END_TURN


def test_the_search_names_it() -> None:
    drive = command()
    taken(drive, probed=True, item_id=ITEM)
    assert drive.core.turn_ids == (ITEM,)
    assert "parked" in drive.timers


def test_a_snapshot_names_it_before_it_is_judged() -> None:
    drive = command()
    taken(drive)
    drive.gap()
    assert drive.core.anchors == {TURN}
    drive.snapshot(
        row("user", ITEM),
        text_row("msg_1", "hello", "stop"),
        named=((TURN, ITEM),),
    )
    assert drive.stop(ITEM) is Stop.END_TURN
    assert drive.seen.texts["msg_1", "text"] == "hello"


def test_one_whose_item_no_read_shows_is_unknown_in_the_end() -> None:
    drive = command()
    taken(drive)
    drive.fire("called")
    for _ in range(3):
        assert not drive.seen.outcomes
        drive.snapshot()
    assert drive.code(TURN) == Code.UNKNOWN_OUTCOME


def test_a_look_is_taken_when_neither_item_nor_child_comes() -> None:
    drive = command()
    taken(drive)
    assert of(drive.fire("called"), v.TakeSnapshot)


def test_a_cancel_before_it_is_known_withdraws_it_once_it_is() -> None:
    drive = command()
    taken(drive)
    assert not of(drive.step(v.Cancel(1)), v.Withdraw)
    assert of(enqueue(drive), v.Withdraw) == [v.Withdraw(ITEM)]
    drive.hear("inbox.cancelled", inboxID=ITEM)
    assert drive.stop(ITEM) is Stop.CANCELLED
    assert drive.outcome(ITEM).cancel == "confirmed"


def test_a_cancel_without_an_answer_is_answered_and_outlives_the_turn() -> None:
    drive = command()
    drive.step(v.Cancel(1))
    drive.step(v.Posted(TURN, v.Admission.UNCLEAR))
    assert drive.outcome(TURN).cancel == "unconfirmed"
    assert of(enqueue(drive), v.Withdraw) == [v.Withdraw(ITEM)]


# A child that carries a command out


def test_the_turn_waits_for_the_child_and_ends_with_what_is_said_about_it() -> None:
    drive = helped()
    assert drive.notices() == ["carried_out"]
    hear_child(drive, "execution.succeeded")
    assert not drive.seen.outcomes
    enqueue(drive, end_of_child())
    answer(drive)
    assert drive.stop(ITEM) is Stop.END_TURN
    assert drive.seen.texts["msg_1", "text"] == "hello"


def test_the_end_of_another_child_is_not_its() -> None:
    drive = helped()
    other = end_of_child()
    other["payload"]["metadata"]["childID"] = "ses_other"
    enqueue(drive, other)
    assert drive.core.turn_ids == (TURN,)


def test_the_child_asks_the_client_of_the_command() -> None:
    drive = helped()
    asked = drive.ask("per_1", "msg_c1", session=CHILD)
    assert [one.owner for one in of(asked, v.AskClient)] == [1]


def test_a_cancel_stops_the_child_and_takes_its_end_out_of_the_inbox() -> None:
    drive = helped()
    assert of(drive.step(v.Cancel(1)), v.StopChild) == [v.StopChild(CHILD)]
    hear_child(drive, "execution.interrupted", reason="user")
    assert of(enqueue(drive, end_of_child("cancelled")), v.Withdraw) == [v.Withdraw(ITEM)]
    assert of(drive.deliver(ITEM), v.Interrupt)
    drive.hear("execution.interrupted", reason="user")
    assert drive.stop(ITEM) is Stop.CANCELLED


def test_an_overdue_cancel_of_a_child_is_answered_and_its_end_is_nobodys_turn() -> None:
    drive = helped()
    drive.step(v.Cancel(1))
    drive.fire(f"cancel:{TURN}")
    assert drive.outcome(TURN).cancel == "unconfirmed"
    assert of(enqueue(drive, end_of_child("cancelled")), v.Withdraw) == [v.Withdraw(ITEM)]
    assert of(drive.deliver(ITEM), v.Interrupt)
    drive.hear("execution.interrupted", reason="user")
    drive.run("msg_acp_b")
    drive.started("msg_2")
    drive.ended("msg_2")
    assert drive.stop("msg_acp_b") is Stop.END_TURN


def test_a_child_that_runs_keeps_the_turn() -> None:
    drive = helped()
    drive.gap()
    for _ in range(4):
        drive.snapshot(busy=frozenset({CHILD}))
    assert not drive.seen.outcomes


def test_a_child_whose_end_is_nowhere_is_lost() -> None:
    drive = helped()
    drive.gap()
    for _ in range(3):
        drive.snapshot()
    assert drive.code(TURN) == Code.UNKNOWN_OUTCOME


def test_the_end_of_a_child_in_a_gap_is_found_in_the_rows() -> None:
    drive = helped()
    drive.gap()
    drive.snapshot(
        row("synthetic", ITEM, metadata=end_of_child()["payload"]["metadata"]),
        text_row("msg_1", "hello", "stop"),
        named=((CHILD, ITEM),),
    )
    assert drive.stop(ITEM) is Stop.END_TURN


def test_a_child_in_a_gap_is_found_by_its_mark() -> None:
    drive = command()
    taken(drive)
    drive.gap()
    drive.snapshot(workers=((TURN, CHILD),), busy=frozenset({CHILD}))
    assert drive.core.anchors == {CHILD}
    enqueue(drive, end_of_child())
    answer(drive)
    assert drive.stop(ITEM) is Stop.END_TURN


def test_a_restart_under_a_child_is_unknown() -> None:
    drive = helped()
    drive.gap()
    drive.snapshot(pid=2)
    assert drive.code(TURN) == Code.UNKNOWN_OUTCOME


def test_a_client_that_leaves_stops_the_child() -> None:
    drive = helped()
    assert of(drive.step(v.Left(1, interrupt=True)), v.StopChild) == [v.StopChild(CHILD)]
