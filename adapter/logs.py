"""The log on standard error: text for people, JSON or journald's prefix for machines (O-17, X-16).

What came from a server or a client cannot forge a line: characters that a terminal or a reader of
lines obeys are escaped, and the lines of a traceback are marked as such. Nothing of a conversation
is quoted above the level `debug` (O-20), nor what a server complains of: of an exception only its
class is told, unless it is a sentence of our own (`contract.errors.Plain`). What a client calls
itself is told, and the setting for which one is refused.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Final, TextIO

from adapter.spool import Spool
from contract.characters import is_obeyed
from contract.errors import Plain

CHARACTERS: Final = 64 * 1024
"""Of a message; the rest is cut."""
CAUSES: Final = 8
"""Exceptions of one chain that are told."""

PRIORITIES: Final[Mapping[int, int]] = {
    logging.CRITICAL: 2,
    logging.ERROR: 3,
    logging.WARNING: 4,
    logging.INFO: 6,
    logging.DEBUG: 7,
}
"""sd-daemon(3), of the prefix `<N>`."""

STREAM_VARIABLE: Final = "JOURNAL_STREAM"
"""Device and inode of the standard error that leads to the journal, as `1:2` (systemd.exec(5))."""


@dataclass(frozen=True, slots=True)
class Line:
    """A record as it may be told. `seconds`: since the epoch; `trace`: escaped, a line each."""

    seconds: float
    level: int
    logger: str
    message: str
    fields: Mapping[str, str | int | float]
    trace: tuple[str, ...]


Format = Callable[[Line], str]


def set_up(level: str, log_format: str, *, daemon: bool, stream: TextIO | None = None) -> None:
    """Log to standard error from now on. `log_format`: auto, text, json or journal.

    `auto` is text for a terminal, journal where the journal reads, and else JSON for a daemon and
    text for an agent, whose client shows it to people. The level is the root logger's and may be
    changed there. An exception that ends the process is told as any other. A thread writes, so who
    ends the process by `os._exit` calls `logging.shutdown` first.
    """
    out = stream or sys.stderr
    chosen = log_format if log_format != "auto" else _automatic(out, os.environ, daemon=daemon)
    handler = Spool(out)
    handler.setFormatter(_Formatter({"json": as_json, "journal": as_journal}.get(chosen, as_text)))
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
        if isinstance(old, Spool):
            old.flush()
            old.close()
    root.addHandler(handler)
    root.setLevel(level.upper())
    # One line for each request tells nothing that the adapter's own lines do not.
    logging.getLogger("httpx").setLevel(logging.WARNING)
    sys.excepthook = _uncaught


def as_text(line: Line) -> str:
    """`opencode-acp: LEVEL name: message`, and a traceback in lines that begin with a space."""
    name = logging.getLevelName(line.level)
    head = f"opencode-acp: {name} {line.logger}: {escaped(line.message)}"
    return "\n".join([head, *(f"  {one}" for one in line.trace)])


def as_journal(line: Line) -> str:
    """The same under journald's prefix, with the fields of the record behind it."""
    prefix = f"<{PRIORITIES.get(line.level, 5)}>"
    told = "".join(f" {name}={_word(value)}" for name, value in line.fields.items())
    lines = [f"{line.logger}: {escaped(line.message)}{told}"]
    return "\n".join(prefix + one for one in (*lines, *(f"  {one}" for one in line.trace)))


def as_json(line: Line) -> str:
    """One object in one line, in ASCII: time, level, logger, message, fields, traceback."""
    told: dict[str, object] = {
        "time": datetime.fromtimestamp(line.seconds, UTC).isoformat(timespec="milliseconds"),
        "level": logging.getLevelName(line.level).lower(),
        "logger": line.logger,
        "message": line.message,
        **line.fields,
    }
    if line.trace:
        told["traceback"] = line.trace
    return json.dumps(told)


def escaped(text: str) -> str:
    """`text` in one line; what a terminal obeys as `\\xNN` or `\\uNNNN`."""
    if text.isprintable():
        return text
    return "".join(c.encode("unicode_escape").decode("ascii") if is_obeyed(c) else c for c in text)


def _word(value: str | float) -> str:
    """A value that ends where the next field begins."""
    word = str(value)
    plain = word.isascii() and word.isprintable() and not set(word) & set(' "\\')
    return word if plain and word else json.dumps(word)


class _Formatter(logging.Formatter):
    def __init__(self, form: Format) -> None:
        super().__init__()
        self._form = form

    def format(self, record: logging.LogRecord) -> str:
        # Who asks for `debug` asks for all of it.
        quoting = logging.getLogger().isEnabledFor(logging.DEBUG)
        fields = getattr(record, "fields", None)
        error = record.exc_info[1] if record.exc_info else None
        trace = _trace(error, quoting=quoting) if error is not None else ()
        return self._form(
            Line(
                record.created,
                record.levelno,
                record.name,
                _message(record, quoting=quoting),
                fields if isinstance(fields, dict) else {},
                tuple(escaped(one[:CHARACTERS]) for one in trace),
            )
        )


def _message(record: logging.LogRecord, *, quoting: bool) -> str:
    text = str(_argument(record.msg, quoting=quoting))
    try:
        match record.args:
            case tuple() as args if args:
                text %= tuple(_argument(one, quoting=quoting) for one in args)
            case Mapping() as named:
                text %= {key: _argument(one, quoting=quoting) for key, one in named.items()}
    except (LookupError, TypeError, ValueError):
        text += " (with values that do not fit)"
    if record.name == "asyncio" and not quoting:
        # Behind its first line come objects of ours, by their repr.
        text = text.partition("\n")[0]
    return text if len(text) <= CHARACTERS else f"{text[:CHARACTERS]} ... {len(text)} characters"


def _argument(value: object, *, quoting: bool) -> object:
    return said(value, quoting=quoting) if isinstance(value, BaseException) else value


def said(error: BaseException, *, quoting: bool) -> str:
    """What a log may say of an exception; all of it if `quoting`."""
    kind = type(error).__name__
    if quoting:
        return str(error) or kind
    if isinstance(error, Plain):
        return error.plain
    if isinstance(error, OSError) and error.errno is not None:
        return f"{kind}: {os.strerror(error.errno)}"
    return kind


def _trace(error: BaseException, *, quoting: bool, depth: int = 0) -> Iterator[str]:
    """Where it was raised, and first what led to it."""
    led = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if led is not None and depth < CAUSES:
        yield from _trace(led, quoting=quoting, depth=depth + 1)
        yield "which led to:"
    yield "Traceback (most recent call last):"
    for frame in traceback.format_tb(error.__traceback__):
        yield from frame.rstrip("\n").split("\n")
    kind, told = type(error).__name__, said(error, quoting=quoting)
    yield from (kind if told == kind else f"{kind}: {told}").split("\n")
    if isinstance(error, BaseExceptionGroup) and depth < CAUSES:
        for one in error.exceptions[:CAUSES]:
            yield "together with:"
            yield from _trace(one, quoting=quoting, depth=depth + 1)


def _uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if isinstance(error, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
        return
    logging.getLogger(__name__).critical("the process ends by a fault of its own", exc_info=error)


def _automatic(stream: TextIO, environ: Mapping[str, str], *, daemon: bool) -> str:
    if stream.isatty():
        return "text"
    if _is_journal(stream, environ):
        return "journal"
    return "json" if daemon else "text"


def _is_journal(stream: TextIO, environ: Mapping[str, str]) -> bool:
    try:
        status = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return False
    return environ.get(STREAM_VARIABLE) == f"{status.st_dev}:{status.st_ino}"
