"""What the daemon asks of the system for its own process."""

from __future__ import annotations

import ctypes
import logging
import os
import resource
from dataclasses import dataclass
from typing import Final

from contract.words import counted

logger = logging.getLogger(__name__)

OTHERS: Final = 256
"""Descriptors besides those of clients: two pools of 64 connections to the server, 64 of those who
ask at the admin socket, sockets, the log."""
ARRIVING: Final = 256
"""Clients whose hello is awaited."""
SHARE: Final = 0.75
"""Of clients that are served, in what is left of a limit that is too low for all."""


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


@dataclass(frozen=True, slots=True)
class Room:
    """For how many there are descriptors."""

    clients: int
    arriving: int


def room(limit: int, wanted: int) -> Room:
    """For how many clients, of those wanted, a limit leaves descriptors beside what serves them."""
    left = limit - OTHERS
    if left >= wanted + ARRIVING:
        return Room(wanted, ARRIVING)
    clients = max(1, min(wanted, int(left * SHARE)))
    return Room(clients, max(1, left - clients))


def room_for_clients(wanted: int) -> Room:
    """How many clients, of those wanted, leave enough descriptors for what serves them (O-34).

    Raises the soft limit as far as it is needed and the hard one lets it.
    """
    needed = wanted + ARRIVING + OTHERS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return Room(wanted, ARRIVING)
    found = room(soft, wanted)
    limit, clients = counted(soft, "descriptor"), counted(found.clients, "client")
    arriving = counted(found.arriving, "client")
    logger.warning("a limit of %s leaves room for %s, and %s that come", limit, clients, arriving)
    return found
