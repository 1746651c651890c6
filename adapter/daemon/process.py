"""What the daemon asks of the system for its own process."""

from __future__ import annotations

import logging
import resource
from typing import Final

logger = logging.getLogger(__name__)

OTHERS: Final = 192
"""Descriptors besides one for each client: the server's connections, sockets, the log."""


def no_core_dumps() -> None:
    """The password must not end up in a file of the system (X-18)."""
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))


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
    logger.warning("a limit of %d descriptors leaves room for %d clients", soft, room)
    return room
