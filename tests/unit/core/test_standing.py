"""What became of the last prompt of ours, by what the reads said."""

from __future__ import annotations

from typing import Any, Final

import pytest

from adapter.core.standing import Carrier, Reads, Standing, standing
from adapter.core.values import Stop
from contract.calls import mention
from contract.reads import AnyRow, InboxItem
from tests.support.drive import row, text_row
from tests.unit.core.test_reconcile import ABORTED, CAPPED, DROPPED, FILTERED, LOOPING, OPEN, idle

X: Final = "msg_acp_x"
USER: Final = row("user", X)
OLDER: Final = row("user", "msg_acp_w")
FOREIGN: Final = row("user", "msg_f")
ANSWER: Final = text_row("msg_a", "hi", "stop")
CUT: Final = text_row("msg_a", "hi", "length")


def item(message_id: str, **more: Any) -> InboxItem:
    return InboxItem.model_validate({"id": message_id, **more})


def found(
    *rows: AnyRow, inbox: tuple[InboxItem, ...] = (), active: bool = False
) -> Standing | None:
    return standing(Reads(inbox, active, rows))


@pytest.mark.parametrize(
    ("rows", "active", "state", "stop"),
    [
        ((USER, ANSWER, idle("succeeded")), False, "finished", Stop.END_TURN),
        ((USER, ANSWER), True, "finished", Stop.END_TURN),
        ((USER, CUT), False, "finished", Stop.MAX_TOKENS),
        ((USER, CAPPED), False, "finished", Stop.MAX_TURN_REQUESTS),
        ((USER, FILTERED), False, "finished", Stop.REFUSAL),
        ((USER, OPEN), True, "running", None),
        ((USER,), True, "running", None),
        ((USER, LOOPING), True, "running", None),
        ((USER, DROPPED), True, "running", None),
        ((USER, DROPPED), False, "failed", None),
        ((USER, idle("failed")), False, "failed", None),
        ((USER, OPEN, idle("interrupted")), False, "stopped", None),
        ((USER, ABORTED), False, "stopped", None),
        ((USER, OPEN), False, "lost", None),
        ((USER,), False, "lost", None),
        # A success that the server writes by itself proves nothing.
        ((USER, idle("succeeded")), False, "lost", None),
        ((OLDER, ANSWER, USER, OPEN), True, "running", None),
        ((USER, ANSWER, FOREIGN, text_row("msg_b")), True, "finished", Stop.END_TURN),
    ],
)
def test_a_delivered_prompt(
    rows: tuple[AnyRow, ...], active: bool, state: str, stop: Stop | None
) -> None:
    told = found(*rows, active=active)
    assert told is not None
    assert (told.message_id, told.state, told.stop) == (X, state, stop)
    assert told.sentence.endswith(".")
    assert told.final is (state != "lost")


@pytest.mark.parametrize(("active", "state"), [(True, "waiting"), (False, "parked")])
def test_a_prompt_that_waits_is_newer_than_any_row(active: bool, state: str) -> None:
    inbox = (item(X), item("msg_acp_y"), item("msg_f"))
    told = found(OLDER, ANSWER, inbox=inbox, active=active)
    assert told is not None
    assert (told.message_id, told.state) == ("msg_acp_y", state)
    assert told.final is active


def test_a_failure_says_why() -> None:
    told = found(USER, DROPPED)
    assert told is not None
    assert told.sentence == "The last prompt of this session failed: boom."


@pytest.mark.parametrize("rows", [(), (FOREIGN, ANSWER), (ANSWER, idle("succeeded"))])
def test_without_a_prompt_of_ours_there_is_nothing(rows: tuple[AnyRow, ...]) -> None:
    inbox = (item("msg_f"), item("msg_c", type="compaction"), item("msg_s", type="synthetic"))
    assert found(*rows, inbox=inbox) is None


def test_a_prompt_that_came_later_is_no_past() -> None:
    later = frozenset({"msg_acp_y", "msg_acp_z"})
    rows = (USER, ANSWER, row("user", "msg_acp_y"), text_row("msg_b"))
    told = standing(Reads((item("msg_acp_z"),), True, rows), later)
    assert told is not None
    assert (told.message_id, told.state) == (X, "finished")
    assert standing(Reads((), True, rows[2:]), later) is None


def test_a_command_is_known_by_its_mark_and_named_by_its_item() -> None:
    command = row("user", "msg_c", agents=[mention(X)])
    told = found(command, ANSWER)
    assert told is not None
    assert (told.message_id, told.turn_id, told.state) == ("msg_c", X, "finished")
    waiting = item("msg_c", payload={"agents": [mention(X)]})
    told = found(inbox=(waiting,), active=True)
    assert told is not None
    assert (told.message_id, told.turn_id, told.state) == ("msg_c", X, "waiting")
    assert standing(Reads((waiting,), True, (command,)), frozenset({X})) is None


