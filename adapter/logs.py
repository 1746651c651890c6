"""The log on standard error: text for people, JSON or journald's prefix for machines (O-17, X-16).

What came from a server or a client cannot forge a line: characters that a terminal or a reader of
lines obeys are escaped, and the lines of a traceback are marked as such.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import unicodedata
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Final, TextIO

Format = Callable[[logging.LogRecord], str]

OBEYED: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Categories of characters that are escaped."""

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


def set_up(level: str, log_format: str, *, daemon: bool, stream: TextIO | None = None) -> None:
    """Log to standard error from now on. `log_format`: auto, text, json or journal.

    `auto` is text for a terminal, journal where the journal reads, and else JSON for a daemon and
    text for an agent, whose client shows it to people.
    """
    out = stream or sys.stderr
    chosen = log_format if log_format != "auto" else _automatic(out, os.environ, daemon=daemon)
    handler = logging.StreamHandler(out)
    handler.setFormatter(Lines({"json": as_json, "journal": as_journal}.get(chosen, as_text)))
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level.upper())
    # One line for each request tells nothing that the adapter's own lines do not.
    logging.getLogger("httpx").setLevel(logging.WARNING)


class Lines(logging.Formatter):
    """Formats by a function."""

    def __init__(self, form: Format) -> None:
        super().__init__()
        self._form = form

    def format(self, record: logging.LogRecord) -> str:
        return self._form(record)


def as_text(record: logging.LogRecord) -> str:
    """`opencode-acp: LEVEL name: message`, and a traceback in lines that begin with a space."""
    head = f"opencode-acp: {record.levelname} {record.name}: {escaped(record.getMessage())}"
    return "\n".join([head, *(f"  {line}" for line in _traceback(record))])


def as_journal(record: logging.LogRecord) -> str:
    """The same under journald's prefix, with the fields of the record behind it."""
    prefix = f"<{PRIORITIES.get(record.levelno, 5)}>"
    told = "".join(f" {name}={escaped(value)}" for name, value in _fields(record).items())
    lines = [f"{record.name}: {escaped(record.getMessage())}{told}"]
    lines += [f"  {line}" for line in _traceback(record)]
    return "\n".join(prefix + line for line in lines)


def as_json(record: logging.LogRecord) -> str:
    """One object in one line, in ASCII: time, level, logger, message, fields, traceback."""
    told: dict[str, object] = {
        "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
        "level": record.levelname.lower(),
        "logger": record.name,
        "message": record.getMessage(),
        **_fields(record),
    }
    if trace := _traceback(record):
        told["traceback"] = trace
    return json.dumps(told)


def escaped(text: str) -> str:
    """`text` in one line; what a terminal obeys as `\\xNN` or `\\uNNNN`."""
    return "".join(
        c.encode("unicode_escape").decode("ascii") if unicodedata.category(c) in OBEYED else c
        for c in text
    )


def _fields(record: logging.LogRecord) -> Mapping[str, str]:
    """What a line says of its turn: `extra={"fields": {...}}`."""
    fields = getattr(record, "fields", None)
    return fields if isinstance(fields, dict) else {}


def _traceback(record: logging.LogRecord) -> list[str]:
    if not record.exc_info:
        return []
    text = logging.Formatter().formatException(record.exc_info)
    return [escaped(line) for line in text.split("\n")]


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
