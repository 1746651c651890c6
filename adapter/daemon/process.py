"""What the daemon asks of the system for its own process."""

from __future__ import annotations

import logging
import resource
from typing import Final

logger = logging.getLogger(__name__)

OTHERS: Final = 256
"""Descriptors besides one for each client: the server's connections, sockets, the log."""


def no_core_dumps() -> None:
    """The password must not end up in a file of the system (X-18)."""
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))


def enough_descriptors(clients: int) -> None:
    """Raise the soft limit as far as it is needed and the hard one lets it (O-34)."""
    needed = clients + OTHERS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    reachable = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, reachable), hard))
    if reachable < needed:
        logger.warning("%d descriptors do not suffice for %d clients", reachable, clients)
