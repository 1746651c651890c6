"""Sockets that the service manager has opened: systemd's socket activation (sd_listen_fds(3))."""

from __future__ import annotations

import os
import socket
from collections.abc import MutableMapping
from typing import Final

from adapter.daemon.listening import Listener
from adapter.daemon.refusal import Refusal
from contract.attach import USAGE
from contract.numbers import whole

FIRST: Final = 3
ACP: Final = "acp"
ADMIN: Final = "admin"


def passed(environ: MutableMapping[str, str], first: int = FIRST) -> dict[str, Listener]:
    """The sockets by name: `acp` and `admin`. Empty if none was passed to this process.

    A single one with any other name is `acp`. The variables are taken out of `environ`. Raises
    Refusal (2) for names that mean nothing here, and for what is no listening Unix socket.
    """
    ours = environ.pop("LISTEN_PID", "") == str(os.getpid())
    count = whole(environ.pop("LISTEN_FDS", ""))
    names = environ.pop("LISTEN_FDNAMES", "").split(":")
    if not ours or not count:
        return {}
    if count == 1 and names[0] != ADMIN:
        names = [ACP]
    if sorted(names) not in ([ACP], [ADMIN], [ACP, ADMIN]) or len(names) != count:
        raise Refusal(
            USAGE,
            f"The service manager passed {count} sockets under the names {':'.join(names)!r}; "
            f"there may be one named {ACP} and one named {ADMIN}.",
        )
    return {name: _adopted(first + place, name) for place, name in enumerate(names)}


def _adopted(descriptor: int, name: str) -> Listener:
    wrong = Refusal(USAGE, f"The socket {name} of the service manager is no listening Unix socket.")
    try:
        os.set_inheritable(descriptor, False)
        sock = socket.socket(fileno=descriptor)
    except OSError as error:
        raise wrong from error
    listens = sock.family == socket.AF_UNIX and sock.type == socket.SOCK_STREAM
    if not listens or not sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        sock.close()
        raise wrong
    sock.setblocking(False)
    path = sock.getsockname()
    return Listener(sock, path if isinstance(path, str) else "")
