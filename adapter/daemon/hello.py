"""The line with which a relay introduces its client, and what it says of it."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from adapter.daemon.link import Link
from adapter.daemon.refusal import Refusal
from contract.attach import (
    CLIENT_FIELD,
    CWD_FIELD,
    HELLO,
    HELLO_BYTES,
    SETTING_FIELD,
    TEMPORARY,
    USAGE,
    VARIABLE_FIELD,
    VERSION_FIELD,
)

CREDENTIALS: Final = struct.Struct("iII")
"""`struct ucred` of unix(7): process, and user and group, which have no sign."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """Who connected, as the kernel says."""

    pid: int
    uid: int


@dataclass(frozen=True, slots=True)
class Hello:
    """What the relay says. `client_pid` is 0 and a text empty where it says nothing."""

    version: str = ""
    cwd: str = ""
    client_pid: int = 0
    settings: Mapping[str, str] = field(default_factory=dict)
    """What the client has set by flags, by the names of the configuration file."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """And in its environment."""


Differs = Callable[[Hello], str | None]
"""A sentence on the first setting of a client that is not the daemon's, or None."""


def credentials(sock: socket.socket) -> Credentials:
    """The process and user at the other end when it connected (SO_PEERCRED)."""
    raw = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
    pid, uid, _ = CREDENTIALS.unpack(raw)
    return Credentials(pid, uid)


async def read_hello(link: Link, seconds: float) -> Hello | None:
    """The hello; what is behind it stays to be read. None if the client has left.

    Raises Refusal for a line that is too long or too late, and as `parse` does.
    """
    line = bytearray()
    try:
        async with asyncio.timeout(seconds):
            ended = False
            while not ended:
                more = await link.read()
                if not more:
                    return None
                piece, newline, rest = more.partition(b"\n")
                line += piece
                ended = bool(newline)
                if len(line) >= HELLO_BYTES:
                    raise Refusal(USAGE, f"The hello has more than {HELLO_BYTES} bytes.")
    except TimeoutError as error:
        raise Refusal(TEMPORARY, f"No hello came within {seconds:g} s.") from error
    link.unread(rest)
    return parse(bytes(line))


def parse(line: bytes) -> Hello:
    """The fields of a hello; those with names that are not known are left out.

    Raises Refusal (75) for another protocol.
    """
    protocol, *parts = os.fsdecode(line).split("\0")
    if protocol != HELLO:
        raise Refusal(
            TEMPORARY,
            f"The daemon speaks {HELLO!r} and was greeted by {protocol[:64]!r}; restart it after "
            "an upgrade.",
        )
    fields = dict(part.partition("=")[::2] for part in parts)
    pid = fields.get(CLIENT_FIELD, "")
    return Hello(
        version=fields.get(VERSION_FIELD, ""),
        cwd=fields.get(CWD_FIELD, ""),
        client_pid=int(pid) if pid.isdecimal() and len(pid) < 12 else 0,
        settings=_named(fields, SETTING_FIELD),
        variables=_named(fields, VARIABLE_FIELD),
    )


def _named(fields: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {
        name.removeprefix(prefix): value
        for name, value in fields.items()
        if name.startswith(prefix)
    }
