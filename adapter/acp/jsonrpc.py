"""JSON-RPC 2.0 messages as ACP uses them: one line to one value, never an exception. No I/O.

Rules of the ACP schema and of the TypeScript SDK 2.4.0: no batches, ids are string, integer or
null, params are an object or absent, `_meta` stays where the peer put it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeGuard

from adapter.acp.jsontext import NotJson, parse
from contract.errors import Code
from contract.limits import ID_CHARS

Id = str | int | None
"""A checked id is a safe dict key: with bool and float refused, equal ids have equal types."""

JsonObject = dict[str, object]


@dataclass(frozen=True, slots=True)
class Request:
    """A message that wants an answer under `id`."""

    id: Id
    method: str
    params: JsonObject


@dataclass(frozen=True, slots=True)
class Notification:
    """A message that is never answered."""

    method: str
    params: JsonObject


@dataclass(frozen=True, slots=True)
class Response:
    """The answer to a request of ours: `error` is None when it succeeded."""

    id: Id
    result: object
    error: JsonObject | None


@dataclass(frozen=True, slots=True)
class Fault:
    """A line that is no message. `id` is that of the request, null where there is none to trust.

    With `answer` False the peer is not told: the line was a notification or a response, and
    neither is ever answered.
    """

    code: int
    message: str
    id: Id
    answer: bool = True


def is_id(value: object) -> TypeGuard[Id]:
    """Whether `value` may be an id: bounded string, integer of 64 bits or null; no True, no 1.0."""
    if type(value) is int:
        return -(2**63) <= value < 2**64
    return value is None or (type(value) is str and len(value) <= ID_CHARS)


def decode(line: bytes) -> Request | Notification | Response | Fault:
    """What one line says."""
    try:
        message = parse(line)
    except NotJson as error:
        return Fault(Code.PARSE, f"This line is not valid JSON: {error}.", None)
    if isinstance(message, list):
        return Fault(Code.INVALID_REQUEST, "JSON-RPC batches are not supported.", None)
    if not isinstance(message, dict):
        return Fault(Code.INVALID_REQUEST, "A message must be a JSON object.", None)
    ident = message.get("id")
    if not is_id(ident):
        text = f"An id must be a string of {ID_CHARS} characters at most, an integer or null."
        return _invalid(text, None, "method" in message)
    if "method" not in message:
        return _response(message, ident)
    return _call(message, ident)


def _call(message: JsonObject, ident: Id) -> Request | Notification | Fault:
    wants_answer = "id" in message
    method, params = message["method"], message.get("params", {})
    if message.get("jsonrpc") != "2.0":
        return _invalid('"jsonrpc" must be "2.0".', ident, wants_answer)
    if not isinstance(method, str):
        return _invalid('"method" must be a string.', ident, wants_answer)
    if not isinstance(params, dict):
        return Fault(Code.INVALID_PARAMS, "params must be an object.", ident, wants_answer)
    return Request(ident, method, params) if wants_answer else Notification(method, params)


def _response(message: JsonObject, ident: Id) -> Response | Fault:
    if "result" not in message and "error" not in message:
        return _invalid("A message needs a method, a result or an error.", ident, True)
    error = message.get("error")
    if error is None and "result" in message:
        return Response(ident, message["result"], None)
    return Response(ident, None, error if isinstance(error, dict) else {})


def _invalid(message: str, ident: Id, answer: bool) -> Fault:
    return Fault(Code.INVALID_REQUEST, message, ident, answer)


def request(ident: Id, method: str, params: JsonObject) -> JsonObject:
    """The request message."""
    return {"jsonrpc": "2.0", "id": ident, "method": method, "params": params}


def notification(method: str, params: JsonObject) -> JsonObject:
    """The notification message."""
    return {"jsonrpc": "2.0", "method": method, "params": params}


def success(ident: Id, result: JsonObject) -> JsonObject:
    """The answer that carries a result."""
    return {"jsonrpc": "2.0", "id": ident, "result": result}


def failure(ident: Id, error: JsonObject) -> JsonObject:
    """The answer that carries an error object (`code`, `message`, optional `data`)."""
    return {"jsonrpc": "2.0", "id": ident, "error": error}
