"""`sessions`: one line for each, and who has it open."""

from __future__ import annotations

import pytest

from adapter.commands.sessions import screen
from adapter.daemon.admin.shapes import AttachmentState, SessionState, TurnState
from tests.unit.commands.test_status import client, state

RUNNING = TurnState(generation=1, phase="running", cancel="none", gaps=0)
WAITING = TurnState(generation=2, phase="waiting", cancel="none", gaps=0)


def session(name: str, *clients: int, **given: object) -> SessionState:
    attachments = tuple(
        AttachmentState(client=number, generation=10 + number) for number in clients
    )
    return SessionState.model_validate({"id": name, "attachments": attachments, **given})


def test_the_screen() -> None:
    shared = session("ses_1", 1, 2, directory="/work", turns=(RUNNING, WAITING))
    shown = state(
        client(1, name="acpx"), client(2), sessions=(shared, session("ses_22", 2, aside=True))
    )
    assert screen(shown) == (
        "SESSION  CLIENTS    TURNS  STATE             DIRECTORY\n"
        "ses_1    1 acpx, 2      2  running, waiting  /work\n"
        "ses_22   2              0  put aside         -\n"
    )


def test_none() -> None:
    assert screen(state()) == "No session is open.\n"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "idle"),
        ({"turns": (RUNNING,), "gap": True}, "without the feed"),
        ({"gap": True}, "idle"),
        ({"owes": True}, "not settled"),
    ],
)
def test_states(given: dict[str, object], said: str) -> None:
    line = screen(state(sessions=(session("ses_1", **given),))).splitlines()[1]
    assert said in line