# Compactions


def compaction(message_id: str = X, **more: Any) -> AnyRow:
    return row("compaction", message_id, **more)


def error(kind: str) -> dict[str, Any]:
    return {"status": "failed", "error": {"type": kind, "message": "boom"}}


@pytest.mark.parametrize(
    ("given", "active", "state", "stop", "says"),
    [
        ({"status": "completed"}, False, "finished", Stop.END_TURN, "summed up"),
        (error("compaction.unavailable"), False, "finished", Stop.END_TURN, "nothing to compact"),
        (error("compaction.failed"), False, "failed", None, "failed: boom"),
        (error("aborted"), False, "stopped", None, "was stopped"),
        ({"status": "running"}, True, "running", None, "still runs"),
        ({"status": "running"}, False, "lost", None, "Nothing proves"),
    ],
)
def test_a_compaction(
    given: dict[str, Any], active: bool, state: str, stop: Stop | None, says: str
) -> None:
    failed_before = (OLDER, DROPPED)
    told = found(*failed_before, compaction(**given), active=active)
    assert told is not None
    assert (told.message_id, told.state, told.stop) == (X, state, stop)
    assert says in told.sentence


@pytest.mark.parametrize(("active", "state"), [(True, "waiting"), (False, "parked")])
def test_a_compaction_that_waits(active: bool, state: str) -> None:
    told = found(OLDER, ANSWER, inbox=(item(X, type="compaction"),), active=active)
    assert told is not None
    assert (told.message_id, told.state) == (X, state)


def test_compactions_of_others_are_none_of_ours() -> None:
    told = found(USER, ANSWER, compaction("msg_c", **error("compaction.failed")))
    assert told is not None
    assert (told.message_id, told.state) == (X, "finished")


# Commands that a child carries out

CHILD: Final = "ses_c"
TELLS: Final = {"source": "subagent", "childID": CHILD}


@pytest.mark.parametrize(
    ("rows", "active", "state"),
    [
        ((ANSWER,), False, "finished"),
        ((OPEN,), True, "running"),
        ((OPEN, idle("interrupted")), False, "stopped"),
    ],
)
def test_the_end_of_a_child_is_the_prompt(
    rows: tuple[AnyRow, ...], active: bool, state: str
) -> None:
    end = row("synthetic", "msg_e", metadata=TELLS)
    told = standing(Reads((), active, (OLDER, CUT, end, *rows), {CHILD: X}))
    assert told is not None
    assert (told.message_id, told.turn_id, told.state) == ("msg_e", X, state)
    # A child that no command of ours made.
    told = standing(Reads((), active, (OLDER, CUT, end, *rows)))
    assert told is not None
    assert (told.message_id, told.stop) == ("msg_acp_w", Stop.MAX_TOKENS)


def test_the_end_of_a_child_may_wait() -> None:
    end = item("msg_e", type="synthetic", payload={"metadata": TELLS})
    carrier = Carrier(CHILD, X, 9, runs=False)
    told = standing(Reads((end,), True, (OLDER, CUT), {CHILD: X}, (carrier,)))
    assert told is not None
    assert (told.message_id, told.state) == ("msg_e", "waiting")


@pytest.mark.parametrize(("runs", "state"), [(True, "running"), (False, "lost")])
@pytest.mark.parametrize("before", [(), (row("user", "msg_acp_w", time={"created": 4}), ANSWER)])
def test_a_child_at_work_is_the_prompt(before: tuple[AnyRow, ...], runs: bool, state: str) -> None:
    carriers = (Carrier("ses_o", "msg_acp_o", 2, runs=True), Carrier(CHILD, X, 5, runs=runs))
    told = standing(Reads(rows=before, carriers=carriers))
    assert told is not None
    assert (told.message_id, told.turn_id, told.state) == (X, X, state)


def test_what_was_sent_after_a_child_began_is_newer() -> None:
    rows = (row("user", "msg_acp_w", time={"created": 6}), ANSWER)
    told = standing(Reads(rows=rows, carriers=(Carrier(CHILD, X, 5, runs=True),)))
    assert told is not None
    assert (told.message_id, told.state) == ("msg_acp_w", "finished")


def test_a_child_of_a_later_command_is_no_past() -> None:
    reads = Reads(rows=(OLDER, ANSWER), carriers=(Carrier(CHILD, X, 5, runs=True),))
    told = standing(reads, frozenset({X}))
    assert told is not None
    assert told.message_id == "msg_acp_w"
