"""`opencode-acp replay`: run the core on a flight that the log holds."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from typing import Any, Final

from adapter.commands.screen import plain
from adapter.core.offsets import OffsetTable
from adapter.core.session import SessionCore
from adapter.engine.heads import HeadError, head, read
from adapter.engine.recorder import MARK
from contract.attach import OK, USAGE

ABOUT = "run the rules again on a flight that the log holds"

MOST: Final = 64 * 1024 * 1024
"""Bytes of a log that are read."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help="a log in any of its formats; its newest flight is taken")


def run(given: argparse.Namespace) -> int:
    """0; 2 with one sentence on standard error for a file without a flight that can be read."""
    try:
        with open(given.file, "rb") as file:
            text = file.read(MOST).decode("utf-8", "replace")
        lines = list(replayed(newest(text)))
    except OSError as error:
        return _refused(f"{given.file} cannot be read: {error.strerror}.")
    except HeadError as error:
        return _refused(f"{given.file} holds no flight that can be run: {error}")
    sys.stdout.write("".join(f"{plain(line)}\n" for line in lines))
    return OK


def _refused(sentence: str) -> int:
    sys.stderr.write(f"opencode-acp: {plain(sentence)}\n")
    return USAGE


def newest(text: str) -> dict[str, Any]:
    """The last flight of a log. Raises HeadError."""
    for line in reversed(text.split("\n")):
        for told in (line, _message(line)):
            start = told.find(MARK)
            if start >= 0:
                return _flight(told[start:])
    raise HeadError("there is none in it.")


def _message(line: str) -> str:
    """The message of a line of the JSON log; empty for another line."""
    if not line.startswith("{"):
        return ""
    try:
        told = json.loads(line)
    except (ValueError, RecursionError):
        return ""
    return str(told.get("message", "")) if isinstance(told, dict) else ""


def _flight(text: str) -> dict[str, Any]:
    try:
        told, _ = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        raise HeadError("its JSON is cut.") from None
    if not isinstance(told.get("given"), list) or not isinstance(told.get("session"), str):
        raise HeadError("it is not whole.")
    return dict(told)


def replayed(flight: dict[str, Any]) -> Iterator[str]:
    """Each input with its milliseconds, and behind it what the core put out."""
    pid = flight.get("pid")
    core = SessionCore(flight["session"], OffsetTable(), pid if isinstance(pid, int) else 0)
    if flight.get("left_out"):
        yield f"({flight['left_out']} inputs in the middle were left out)"
    for entry in flight["given"]:
        match entry:
            case [int(at), dict(told)]:
                yield f"{at:>8} ms  {json.dumps(told)}"
                try:
                    outputs = core.step(read(told))
                except (AttributeError, KeyError, TypeError, ValueError) as error:
                    raise HeadError(f"the core could not take an input ({error}).") from error
                for output in outputs:
                    shown = json.dumps(head(output))
                    yield f"{'':>11}  -> {shown}"
            case _:
                raise HeadError("an entry of it is none.")
