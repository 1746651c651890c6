"""`opencode-acp replay`: run the rules again on a flight that the log holds."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
from collections.abc import Iterator
from enum import Enum
from typing import Any, Final

from pydantic import BaseModel

from adapter.commands.screen import plain
from adapter.core import values as v
from adapter.core.offsets import OffsetTable
from adapter.core.session import SessionCore
from adapter.engine.heads import HeadError, Reader
from adapter.engine.recorder import MARK
from adapter.limits import LimitError, lowered
from contract.attach import OK, USAGE

MOST: Final = 64 * 1024 * 1024
"""Bytes of a log that are read: its end."""
WIDTH: Final = 120
"""Characters of a text that are shown."""
STANDARD_INPUT: Final = "-"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file",
        metavar="FILE",
        help="a log in any of its formats, - for standard input; its newest flight is taken",
    )
    parser.add_argument("--session", metavar="ID", help="the newest flight of this session")


def run(given: argparse.Namespace) -> int:
    """0; 2 with one sentence on standard error for a file without a flight that can be run."""
    try:
        flight = newest(_end_of(given.file), given.session)
        lines = list(replayed(flight))
    except OSError as error:
        return _refused(f"{given.file} cannot be read: {error.strerror}.")
    except HeadError as error:
        return _refused(f"{given.file} holds no flight that can be run. {error}")
    sys.stdout.write("".join(f"{plain(line)}\n" for line in lines))
    return OK


def _refused(sentence: str) -> int:
    sys.stderr.write(f"opencode-acp: {plain(sentence)}\n")
    return USAGE


def _end_of(path: str) -> str:
    if path == STANDARD_INPUT:
        return sys.stdin.buffer.read(MOST).decode("utf-8", "replace")
    with open(path, "rb") as file:
        if file.seekable():
            file.seek(max(0, file.seek(0, os.SEEK_END) - MOST))
        return file.read(MOST).decode("utf-8", "replace")


def newest(text: str, session: str | None = None) -> dict[str, Any]:
    """The last flight of a log, of that session if one is named. Raises HeadError."""
    for line in reversed(text.split("\n")):
        for told in (line, _message(line)):
            start = told.find(MARK)
            if start >= 0:
                flight = _flight(told[start:])
                if session in (None, flight["session"]):
                    return flight
                break
    of = "" if session is None else f" of the session {session}"
    raise HeadError(f"There is none{of} in it.")


def _message(line: str) -> str:
    """The message of a line of the JSON log; empty for another line."""
    start = line.find("{")
    if start < 0:
        return ""
    try:
        told = json.loads(line[start:])
    except (ValueError, RecursionError):
        return ""
    return str(told.get("message", "")) if isinstance(told, dict) else ""


def _flight(text: str) -> dict[str, Any]:
    try:
        told, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        raise HeadError("Its JSON is cut.") from None
    match told:
        case {"session": str(), "pid": int(), "limits": dict(), "given": list()}:
            return dict(told)
    raise HeadError("It is not whole.")


def replayed(flight: dict[str, Any]) -> Iterator[str]:
    """Each input with its milliseconds, behind it what the core put out, and how that compares.

    Raises HeadError.
    """
    try:
        limits = lowered(flight["limits"])
    except LimitError as error:
        raise HeadError(str(error)) from None
    core = SessionCore(flight["session"], OffsetTable(), flight["pid"], limits=limits)
    reader = Reader()
    yield f"The flight of {flight['session']}; its texts are stand-ins of their lengths."
    if flight.get("left_out"):
        yield f"{flight['left_out']} inputs before the newest were left out."
    ended: list[list[object]] = []
    for entry in flight["given"]:
        match entry:
            case [int(at), {"~cut": str(kind)}, *_]:
                yield f"{at:>8} ms  ({kind}: too long to be kept, and not run)"
                continue
            case [int(at), dict(told), int(pieces)] if pieces > 1:
                given, more = reader.input(told), f"  in {pieces} pieces"
            case [int(at), dict(told), *_]:
                given, more = reader.input(told), ""
            case _:
                raise HeadError("An entry of it is none.")
        yield f"{at:>8} ms  {shown(given)}{more}"
        for output in _stepped(core, given):
            yield f"{'':>11}  -> {shown(output)}"
            if isinstance(output, v.Settled):
                ended.append([output.outcome.message_id, output.outcome.code])
    expected = flight.get("ended")
    if expected:
        same = all(one in ended for one in expected)
        yield "It ended as it did." if same else "It did not end as it did when it was written."


def _stepped(core: SessionCore, given: v.Input) -> list[v.Output]:
    try:
        return core.step(given)
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError):
        raise HeadError(f"The core could not take this: {shown(given)}.") from None


def shown(value: object) -> str:
    """A value as one would write it, without fields that have their defaults."""
    match value:
        case str() if len(value) > 3 and value == value[0] * len(value):
            return f"<{len(value)} characters>"
        case str() if len(value) > WIDTH:
            return f"{value[:WIDTH]!r}..."
        case Enum():
            return str(value.value)
        case frozenset():
            return f"[{', '.join(sorted(map(shown, value)))}]"
        case tuple() | list():
            return f"[{', '.join(map(shown, value))}]"
        case BaseModel():
            fields = [(name, one.default) for name, one in type(value).model_fields.items()]
        case _ if dataclasses.is_dataclass(value):
            fields = [(one.name, one.default) for one in dataclasses.fields(value)]
        case _:
            return repr(value)
    told = ((name, getattr(value, name), default) for name, default in fields)
    inside = ", ".join(f"{name}={shown(one)}" for name, one, default in told if one != default)
    return f"{type(value).__name__}({inside})"
