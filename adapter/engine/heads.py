"""What the core was given, without its texts: as JSON, and back.

A head keeps the class and the fields of a value: ids, numbers and words of the vocabulary. Any
other text is kept as its length, and of a JSON object nothing. A stand-in of the same length takes
the text's place in what is read back, so that offsets and prefixes hold. Pure.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Mapping
from enum import Enum
from types import ModuleType
from typing import Any, Final

from pydantic import BaseModel

from adapter.core.values import inputs, outcome
from contract import calls, events, reads, shapes

Json = Any

CLASS: Final = "~"
ENUM: Final = "~enum"
SET: Final = "~set"
TEXT: Final = "~text"
OBJECT: Final = "~object"

ROOMS: Final[tuple[ModuleType, ...]] = (inputs, outcome, events, reads, shapes, calls)
ITEMS: Final = 256
"""Of one collection; the rest is left out."""
DEPTH: Final = 12

WORDS: Final = frozenset(
    {
        "type",
        "status",
        "finish",
        "reason",
        "state",
        "kind",
        "call",
        "decision",
        "why",
        "fate",
        "action",
        "timer",
        "mode",
    }
)
"""Fields that hold a word of the server's vocabulary or of ours."""
WORD: Final = re.compile(r"[\w.:/-]{0,160}")
IDENT: Final = re.compile(r"(ses|msg|per|frm|evt|prt|inb|call|tool)_[\w-]{1,160}")


class HeadError(ValueError):
    """What was read is no head. `str()` is one sentence."""


def head(value: object, field: str = "", depth: int = 0) -> Json:
    """The head of an input, or of a part of one."""
    match value:
        case None | bool() | int() | float():
            return value
        case Enum():
            return {ENUM: f"{type(value).__name__}.{value.name}"}
        case str():
            return value if _is_word(value, field) else {TEXT: len(value)}
        case tuple() | list():
            return [head(one, field, depth + 1) for one in value[:ITEMS]]
        case frozenset() | set():
            return {SET: [head(one, field, depth + 1) for one in sorted(value, key=str)[:ITEMS]]}
        case Mapping():
            return {OBJECT: len(value)}
    names = _fields(value)
    if names is None or depth > DEPTH:
        return {TEXT: 0}
    kind = type(value).__name__
    fields = {name: head(getattr(value, name), f"{kind}.{name}", depth + 1) for name in names}
    return {CLASS: kind, **fields}


def read(told: Json) -> Any:
    """The value of a head, its texts by stand-ins. Raises HeadError."""
    match told:
        case None | bool() | int() | float() | str():
            return told
        case list():
            return tuple(map(read, told))
        case {"~enum": str(name)}:
            kind, _, member = name.partition(".")
            found = _class(kind)
            if not issubclass(found, Enum) or member not in found.__members__:
                raise HeadError(f"There is no {name[:100]!r}.")
            return found[member]
        case {"~set": list(members)}:
            return frozenset(map(read, members))
        case {"~text": int(length)} if 0 <= length <= 2**26:
            return "x" * length
        case {"~object": _}:
            return {}
        case {"~": str(name), **fields}:
            return _made(_class(name), {str(key): read(value) for key, value in fields.items()})
    raise HeadError("It holds something that no head has.")


def _made(found: type[Any], fields: dict[str, Any]) -> Any:
    try:
        if issubclass(found, BaseModel):
            return found.model_construct(**fields)
        return found(**fields)
    except (TypeError, ValueError) as error:
        raise HeadError(f"A {found.__name__} is not whole.") from error


def _class(name: str) -> type[Any]:
    for room in ROOMS:
        found = getattr(room, name, None)
        if inspect.isclass(found) and found.__module__ == room.__name__:
            return found
    raise HeadError(f"There is no {name[:100]!r}.")


def _fields(value: object) -> list[str] | None:
    if isinstance(value, BaseModel):
        return list(type(value).model_fields)
    if dataclasses.is_dataclass(value):
        return [field.name for field in dataclasses.fields(value)]
    return None


def _is_word(text: str, field: str) -> bool:
    if IDENT.fullmatch(text):
        return True
    kind, _, name = field.partition(".")
    named = name in WORDS or name == "id" or name.endswith("_id")
    # The name of a tool is a word, that of a file or of a field is not.
    named = named or (name == "name" and kind.startswith("Tool"))
    return named and WORD.fullmatch(text) is not None
