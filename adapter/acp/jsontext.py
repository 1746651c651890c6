"""JSON as a peer may send it: strict where two readers could differ, never deeper than we can walk.

Standard library only, since the first answer is made before anything heavy is imported.
"""

from __future__ import annotations

import json
import re

MAX_DEPTH = 128
"""Levels of nesting that are read. ACP needs about ten; the interpreter breaks near 1,000."""

MAX_VALUES = 65_536
"""Values in one text, as `crowded` counts them. A prompt of 256 blocks has about 2,000; each value
costs a walk on the loop and up to 150 bytes, so 32 MiB of them would stop every client for seconds.
"""

_SURROGATE = re.compile("[\ud800-\udfff]")


class NotJson(ValueError):
    """The text is not JSON that we accept; the message says why."""


def parse(line: bytes) -> object:
    """The value of one line of UTF-8 JSON. Lone surrogates come back as U+FFFD.

    Refused with `NotJson`: bad UTF-8, bad JSON, NaN and infinities, a key that occurs twice in an
    object, more than `MAX_DEPTH` levels or `MAX_VALUES` values.
    """
    if crowded(line, MAX_VALUES):
        raise NotJson(f"more than {MAX_VALUES:,} values")
    try:
        value: object = json.loads(
            line.decode("utf-8"),
            object_pairs_hook=_object,
            parse_constant=_refuse_constant,
            parse_float=_finite,
        )
    except RecursionError:
        raise NotJson("nested too deeply") from None
    except ValueError as error:
        raise NotJson(str(error)) from None
    if _deeper_than(MAX_DEPTH, value):
        raise NotJson("nested too deeply")
    # Only an escape can bring a surrogate into valid UTF-8.
    return repaired(value) if b"\\u" in line else value


def crowded(line: bytes, most: int) -> bool:
    """Whether `line` has more than `most` commas and opening brackets outside of its strings.

    So many bound the values of a JSON text, and are counted without building any. For bytes that
    are no JSON the answer says nothing.
    """
    if _marks(line) <= most:
        return False
    bare = line.replace(b"\\\\", b"").replace(b'\\"', b"")
    # A text has a value more than it has marks, and a key for each mark at most.
    if bare.count(b'"') > 2 * (2 * most + 1):
        return True
    return sum(map(_marks, bare.split(b'"')[::2])) > most


def _marks(text: bytes) -> int:
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def repaired(value: object) -> object:
    """A copy of a JSON value that every encoder takes.

    Lone surrogates become U+FFFD, NaN and infinities null. Raises RecursionError on a value that
    is nested about 1,000 deep; `parse` lets none through.
    """
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {repaired(key): repaired(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [repaired(item) for item in value]
    return value


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise NotJson("a key occurs twice in one object")
    return value


def _refuse_constant(name: str) -> object:
    raise NotJson(f"{name} is no JSON value")


def _finite(digits: str) -> float:
    value = float(digits)
    if value - value != 0:
        raise NotJson("a number is too large")
    return value


def _deeper_than(limit: int, value: object) -> bool:
    level = [value]
    for _ in range(limit):
        level = [
            child
            for parent in level
            if isinstance(parent, dict | list)
            for child in (parent.values() if isinstance(parent, dict) else parent)
        ]
        if not level:
            return False
    return True
