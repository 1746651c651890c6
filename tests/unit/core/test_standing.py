"""What became of the last prompt of ours, by what the reads said."""

from __future__ import annotations

from typing import Any, Final

import pytest

from adapter.core.standing import Standing, standing
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
    return standing(inbox, active, rows)


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
    inbox = (item("msg_f"), item("msg_acp_c", type="compaction"))
    assert found(*rows, inbox=inbox) is None


def test_a_prompt_that_came_later_is_no_past() -> None:
    later = frozenset({"msg_acp_y", "msg_acp_z"})
    rows = (USER, ANSWER, row("user", "msg_acp_y"), text_row("msg_b"))
    told = standing((item("msg_acp_z"),), True, rows, later)
    assert told is not None
    assert (told.message_id, told.state) == (X, "finished")
    assert standing((), True, rows[2:], later) is None


def test_a_command_is_known_by_its_mark() -> None:
    command = row("user", "msg_c", agents=[mention(X)])
    told = found(command, ANSWER)
    assert told is not None
    assert (told.message_id, told.state) == (X, "finished")
    waiting = item("msg_c", payload={"agents": [mention(X)]})
    told = found(inbox=(waiting,), active=True)
    assert told is not None
    assert (told.message_id, told.state) == (X, "waiting")
