"""What the daemon tells the service manager: datagrams of sd_notify(3).

Without NOTIFY_SOCKET nobody is there to be told, and nothing is sent.
"""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable, MutableMapping
from typing import Final, Self

logger = logging.getLogger(__name__)

PATIENCE: Final = 0.2
"""Seconds that what must arrive waits for room at the service manager."""
STATUS_CHARACTERS: Final = 300


def microseconds() -> int:
    """The monotonic clock as the service manager reads it."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000


class Manager:
    """The service manager, or nobody. Close it with `close`.

    A manager that cannot be told is logged once and changes nothing else.
    """

    def __init__(self, address: str = "", now: Callable[[], int] = microseconds) -> None:
        """`address` is a path or, behind an `@`, an abstract name; empty for nobody."""
        self._address = address
        self._now = now
        self._socket: socket.socket | None = None
        self._is_told = False
        if address:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)

    @classmethod
    def of(cls, environ: MutableMapping[str, str]) -> Self:
        """The one that `environ` names; the name is taken out, it is meant for this process."""
        address = environ.pop("NOTIFY_SOCKET", "")
        if address and address[0] not in "/@":
            logger.warning("NOTIFY_SOCKET is neither a path nor an abstract name: nobody is told")
            address = ""
        return cls(address)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()

    def ready(self, status: str) -> None:
        """The daemon serves; also the end of a reload."""
        self._send("READY=1", _status(status), patience=PATIENCE)

    def status(self, status: str) -> None:
        self._send(_status(status))

    def reloading(self) -> None:
        """`ready` follows."""
        self._send("RELOADING=1", f"MONOTONIC_USEC={self._now()}", patience=PATIENCE)

    def stopping(self) -> None:
        self._send("STOPPING=1", patience=PATIENCE)

    def alive(self) -> None:
        """Feeds the watchdog."""
        self._send("WATCHDOG=1")

    def _send(self, *assignments: str, patience: float = 0.0) -> None:
        if self._socket is None:
            return
        address = self._address
        if address.startswith("@"):
            address = "\0" + address[1:]
        message = "\n".join(assignments).encode("utf-8", "replace")
        self._socket.settimeout(patience)
        try:
            self._socket.sendto(message, address)
        except OSError as error:
            if not self._is_told:
                logger.warning("the service manager cannot be told: %s", error)
            self._is_told = True
        else:
            self._is_told = False


def _status(text: str) -> str:
    """One line, as a second one would be another assignment."""
    return "STATUS=" + " ".join(text.split())[:STATUS_CHARACTERS]
