"""The three forms of the log: one record is one line, and nothing in it can forge another."""

from __future__ import annotations

import io
import json
import logging
import os
from collections.abc import Iterator

import pytest

from adapter.logs import set_up

EVIL = "a\nopencode-acp: ERROR forged: b\x1b[2J\u2028c\u202e"
TURN = {"fields": {"SESSION_ID": "ses_a", "OUTCOME": "end_turn"}}


@pytest.fixture
def out() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    httpx = logging.getLogger("httpx").level
    yield io.StringIO()
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.getLogger("httpx").setLevel(httpx)


def fail() -> None:
    try:
        raise ValueError(EVIL)
    except ValueError:
        logging.getLogger("x").exception("it failed: %s", EVIL)


def test_text_is_one_line_and_a_traceback_is_marked(out: io.StringIO) -> None:
    set_up("info", "text", daemon=True, stream=out)
    logging.getLogger("x").info("hello %s", EVIL)
    fail()
    first, second, *trace = out.getvalue().splitlines()
    assert first.startswith("opencode-acp: INFO x: hello a\\nopencode-acp")
    assert second.startswith("opencode-acp: ERROR x: it failed")
    assert trace and all(line.startswith("  ") for line in trace)
    assert all(c.isprintable() for c in first)


def test_journal_has_a_priority_in_each_line_and_fields(out: io.StringIO) -> None:
    set_up("info", "journal", daemon=True, stream=out)
    logging.getLogger("x").info("done %s", EVIL, extra=TURN)
    fail()
    first, *rest = out.getvalue().splitlines()
    assert first.startswith("<6>x: done a\\n")
    assert first.endswith("SESSION_ID=ses_a OUTCOME=end_turn")
    assert rest and all(line.startswith("<3>") for line in rest)


def test_json_is_an_object_a_line(out: io.StringIO) -> None:
    set_up("info", "json", daemon=True, stream=out)
    logging.getLogger("x").info("done %s", EVIL, extra=TURN)
    fail()
    first, second = (json.loads(line) for line in out.getvalue().splitlines())
    assert (first["level"], first["logger"], first["SESSION_ID"]) == ("info", "x", "ses_a")
    assert first["message"] == f"done {EVIL}"
    assert "ValueError" in second["traceback"][-3]
    assert out.getvalue().isascii()


@pytest.mark.parametrize(("daemon", "begin"), [(True, "{"), (False, "opencode-acp: ")])
def test_by_itself_it_is_json_for_a_daemon_and_text_for_an_agent(
    out: io.StringIO, daemon: bool, begin: str
) -> None:
    set_up("info", "auto", daemon=daemon, stream=out)
    logging.getLogger("x").info("hello")
    assert out.getvalue().startswith(begin)


def test_where_the_journal_reads_it_is_for_the_journal(
    out: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, write = os.pipe()
    with os.fdopen(read) as reader, os.fdopen(write, "w") as pipe:
        status = os.fstat(write)
        monkeypatch.setenv("JOURNAL_STREAM", f"{status.st_dev}:{status.st_ino}")
        set_up("info", "auto", daemon=True, stream=pipe)
        logging.getLogger("x").info("hello")
        assert reader.readline() == "<6>x: hello\n"


def test_what_is_below_the_level_is_not_said(out: io.StringIO) -> None:
    set_up("warning", "text", daemon=False, stream=out)
    logging.getLogger("x").info("hello")
    logging.getLogger("httpx").info("a request")
    assert out.getvalue() == ""
