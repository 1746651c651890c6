"""The first answer: `initialize` is answered before anything heavy is imported.

Importing the rest takes 20 to 30 times as long as starting bare Python; clients wait for this
one answer with a deadline, and some only ask it and leave.
"""

from __future__ import annotations

import json
import os
import select

from adapter.acp.jsonrpc import Request, decode, success
from contract.errors import AcpError
from contract.initialize import initialize_result

FIRST_LINE_LIMIT = 64 * 1024
"""Bytes looked at here; a longer first line is left to the peer and its own limit."""

CHUNK = 64 * 1024

PROBE_SECONDS = 0.05
"""A client that only probes closes within this time of the answer: nothing need be imported."""


def greet(
    source: int, sink: int, *, mcp: bool = False
) -> tuple[dict[str, object] | None, bytes] | None:
    """Answer the first line of `source` on `sink` if it is a valid `initialize`.

    `mcp`: MCP servers of clients are registered, which the answer says.

    Returns the client's params (None if the first line was something else, which is then not
    answered here) and the bytes that are still to be handled; None if the client has left and
    nothing is to be done. Blocks. Raises OSError as the descriptors do.
    """
    data = b""
    while b"\n" not in data:
        chunk = _read(source)
        if not chunk:
            return None
        data = (data + chunk).lstrip()
        if len(data) > FIRST_LINE_LIMIT:
            return None, data
    line, _, pending = data.partition(b"\n")
    request = decode(line)
    if not isinstance(request, Request) or request.method != "initialize":
        return None, data
    try:
        result = initialize_result(request.params, mcp=mcp)
    except AcpError:
        return None, data
    _write(sink, json.dumps(success(request.id, result)).encode() + b"\n")
    if not pending and _ready(source, select.POLLIN, PROBE_SECONDS):
        pending = _read(source)
        if not pending:
            return None
    return request.params, pending


def _read(source: int) -> bytes:
    while True:
        # A client may have left its end non-blocking for us; waiting first is right for both.
        _ready(source, select.POLLIN, None)
        try:
            return os.read(source, CHUNK)
        except BlockingIOError:
            continue


def _write(sink: int, data: bytes) -> None:
    while data:
        try:
            data = data[os.write(sink, data) :]
        except BlockingIOError:
            _ready(sink, select.POLLOUT, None)


def _ready(descriptor: int, event: int, seconds: float | None) -> bool:
    poll = select.poll()
    poll.register(descriptor, event)
    return bool(poll.poll(None if seconds is None else seconds * 1000))
