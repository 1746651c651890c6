"""Answers and refusals of the HTTP surface, and the reading of requests."""

from __future__ import annotations

import base64
import json
import os
from typing import Any, NoReturn

from aiohttp import web

from stubs.server.host import Host
from stubs.server.store import Session
from stubs.server.wire import Json, dumps

HOST: web.AppKey[Host] = web.AppKey("host", Host)


class RefusalError(Exception):
    """A request that is answered with this response."""

    def __init__(self, response: web.Response) -> None:
        super().__init__(response.status)
        self.response = response


def reply(value: object, status: int = 200) -> web.Response:
    """A JSON answer."""
    return web.Response(body=dumps(value), status=status, content_type="application/json")


def data(value: object) -> web.Response:
    """A JSON answer under the key data."""
    return reply({"data": value})


def empty(status: int = 204) -> web.Response:
    """An answer without a body."""
    return web.Response(status=status)


def located(directory: str, value: object) -> web.Response:
    """A list that belongs to a location."""
    return reply({"location": {"directory": directory}, "data": value})


def refuse(status: int, tag: str, **fields: object) -> NoReturn:
    """End a request with a tagged error."""
    raise RefusalError(reply({"_tag": tag, **fields}, status))


def invalid(message: str, **fields: object) -> NoReturn:
    """End a request with 400 InvalidRequestError."""
    refuse(400, "InvalidRequestError", message=message, **fields)


def host_of(request: web.Request) -> Host:
    """The stub behind a request."""
    return request.app[HOST]


def session_of(request: web.Request) -> Session:
    """The session that the path names."""
    session_id = request.match_info["sessionID"]
    if not session_id.startswith("ses"):
        if request.path.endswith("/prompt"):
            invalid("Invalid session ID", field="sessionID")
        invalid('Expected a string starting with "ses"\n  at ["sessionID"]', kind="Params")
    session = host_of(request).store.sessions.get(session_id)
    if session is None:
        refuse(404, "SessionNotFoundError", sessionID=session_id,
               message=f"Session not found: {session_id}")  # fmt: skip
    return session


async def body_of(request: web.Request, *, optional: bool = False) -> Json:
    """The JSON object of the body. No content type counts as JSON, another one is refused."""
    raw = await request.read()
    kind = request.headers.get("Content-Type")
    if kind is not None and raw and not kind.startswith("application/json"):
        kind = kind.split(";")[0]
        raise RefusalError(web.Response(text=f"Unsupported content-type: {kind}", status=415))
    if not raw:
        if optional:
            return {}
        invalid("Expected object", kind="Payload")
    try:
        value = json.loads(raw.decode("utf-8", "replace"))
    except ValueError:
        invalid("Expected a valid JSON body", kind="Payload")
    if not isinstance(value, dict):
        invalid("Expected object", kind="Payload")
    return value


def need(body: Json, key: str, kind: type = str) -> Any:
    """A key of the body that must be there with that type."""
    if key not in body:
        invalid(f'Missing key\n  at ["{key}"]', kind="Payload")
    if not isinstance(body[key], kind):
        invalid(f'Expected {kind.__name__}\n  at ["{key}"]', kind="Payload")
    return body[key]


def directory_of(request: web.Request) -> str:
    """The location that the query names, else the project. A bad one is the server's 500."""
    directory = request.query.get("location[directory]")
    if directory is None:
        return host_of(request).settings.directory
    if not os.path.isabs(directory):
        raise RefusalError(empty(500))
    return directory


def limit_of(request: web.Request) -> int:
    """The page size of the query."""
    text = request.query.get("limit", "50")
    limit = int(text) if text.isdigit() else 0
    if limit < 1:
        invalid('Expected a value greater than or equal to 1\n  at ["limit"]', kind="Query")
    if limit > 200:
        invalid('Expected a value less than or equal to 200\n  at ["limit"]', kind="Query")
    return limit


def cursor(value: Json) -> str:
    """An opaque cursor."""
    return base64.urlsafe_b64encode(dumps(value)).decode().rstrip("=")


def read_cursor(text: str) -> Json:
    """What a cursor says. Refuses what is none."""
    try:
        value = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except ValueError:
        refuse(400, "InvalidCursorError", message="Invalid cursor")
    if not isinstance(value, dict):
        refuse(400, "InvalidCursorError", message="Invalid cursor")
    return value
