"""What the daemon asks of the system for its own process."""

from __future__ import annotations

import ctypes
import logging
import os
import resource
from typing import Final

from contract.words import counted

logger = logging.getLogger(__name__)

OTHERS: Final = 192
"""Descriptors besides one for each client: the server's connections, sockets, the log."""


PR_SET_DUMPABLE: Final = 4
"""Of prctl(2)."""

AUTHORITIES: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR")
"""Where OpenSSL finds the authorities of the system."""


def keep_memory() -> None:
    """The password must not end up in a file of the system (X-18): no core dump.

    The limit alone does not hold for a program that the kernel hands dumps to. A process that is
    not dumpable is looked into by root alone, so neither its memory nor its environment is open
    to what else runs as its user.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        why = os.strerror(ctypes.get_errno())
        logger.warning("the memory of this process is open to others of its user: %s", why)


def load_no_authorities() -> None:
    """For a process that speaks no TLS, while it has one thread: OpenSSL finds no authority.

    aiohttp makes the TLS contexts of its client when it is imported, and loads all authorities of
    the system into each of the two: 2 MB, which nothing here looks at.
    """
    os.environ.update(dict.fromkeys(AUTHORITIES, os.devnull))


def room_for_clients(wanted: int) -> int:
    """How many clients, of those wanted, leave enough descriptors for what serves them (O-34).

    Raises the soft limit as far as it is needed and the hard one lets it.
    """
    needed = wanted + OTHERS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return wanted
    room = max(soft - OTHERS, 1)
    limit, clients = counted(soft, "descriptor"), counted(room, "client")
    logger.warning("a limit of %s leaves room for %s", limit, clients)
    return room
