"""Holds every line of an agent against ACP version 1: the JSON schema, unknown keys, the SDK.

The schema is that of the TypeScript SDK; it lets unknown keys pass and so does not see a field of
ours at a wrong place, hence the second check. The Python SDK salvages bad fields instead of
refusing them, hence the comparison with what it read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cached_property
from typing import Any, Final

import acp.schema as sdk
from jsonschema import Draft202012Validator
from pydantic import TypeAdapter, ValidationError

from tests.support import schema

Json = dict[str, Any]

ENVELOPE: Final = frozenset({"jsonrpc", "id", "method", "params", "result", "error"})
# What stands on the wire although only the unstable schema has it: fields of stable definitions.
# Of whole definitions the unstable schema is asked where the stable one has none.
UNSTABLE_IN_USE: Final = frozenset(
    {
        "InitializeResponse.agentCapabilities.sessionCapabilities.fork",
        "PromptResponse.usage",
    }
)
# agent-client-protocol 0.12.1 is older than the schema: it refuses these updates, and of a tool
# call it drops `name`.
NEWER_UPDATES: Final = frozenset({"notice", "compaction_update", "compaction_summary_chunk"})
NEWER_TOOL_KEYS: Final = frozenset({"name"})


class Oracle:
    """`faults` holds one sentence for each fault found, in the order of the lines."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.lines = 0
        self._methods: dict[str, str] = {}

    @cached_property
    def _stable(self) -> Shapes:
        return Shapes(schema.definitions(stable=True))

    @cached_property
    def _unstable(self) -> Shapes:
        return Shapes(schema.definitions(stable=False))

    @cached_property
    def _results(self) -> dict[str, str | None]:
        """What answers each request of the client, by its method."""
        asked = schema.methods("agent", stable=False)
        return {name: method.result for name, method in asked.items()}

    @cached_property
    def _params(self) -> dict[str, str]:
        """What each method holds that the agent sends."""
        sent = schema.methods("client", stable=False) | schema.methods("protocol", stable=False)
        return {name: method.params for name, method in sent.items()}

    def sent(self, message: Json) -> None:
        """A message of the client: its requests say what the answers must be."""
        if "method" in message and "id" in message:
            # An id that is in use already is refused under null.
            self._methods.setdefault(json.dumps(message["id"]), message["method"])

    def wrote(self, data: bytes) -> None:
        """The same from the bytes that a client wrote, whole lines; other lines do not count."""
        for line in data.splitlines():
            message = _object(line)
            if message is not None:
                self.sent(message)

    def received(self, message: Json) -> None:
        """Check a message of the agent."""
        self.lines += 1
        answered = "" if "method" in message else json.dumps(message.get("id"))
        method = self._methods.pop(answered, "")
        if unknown := set(message) - ENVELOPE:
            self._fault(message, f"unknown members {sorted(unknown)}")
        if "error" in message:
            self._check(message, "Error", message["error"])
        elif "result" in message:
            self._check(message, self._results.get(method), message["result"])
        else:
            self._check(message, self._params.get(message.get("method", "")), message.get("params"))

    def _check(self, message: Json, name: str | None, value: Any) -> None:
        if name is None:
            self._fault(message, "nothing that ACP knows")
            return
        shapes = self._stable if name in self._stable.definitions else self._unstable
        for fault in shapes.faults(name, value):
            self._fault(message, fault)
        for fault in _round_trip(name, value):
            self._fault(message, f"{name}: {fault}")

    def _fault(self, message: Json, sentence: str) -> None:
        self.faults.append(f"{sentence} in {json.dumps(message)[:500]}")


class Shapes:
    """Values held against the definitions of one schema."""

    def __init__(self, definitions: Json) -> None:
        self.definitions = definitions

    def faults(self, name: str, value: Any) -> Iterator[str]:
        """One sentence for each way in which the value is not what is defined under that name."""
        shape = {"$ref": f"#/$defs/{name}"}
        for error in self._validator(shape).iter_errors(value):
            yield f"{name}: {error.json_path}: {error.message[:200]}"
        for path in self._unknown(shape, value, name):
            if path not in UNSTABLE_IN_USE:
                yield f"unknown key {path}"

    def _validator(self, shape: Json) -> Draft202012Validator:
        return Draft202012Validator({**shape, "$defs": self.definitions})

    def _unknown(self, shape: Json, value: Any, path: str) -> Iterator[str]:
        """The keys below `value` that no applicable part of its shape names."""
        parts = list(self._parts(shape, value))
        if isinstance(value, list):
            for part in parts:
                for item in value if "items" in part else ():
                    yield from self._unknown(part["items"], item, f"{path}[]")
        if not isinstance(value, dict):
            return
        known: Json = {}
        for part in parts:
            known |= part.get("properties", {})
        if not known or any(part.get("additionalProperties") for part in parts):
            return
        for key, item in value.items():
            if key not in known:
                yield f"{path}.{key}"
            elif key != "_meta":
                yield from self._unknown(known[key], item, f"{path}.{key}")

    def _parts(self, shape: Json, value: Any) -> Iterator[Json]:
        """The shape and all that it refers to; of alternatives those that fit the value."""
        yield shape
        if "$ref" in shape:
            name = shape["$ref"].removeprefix("#/$defs/")
            yield from self._parts(self.definitions[name], value)
        for part in shape.get("allOf", ()):
            yield from self._parts(part, value)
        for part in (*shape.get("oneOf", ()), *shape.get("anyOf", ())):
            if self._validator(part).is_valid(value):
                yield from self._parts(part, value)


def _object(line: bytes) -> Json | None:
    if not line.startswith(b'{"jsonrpc"'):
        return None
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _round_trip(name: str, value: Any) -> Iterator[str]:
    """What the Python SDK reads out of the value is the value, null members apart."""
    model = getattr(sdk, name, None)
    if model is None:
        yield f"the SDK has no {name}"
        return
    wanted = _older(name, value)
    if wanted is None:
        return
    # An adapter, since some of its models are unions of others.
    models: TypeAdapter[Any] = TypeAdapter(model)
    try:
        read = models.validate_python(wanted)
    except ValidationError as error:
        yield f"the SDK refuses it: {str(error)[:300]}"
        return
    back = models.dump_python(read, mode="json", by_alias=True, exclude_unset=True)
    if back != wanted:
        yield f"the SDK reads {json.dumps(back)[:400]}"


def _older(name: str, value: Any) -> Any:
    """The value as the SDK's version of the schema has it; None for what it does not know."""
    if name == "SessionNotification":
        update = value.get("update", {})
        kind = update.get("sessionUpdate")
        if kind in NEWER_UPDATES:
            return None
        if kind in ("tool_call", "tool_call_update"):
            return {**value, "update": _without(update, NEWER_TOOL_KEYS)}
    if name == "RequestPermissionRequest":
        return {**value, "toolCall": _without(value.get("toolCall", {}), NEWER_TOOL_KEYS)}
    return value


def _without(value: Json, keys: frozenset[str]) -> Json:
    return {key: item for key, item in value.items() if key not in keys}
