"""Which descendants of a session are followed, and which one makes room for another."""

from __future__ import annotations

import pytest

from adapter.core import descendants
from adapter.core import values as v
from tests.support.drive import CHILD, SESSION, Drive, ask_data, event, of

TURN = "msg_acp_a"
ROOT = "msg_1"
BOUND = 8


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """So many, where there may be a thousand."""
    monkeypatch.setattr(descendants, "BOUND", BOUND)


@pytest.fixture
def drive() -> Drive:
    """A turn whose first child is one of many; room for none is left."""
    drive = Drive()
    drive.run(TURN)
    made(drive, CHILD)
    for number in range(BOUND - 1):
        made(drive, f"ses_c{number}")
    return drive


def made(drive: Drive, child: str, parent: str = SESSION) -> list[str]:
    """The children that are let go of for a new one."""
    data = {"sessionID": child, "parentID": parent, "title": child}
    out = drive.step(v.Heard(event("session.created", data)))
    return [one.child_id for one in of(out, v.Unfollow)]


def test_the_one_that_was_heard_least_lately_makes_room(drive: Drive) -> None:
    drive.step(v.Heard(event("session.execution.started", {"sessionID": CHILD})))
    assert made(drive, "ses_new") == ["ses_c0"]
    assert made(drive, "ses_newer") == ["ses_c1"]
    assert len(drive.core.children) == BOUND
    assert {CHILD, "ses_new", "ses_newer"} <= drive.core.children


def test_one_that_asks_stays(drive: Drive) -> None:
    drive.step(v.Heard(event("permission.asked", ask_data("per_1", None, session=CHILD))))
    for number in range(BOUND):
        assert CHILD not in made(drive, f"ses_new_{number}")
    assert CHILD in drive.core.children


def test_one_that_works_for_a_call_stays(drive: Drive) -> None:
    drive.tool(ROOT, "call_sub", "subagent")
    at = {"assistantMessageID": ROOT, "id": "call_sub"}
    drive.hear("tool.progress", **at, metadata={"sessionID": CHILD, "status": "running"})
    for number in range(BOUND):
        made(drive, f"ses_new_{number}")
    assert CHILD in drive.core.children


def test_without_room_the_new_one_is_not_followed() -> None:
    drive = Drive()
    drive.run(TURN)
    for number in range(BOUND):
        child = f"ses_c{number}"
        made(drive, child)
        drive.tool(ROOT, f"call_{number}", "subagent")
        at = {"assistantMessageID": ROOT, "id": f"call_{number}"}
        drive.hear("tool.progress", **at, metadata={"sessionID": child, "status": "running"})
    assert made(drive, "ses_new") == ["ses_new"]
    assert len(drive.core.children) == BOUND


def test_the_child_of_one_that_was_let_go_of_is_not_followed(drive: Drive) -> None:
    assert made(drive, "ses_new") == [CHILD]
    assert made(drive, "ses_grandchild", CHILD) == ["ses_grandchild"]
    assert "ses_grandchild" not in drive.core.children
