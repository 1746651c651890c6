"""JSON of the server in both directions, lone surrogates included.

The server stores and echoes lone surrogates, which orjson refuses (OpenCode facts, later
experiments 16). They are read with json and become U+FFFD; outgoing ones become U+FFFD too, so
that an echo equals what was sent.
Integers over 64 bits, which orjson refuses as well, are written as they are.
Workaround "lone surrogates become U+FFFD".
"""

from __future__ import annotations

import json
import math
import re
from typing import Final, NoReturn

import orjson

_LONE: Final = re.compile("[\ud800-\udfff]")


class DecodeError(ValueError):
    """The bytes are no JSON, or JSON nested too deep to be an answer of the server."""


def clean(text: str) -> str:
    """`text` with every lone surrogate as U+FFFD."""
    return _LONE.sub("\ufffd", text)


def decode(data: bytes | str) -> object:
    """One JSON document. Raises `DecodeError`."""
    try:
        value: object = orjson.loads(data)
    except orjson.JSONDecodeError:
        value = _decode_loosely(data)
    return value


def encode(value: object) -> bytes:
    """A JSON body of dicts, lists, strings, numbers, booleans and None.

    NaN and infinities become null. TypeError for anything else is a fault of the caller.
    """
    try:
        return orjson.dumps(value)
    except orjson.JSONEncodeError:
        text = json.dumps(_repair(value), ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-8")


def _decode_loosely(data: bytes | str) -> object:
    text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
    try:
        return _repair(json.loads(text, parse_constant=_no_constant))
    except (ValueError, RecursionError) as error:
        raise DecodeError("not a JSON document") from error


def _no_constant(name: str) -> NoReturn:
    raise DecodeError(f"{name} is not JSON")


def _repair(value: object) -> object:
    match value:
        case str():
            return clean(value)
        case float():
            return value if math.isfinite(value) else None
        case list() | tuple():
            return [_repair(item) for item in value]
        case dict():
            return {_repair(key): _repair(item) for key, item in value.items()}
        case _:
            return value
