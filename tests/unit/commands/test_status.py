"""`status` and the daemon that it asks."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from adapter.commands.parser import parser
from adapter.commands.status import screen
from adapter.daemon.admin.shapes import (
    Check,
    ClientState,
    FeedState,
    Readiness,
    ServerState,
    State,
)
from contract.version import VERSION
from tests.unit.daemon.admin.office import Office, office


def client(number: int, **given: object) -> ClientState:
    return ClientState.model_validate(
        {
            "number": number, "pid": 100 + number, "parent": 0, "uid": 0, "name": "", "version": "",
            "cwd": "", "seconds": 1, "turns": 0, "queue": 0, "holds": 0, "owed": 0, "bytes": 0,
            "calls": 0, "sessions": 0, **given,
        }
    )  # fmt: skip


def state(*clients: ClientState, **given: object) -> State:
    return State.model_validate(
        {
            "version": "0.1.0", "pid": 7, "state": "serving", "seconds": 3723.5,
            "server": ServerState(url="http://127.0.0.1:4096", version="2.0.15", pid=9),
            "feed": FeedState(connected=True, generation=2, losses=1),
            "tables": {"turns": 2}, "counted": {}, "clients": clients, "sessions": (), **given,
        }
    )  # fmt: skip


NAMES = ("daemon", "server", "auth", "contract", "feed")
READY = Readiness(ready=True, missing=(), checks={name: Check(ok=True) for name in NAMES})


def lacking(**checks: Check) -> Readiness:
    return Readiness(ready=False, missing=tuple(checks), checks={**READY.checks, **checks})


def test_the_screen() -> None:
    busy = client(1, parent=42, name="acpx 0.19.1", cwd="/work", turns=2, queue=1, bytes=4096)
    counted = {"prompts": 3, "divergences": 1}
    assert screen(state(busy, client(12), counted=counted), READY) == (
        "opencode-acp 0.1.0, process 7, serving for 1 h 2 min\n"
        "ready    yes\n"
        "server   http://127.0.0.1:4096: OpenCode 2.0.15, process 9\n"
        "feed     connected, lost 1 time\n"
        "load     2 clients, 0 sessions, 2 prompts in flight, 1 of them waiting\n"
        "counted  divergences 1, prompts 3\n"
        "\n"
        "NO  PID  NAME         TURNS  QUEUE  HOLDS  BYTES  DIRECTORY\n"
        " 1   42  acpx 0.19.1      2      1      0   4096  /work\n"
        "12  112  -                0      0      0      0  -\n"
    )


def test_a_server_that_was_never_seen() -> None:
    unseen = state(
        server=ServerState(url="http://127.0.0.1:1"),
        feed=FeedState(connected=False, generation=0, losses=0),
    )
    text = screen(unseen, None)
    assert "ready    the daemon does not say\n" in text
    assert "server   http://127.0.0.1:1: not seen yet\nfeed     not connected\n" in text


def test_a_server_that_does_not_answer_is_told_and_its_process_is_of_then() -> None:
    down = lacking(server=Check(ok=False, why="No."), auth=Check(ok=None, why="First."))
    text = screen(state(), down)
    assert "\nready    no\nmissing  server: No.\nserver " in text
    assert ": OpenCode 2.0.15, process 9 when it last answered\n" in text


def test_a_password_that_is_refused_is_told_beside_a_feed_that_lives() -> None:
    text = screen(state(), lacking(auth=Check(ok=False, why="Refused\x1b.")))
    assert "missing  auth: Refused" in text
    assert "\x1b" not in text
    assert "process 9\nfeed     connected" in text


@pytest.mark.parametrize(
    ("standing", "seconds", "turns", "told"),
    [
        ("draining", 17.2, 2, "draining: it waits for 2 turns, 18 s at most, and takes no client"),
        ("draining", 17.2, 0, "draining: it is about to be gone, and takes no client"),
        ("closed", None, 2, "closed: it is about to be gone, and takes no client"),
    ],
)
def test_one_that_ends(standing: str, seconds: float | None, turns: int, told: str) -> None:
    ending = state(state=standing, drain_seconds=seconds, tables={"turns": turns})
    assert screen(ending, READY).startswith(
        f"opencode-acp 0.1.0, process 7, {told}\n"
        "ready    yes\n"
        "ending   Wait for its end; if no service manager starts the next one, "
        "`opencode-acp serve` does.\n"
        "server   "
    )


def test_nothing_of_a_client_can_move_the_cursor() -> None:
    text = screen(state(client(1, name="\x1b[2J\nNO", cwd="/\x9b31m\r\u202e")), READY)
    assert text.count("\n") == len(text.splitlines()) == 8
    assert not {"\x1b", "\x9b", "\r", "\u202e"} & set(text)


async def said(place: Office, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    given = parser().parse_args([*arguments, "--admin-socket", str(place.path)])
    assert await asyncio.to_thread(given.run, given) == 0
    return capsys.readouterr().out


async def test_a_daemon_at_work_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with office(tmp_path) as place:
        caller = await place.home.client()
        session = await caller.new(tmp_path)
        await caller.prompt(session, "@@text 900 10@@")
        await caller.until_text(session, "w1 ")
        text = await said(place, capsys, "status")
        assert text.startswith(f"opencode-acp {VERSION}, process ")
        assert "\nready    yes\n" in text
        assert "load     1 client, 1 session, 1 prompt in flight\n" in text
        told = json.loads(await said(place, capsys, "status", "--json"))
        assert [one["turns"] for one in told["clients"]] == [1]
        assert f"{session}  1        " in await said(place, capsys, "sessions")
