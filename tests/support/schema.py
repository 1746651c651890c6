"""The published schema of ACP version 1, stable and unstable, and the names in it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Literal

from stubs.parts import acp_schema

Json = dict[str, Any]
Side = Literal["agent", "client", "protocol", "proxy"]

FILES: Final[Mapping[bool, str]] = {True: "schema.json", False: "schema.unstable.json"}


@dataclass(frozen=True, slots=True)
class Method:
    """The definitions of its parameters and of its result; a notification has no result."""

    params: str
    result: str | None


@cache
def definitions(*, stable: bool) -> Json:
    """All definitions by name. The unstable schema holds what is stable too."""
    schema: Json = json.loads((acp_schema() / FILES[stable]).read_text(encoding="utf-8"))
    defs: Json = schema["$defs"]
    return defs


def methods(side: Side, *, stable: bool) -> dict[str, Method]:
    """The methods that `side` is asked for, by name."""
    shapes: dict[str, dict[str, str]] = {}
    for name, shape in definitions(stable=stable).items():
        if shape.get("x-side") == side:
            role = "result" if name.endswith("Response") else "params"
            shapes.setdefault(shape["x-method"], {})[role] = name
    return {name: Method(of["params"], of.get("result")) for name, of in shapes.items()}


def updates(*, stable: bool) -> dict[str, Json]:
    """The variants of `session/update`: the shape of each, by its `sessionUpdate`."""
    return dict(_variants(definitions(stable=stable)["SessionUpdate"]))


def _variants(union: Json) -> Iterator[tuple[str, Json]]:
    for shape in union["oneOf"]:
        yield shape["properties"]["sessionUpdate"]["const"], shape
