"""The accept loop, also of a process that has no descriptor left."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import time
from collections.abc import Callable
from typing import Final

logger = logging.getLogger(__name__)

BATCH: Final = 32
"""Connections accepted at one go; between two of them everybody else is served."""
PAUSE: Final = 1.0
"""Seconds without an accept when there is not even a descriptor to refuse with."""
QUIET: Final = 60.0
"""Seconds without a fault, after which the next one is news."""
SHORT: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


def send_away(listening: socket.socket, refusal: bytes) -> bool:
    """Accept one of those that wait and tell it `refusal`; False if there is none."""
    try:
        sock, _ = listening.accept()
    except OSError:
        return False
    with sock:
        sock.setblocking(False)
        try:
            sock.send(refusal)
        except OSError as error:
            logger.debug("a refusal was not taken: %s", error)
    return True


class Acceptor:
    """Accepts on one listening socket and hands on each connection, non-blocking.

    One descriptor is kept in reserve: without another one, a client is accepted with it, told
    `refusal` and sent away, so that it does not wait for ever.
    """

    def __init__(
        self,
        sock: socket.socket,
        arrived: Callable[[socket.socket], None],
        refusal: bytes,
        pause: float = PAUSE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._socket = sock
        self._arrived = arrived
        self._refusal = refusal
        self._pause = pause
        self._spare: int | None = None
        self._again: asyncio.TimerHandle | None = None
        self._clock = clock
        self._failed: float | None = None

    def start(self) -> None:
        self._reserve()
        asyncio.get_running_loop().add_reader(self._socket.fileno(), self._accept)

    def stop(self) -> None:
        """Accept nothing more. To be called before the socket is closed; may be called again."""
        if self._again is not None:
            self._again.cancel()
            self._again = None
        if self._socket.fileno() >= 0:
            asyncio.get_running_loop().remove_reader(self._socket.fileno())
        self._release()

    def _accept(self) -> None:
        for _ in range(BATCH):
            try:
                sock, _ = self._socket.accept()
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionAbortedError:
                continue
            except OSError as error:
                self._fail(error)
                return
            if self._spare is None:
                self._reserve()
            sock.setblocking(False)
            self._arrived(sock)

    def _fail(self, error: OSError) -> None:
        # Short of descriptors, it gets one whenever a client leaves, and lacks it at the next.
        now = self._clock()
        if self._failed is None or now - self._failed >= QUIET:
            logger.error("a client cannot be accepted: %s; those that are here are served", error)
        self._failed = now
        if error.errno not in SHORT or self._spare is None:
            self._rest()
            return
        self._release()
        send_away(self._socket, self._refusal)
        self._reserve()

    def _rest(self) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._socket.fileno())
        if self._again is None:
            self._again = loop.call_later(self._pause, self._resume)

    def _resume(self) -> None:
        self._again = None
        self._reserve()
        asyncio.get_running_loop().add_reader(self._socket.fileno(), self._accept)

    def _reserve(self) -> None:
        if self._spare is None:
            try:
                self._spare = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
            except OSError as error:
                logger.debug("no descriptor is left in reserve: %s", error)

    def _release(self) -> None:
        if self._spare is not None:
            os.close(self._spare)
            self._spare = None
