"""`opencode-acp replay`: a flight is found in a log of each form; a file may hold anything."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from adapter.cli import main
from adapter.core import values as v
from adapter.core.offsets import OffsetTable
from adapter.core.session import SessionCore
from adapter.engine.recorder import MARK, Recorder, pace
from adapter.limits import DEFAULTS
from adapter.logs import set_up
from contract.attach import OK, USAGE
from tests.support.logs import log_stream

TURN: Final = "msg_acp_1"


def log_of(log_format: str, *sessions: str) -> str:
    """A log with the flights of these sessions, whose turn nobody followed to its end."""
    with log_stream() as out:
        set_up("info", log_format, daemon=True, stream=out)
        for session in sessions:
            offsets = OffsetTable()
            core = SessionCore(session, offsets, 7)
            recorder = Recorder(core, offsets, DEFAULTS, lambda: 0.0, pace(lambda: 0.0))
            for given in (v.Submit(TURN, 1), v.Posted(TURN, v.Admission.ADMITTED), v.LetGo()):
                recorder.step(given)
        return out.getvalue()


def replay(path: object, capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, str, str]:
    code = main(["replay", str(path), *more])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.parametrize("log_format", ["text", "json", "journal"])
def test_the_newest_flight_of_a_log_is_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], log_format: str
) -> None:
    file = tmp_path / "log"
    file.write_text(f"a line\n{log_of(log_format, 'ses_a', 'ses_b')}another line\n")
    code, out, err = replay(file, capsys)
    assert (code, err) == (OK, "")
    first, *inputs, last = out.splitlines()
    assert first == "The flight of ses_b; its texts are stand-ins of their lengths."
    assert inputs[0] == "       0 ms  Submit(turn_id='msg_acp_1', owner=1)"
    assert [line for line in inputs if "-> Settled(" in line and "code=-32050" in line]
    assert last == "It ended as it did."
    _, out, _ = replay(file, capsys, "--session", "ses_a")
    assert out.startswith("The flight of ses_a;")
    code, _, err = replay(file, capsys, "--session", "ses_c")
    assert (code, err.count("\n")) == (USAGE, 1)


def test_lines_may_have_what_journalctl_puts_before_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for log_format in ("text", "json"):
        file = tmp_path / log_format
        file.write_text(f"Dec 01 10:00:00 host opencode-acp[7]: {log_of(log_format, 'ses_a')}")
        assert replay(file, capsys)[0] == OK


def test_a_log_may_come_through_a_pipe(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = log_of("text", "ses_a").encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(log)))
    assert replay("-", capsys)[0] == OK


def flight(*given: object, **more: Any) -> str:
    told: dict[str, Any] = {"flight": 1, "session": "ses_a", "pid": 7, "limits": {}}
    return json.dumps({**told, "given": given, **more}, separators=(",", ":"))


EVENT: Final = {"~": "TextDelta", "session_id": "ses_a", "message_id": "msg_a", "ordinal": 0}
SUBMIT: Final = {"~": "Submit", "turn_id": TURN, "owner": 1}
BAD: Final = {
    "nothing": "",
    "other": "no flight\nhere",
    "cut": MARK,
    "no object": f"{MARK}7",
    "deep": MARK + '"given":' + "[" * 100_000,
    "number": MARK + "1" * 100_000,
    "no pid": flight(pid="7"),
    "no limits": flight(limits=[]),
    "a limit": flight(limits={"turn_asks": -1}),
    "limit of no name": flight(limits={"x": 1}),
    "no list": flight(given={}),
    "no entry": flight(7),
    "entry without time": flight([SUBMIT]),
    "no class": flight([0, {}]),
    "another class": flight([0, {"~": "os"}]),
    "a class of pydantic": flight([0, {"~": "BaseModel"}]),
    "a part": flight([0, {"~": "TextPart", "type": "text", "text": "x"}]),
    "an output": flight([0, {"~": "Disarm", "timer": "x"}]),
    "a function": flight([0, {"~": "parse"}]),
    "not whole": flight([0, {"~": "Submit"}]),
    "other types": flight([0, {"~": "Submit", "turn_id": [], "owner": {}}]),
    "unknown field": flight([0, {"~": "Heard", "event": {**EVENT, "ordinal": "x"}}]),
    "no event": flight([0, {"~": "Heard", "event": "x"}]),
    "long text": flight([0, {"~": "Posted", "message": {"~text": 2**40}}]),
    "many texts": flight(
        *[[0, {"~": "Posted", "turn_id": "a", "admission": "gone", "message": {"~text": 2**25}}]]
        * 9
    ),
    "deep head": flight([0, json.loads('{"~":"Heard","event":' * 900 + "1" + "}" * 900)]),
}


@pytest.mark.parametrize("content", BAD.values(), ids=BAD)
def test_what_is_no_flight_is_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str
) -> None:
    file = tmp_path / "log"
    file.write_text(content)
    code, out, err = replay(file, capsys)
    assert (code, out) == (USAGE, "")
    assert err.startswith(f"opencode-acp: {file} holds no flight that can be run. ")
    assert (err.count("\n"), err.endswith(".\n")) == (1, True)


def test_a_file_that_cannot_be_read_is_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in (tmp_path, tmp_path / "none"):
        code, out, err = replay(path, capsys)
        assert (code, out, err.count("\n")) == (USAGE, "", 1)
    (tmp_path / "bytes").write_bytes(bytes(range(256)) * 100)
    assert replay(tmp_path / "bytes", capsys)[0] == USAGE


def test_of_a_huge_log_the_end_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "log"
    with file.open("w") as out:
        out.seek(2**31)
        out.write("\n" + log_of("text", "ses_a"))
    assert replay(file, capsys)[0] == OK


def test_nothing_in_a_flight_reaches_the_terminal_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "log"
    evil = {"~": "Submit", "turn_id": "a\x1b[2J\u202e", "owner": 1}
    file.write_text(flight([0, evil], session="ses\x1b"))
    code, out, _ = replay(file, capsys)
    assert code == OK
    assert out.replace("\n", "").isprintable()


def test_an_input_that_fails_in_the_core_is_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> list[v.Output]:
        raise KeyError("x")

    monkeypatch.setattr(SessionCore, "step", fails)
    file = tmp_path / "log"
    file.write_text(flight([0, SUBMIT]))
    code, _, err = replay(file, capsys)
    assert code == USAGE
    assert "could not take" in err
