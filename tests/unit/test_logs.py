"""The three forms of the log: one record is one line, and nothing in it can forge another."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Iterator

import pytest
from pydantic import TypeAdapter

from adapter.logs import set_up
from adapter.upstream.errors import Ambiguous, Refused, Unreachable
from contract.errors import AcpError, Code
from tests.support.logs import Told, log_stream

EVIL = "a\nopencode-acp: ERROR forged: b\x1b[2J\u2028c\u202e"
TURN = {"fields": {"SESSION_ID": "ses_a", "OUTCOME": "end_turn"}}


@pytest.fixture
def out() -> Iterator[Told]:
    with log_stream() as stream:
        yield stream


def fail() -> None:
    try:
        raise ValueError(EVIL)
    except ValueError:
        logging.getLogger("x").exception("it failed: %s", EVIL)


def test_text_is_one_line_and_a_traceback_is_marked(out: Told) -> None:
    set_up("info", "text", daemon=True, stream=out)
    logging.getLogger("x").info("hello %s", EVIL)
    fail()
    first, second, *trace = out.getvalue().splitlines()
    assert first.startswith("opencode-acp: INFO x: hello a\\nopencode-acp")
    assert second.startswith("opencode-acp: ERROR x: it failed")
    assert trace and all(line.startswith("  ") for line in trace)
    assert all(c.isprintable() for c in first)


def test_journal_has_a_priority_in_each_line_and_fields(out: Told) -> None:
    set_up("info", "journal", daemon=True, stream=out)
    logging.getLogger("x").info("done %s", EVIL, extra=TURN)
    fail()
    first, *rest = out.getvalue().splitlines()
    assert first.startswith("<6>x: done a\\n")
    assert first.endswith("SESSION_ID=ses_a OUTCOME=end_turn")
    assert rest and all(line.startswith("<3>") for line in rest)


def test_json_is_an_object_a_line(out: Told) -> None:
    set_up("info", "json", daemon=True, stream=out)
    logging.getLogger("x").info("done %s", EVIL, extra=TURN)
    fail()
    first, second = (json.loads(line) for line in out.getvalue().splitlines())
    assert (first["level"], first["logger"], first["SESSION_ID"]) == ("info", "x", "ses_a")
    assert first["message"] == f"done {EVIL}"
    assert second["traceback"][-1] == "ValueError"
    assert out.getvalue().isascii()


@pytest.mark.parametrize(("daemon", "begin"), [(True, "{"), (False, "opencode-acp: ")])
def test_by_itself_it_is_json_for_a_daemon_and_text_for_an_agent(
    out: Told, daemon: bool, begin: str
) -> None:
    set_up("info", "auto", daemon=daemon, stream=out)
    logging.getLogger("x").info("hello")
    assert out.getvalue().startswith(begin)


def test_where_the_journal_reads_it_is_for_the_journal(
    out: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, write = os.pipe()
    with os.fdopen(read) as reader, os.fdopen(write, "w") as pipe:
        status = os.fstat(write)
        monkeypatch.setenv("JOURNAL_STREAM", f"{status.st_dev}:{status.st_ino}")
        set_up("info", "auto", daemon=True, stream=pipe)
        logging.getLogger("x").info("hello")
        assert reader.readline() == "<6>x: hello\n"


def test_what_is_below_the_level_is_not_said(out: Told) -> None:
    set_up("warning", "text", daemon=False, stream=out)
    logging.getLogger("x").info("hello")
    logging.getLogger("httpx").info("a request")
    assert out.getvalue() == ""


WORDS = "the user's own words"


def failures() -> Iterator[BaseException]:
    """Faults of all kinds whose texts quote a prompt."""
    for error in (
        ValueError(WORDS),
        KeyError(WORDS),
        FileNotFoundError(2, WORDS, WORDS),
        UnicodeDecodeError("utf-8", WORDS.encode(), 0, 1, WORDS),
        ExceptionGroup(WORDS, [ValueError(WORDS), TypeError(WORDS)]),
        Refused(400, "InvalidRequestError", WORDS),
        Refused(400, WORDS, WORDS),
        Ambiguous(WORDS, 500),
        AcpError(Code.INTERNAL, WORDS),
    ):
        yield error
    try:
        TypeAdapter(int).validate_python(WORDS)
    except ValueError as error:
        yield error


@pytest.mark.parametrize("log_format", ["text", "json", "journal"])
@pytest.mark.parametrize("error", list(failures()), ids=lambda one: type(one).__name__)
def test_what_an_exception_quotes_is_told_at_debug_alone(
    out: Told, log_format: str, error: BaseException
) -> None:
    set_up("info", log_format, daemon=True, stream=out)
    logger = logging.getLogger("x")

    def tell() -> str:
        out.clear()
        logger.warning("it failed: %s", error)
        logger.warning("%(what)s failed", {"what": error})
        logger.warning(error)
        try:
            try:
                raise error
            except BaseException as cause:
                raise RuntimeError(WORDS) from cause
        except RuntimeError:
            logger.exception("it failed")
        return out.getvalue()

    told = tell()
    assert WORDS not in told
    assert "RuntimeError" in told
    assert type(error).__name__ in told
    assert "which led to:" in told
    assert "test_logs.py" in told
    # The level of a daemon may be changed while it runs.
    logging.getLogger().setLevel("DEBUG")
    assert WORDS in tell().replace("\\'", "'")


def test_a_sentence_of_ours_is_told(out: Told) -> None:
    set_up("info", "text", daemon=True, stream=out)
    for error in (Unreachable("It cannot be reached."), Refused(409, "BusyError", WORDS)):
        logging.getLogger("x").warning("it failed: %s", error)
    first, second = out.getvalue().splitlines()
    assert first.endswith("it failed: It cannot be reached.")
    assert second.endswith("it failed: The OpenCode server refused the request (409 BusyError).")


def test_a_fault_that_ends_the_process_is_a_line_as_any_other(out: Told) -> None:
    set_up("info", "json", daemon=True, stream=out)
    error = ValueError(WORDS)
    sys.excepthook(type(error), error, None)
    told = json.loads(out.getvalue())
    assert (told["level"], told["traceback"][-1]) == ("critical", "ValueError")
    assert WORDS not in out.getvalue()


def test_what_asyncio_says_of_objects_is_left_out(out: Told) -> None:
    set_up("info", "text", daemon=True, stream=out)
    logging.getLogger("asyncio").error(f"a task was not looked after\nfuture: <{WORDS}>")
    assert out.getvalue() == "opencode-acp: ERROR asyncio: a task was not looked after\n"


def test_a_field_cannot_forge_another(out: Told) -> None:
    set_up("info", "journal", daemon=True, stream=out)
    fields = {"SESSION_ID": 'a OUTCOME="x', "OUTCOME": ""}
    logging.getLogger("x").info("done", extra={"fields": fields})
    assert out.getvalue() == '<6>x: done SESSION_ID="a OUTCOME=\\"x" OUTCOME=""\n'


def test_a_line_is_bounded_and_one_that_does_not_fit_is_told_all_the_same(
    out: Told,
) -> None:
    set_up("info", "text", daemon=True, stream=out)
    logging.getLogger("x").info("%s", "a" * 1_000_000)
    told = "%s and %s"
    logging.getLogger("x").info(told, WORDS)
    first, second = out.getvalue().splitlines()
    assert len(first) < 70_000
    assert second.endswith("%s and %s (with values that do not fit)")
