"""What the core is given, without its texts: as JSON, and back.

A head keeps the class and the fields of an input: numbers, ids where an id belongs, and words that
the rules know. Any other text is kept as its length, of a JSON object only the ids that the rules
look for. What is read back has stand-ins of the same length, so that offsets and prefixes hold; a
text that was not as it had been shown gets another one. Pure.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Mapping
from enum import Enum
from hashlib import blake2b
from types import ModuleType
from typing import Any, Final, get_args

from pydantic import BaseModel, TypeAdapter

from adapter.core import values as v
from adapter.core.reconcile import STEP_CAP_PHRASE
from adapter.core.values import inputs, outcome
from adapter.core.weights import size_of
from contract import calls, events, reads, shapes
from contract.errors import Plain

Json = Any

CLASS: Final = "~"
TEXT: Final = "~text"
UNTRUE: Final = "~untrue"
STEP_CAP: Final = "~step_cap"
OBJECT: Final = "~object"

ROOMS: Final[tuple[ModuleType, ...]] = (inputs, events, reads, shapes, calls)
"""Where the classes of inputs, and of what they hold, stand."""
ITEMS: Final = 4096
"""Of one collection; the rest is left out."""
DEPTH: Final = 12
STANDING_IN: Final = 128 * 1024 * 1024
"""Characters of the stand-ins of one flight."""

IDENT: Final = re.compile(r"[\w.:-]{1,128}", re.ASCII)
IDENTS: Final = frozenset(
    {"id", "timer", "inbox", "judged", "busy", "children", "named", "workers", "variant"}
)
"""Fields with ids, besides those whose names end in `_id`."""
TEXTS: Final = frozenset({"text", "delta"})
"""Fields with what somebody wrote, which is no word of the rules even where it reads like one."""
KEYS: Final = frozenset({"tool", "id", "messageID", "sessionID", "childID", "source"})
"""Of a JSON object."""
OMITTED: Final = frozenset(
    {"Snapshot.titles", "SessionCreated.title", "ToolState.input", "ToolState.metadata"}
    | {"ToolState.content", "AssistantRow.model"}
)
"""Fields that decide nothing, and `time` of every row."""

WORDS: Final = frozenset(
    {
        *("user", "assistant", "synthetic", "idle", "shell", "compaction", "system", "location"),
        *("text", "reasoning", "tool", "file", "queue", "steer", "manual", "auto", "subagent"),
        *("stop", "tool-calls", "length", "content-filter", "error", "other", "unknown"),
        *("streaming", "running", "pending", "completed", "failed", "succeeded", "interrupted"),
        *("aborted", "tool.execution", "compaction.failed", "shutdown"),
        *(
            f"provider.{what}"
            for what in (
                *("internal", "rate-limit", "transport", "invalid-request", "auth"),
                *("content-filter", "no-route"),
            )
        ),
        *("edit", "write", "read", "grep", "glob", "question", "task", "webfetch", "websearch"),
        *("patch", "todowrite", "skill", "execute"),
        *(
            word
            for one in (outcome.Call, outcome.Decision, outcome.AskReason, inputs.FormFate)
            for word in get_args(one)
        ),
        *("ok", "gone", "unauthorised"),
    }
)
"""Of the server and of ours. The rules take a word that they do not know as they take any other."""


class HeadError(Plain, ValueError):
    """What was read is no head. `str()` is one sentence."""


def head(value: object, field: str = "", depth: int = 0) -> Json:
    """The head of an input, or of a part of one; fields that have their defaults are left out."""
    match value:
        case None | bool() | int() | float():
            return value
        case Enum():
            return value.value
        case str():
            return _text(value, field)
        case tuple() | list():
            return [head(one, field, depth + 1) for one in value[:ITEMS]]
        case frozenset() | set():
            return [head(one, field, depth + 1) for one in sorted(value, key=str)[:ITEMS]]
        case Mapping():
            return {OBJECT: size_of(value), **_kept(value)}
    told: dict[str, Json] = {CLASS: type(value).__name__}
    if depth <= DEPTH:
        for name, default in _fields(value):
            one = getattr(value, name)
            kind = f"{told[CLASS]}.{name}"
            if one != default and name != "time" and kind not in OMITTED:
                told[name] = head(one, kind, depth + 1)
    return told


def _fields(value: object) -> list[tuple[str, object]]:
    if isinstance(value, BaseModel):
        return [(name, one.default) for name, one in type(value).model_fields.items()]
    if dataclasses.is_dataclass(value):
        return [(one.name, one.default) for one in dataclasses.fields(value)]
    return []


def _text(text: str, field: str) -> Json:
    name = field.rpartition(".")[2]
    if name in IDENTS or name.endswith("_id"):
        return ident(text)
    if text in WORDS and name not in TEXTS:
        return text
    if field == "Span.text" and text.startswith(calls.TOKEN_PREFIX):
        return calls.TOKEN_PREFIX + ident(text.removeprefix(calls.TOKEN_PREFIX))
    return {STEP_CAP if STEP_CAP_PHRASE in text else TEXT: len(text)}


def ident(text: str) -> str:
    """An id as it is; in place of what looks like none a mark that is the same each time."""
    if IDENT.fullmatch(text):
        return text
    raw = text.encode("utf-8", "surrogatepass")
    return f"-{blake2b(raw, digest_size=4).hexdigest()}"


def _kept(value: Mapping[object, object]) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for key in KEYS & value.keys():
        one = value[key]
        if isinstance(one, dict):
            found[str(key)] = _kept(one)
        elif isinstance(one, str) and (key != "source" or one in WORDS):
            found[str(key)] = ident(one)
    return found


class Reader:
    """Reads the heads of one flight."""

    def __init__(self, room: int = STANDING_IN) -> None:
        self._room = room

    def input(self, told: Json) -> v.Input:
        """An input, its texts by stand-ins. Raises HeadError."""
        try:
            found = self._value(told)
        except RecursionError:
            raise HeadError("It is nested too deeply.") from None
        if not isinstance(found, v.Input):
            raise HeadError("It holds something that is no input.")
        return found

    def _value(self, told: Json) -> Any:
        match told:
            case None | bool() | int() | float() | str():
                return told
            case list():
                return tuple(map(self._value, told))
            case {"~text": int(length)}:
                return self._stand_in("x", length)
            case {"~untrue": int(length)}:
                return self._stand_in("y", length)
            case {"~step_cap": int(length)}:
                return STEP_CAP_PHRASE + self._stand_in("x", length - len(STEP_CAP_PHRASE))
            case {"~object": int(length), **kept}:
                return {"": self._stand_in("x", length), **kept}
            case {"~": str(name), **fields}:
                read = {str(key): self._value(value) for key, value in fields.items()}
                return _made(name, read)
        raise HeadError("It holds something that no head has.")

    def _stand_in(self, letter: str, length: int) -> str:
        self._room -= max(length, 0)
        if self._room < 0:
            raise HeadError("Its texts are too long.")
        return letter * length


def _made(name: str, fields: dict[str, Any]) -> Any:
    found = next((found for room in ROOMS if (found := getattr(room, name, None))), None)
    if (
        not inspect.isclass(found)
        or found.__module__ not in {room.__name__ for room in ROOMS}
        or not (issubclass(found, BaseModel) or dataclasses.is_dataclass(found))
    ):
        raise HeadError(f"There is no {name[:100]!r}.")
    try:
        return TypeAdapter(found).validate_python(fields)
    except (TypeError, ValueError):
        raise HeadError(f"A {name} is not whole.") from None
