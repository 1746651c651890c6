"""A listening socket that is accepted on, and that stays where clients look for it."""

from __future__ import annotations

import logging
import socket
from collections.abc import Awaitable, Callable
from typing import Final

from adapter.daemon.accepting import Acceptor
from adapter.daemon.listening import Listener
from adapter.daemon.refusal import Refusal
from adapter.engine.tasks import Tasks

logger = logging.getLogger(__name__)

LOOK: Final = 2.0
"""Seconds between two looks at the socket's place."""


class Door:
    """Hands each connection to `arrived`; one for whom no descriptor is left is told `refusal`."""

    def __init__(
        self,
        listener: Listener,
        arrived: Callable[[socket.socket], None],
        refusal: bytes,
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self.listener = listener
        self._arrived = arrived
        self._refusal = refusal
        self._sleep = sleep
        self._acceptor = self._accept()
        self._looks = Tasks()

    def open(self) -> None:
        self._acceptor.start()
        self._looks.start(self._keep_place(), f"place of {self.listener.path}")

    def shut(self, refusal: bytes = b"") -> None:
        """Accept nothing more and give up the place. May be called again.

        Those that wait are told `refusal`, or are left to the next daemon (`Listener.close`).
        """
        self._looks.cancel()
        self._acceptor.stop()
        self.listener.close(refusal)

    async def aclose(self, refusal: bytes = b"") -> None:
        """`shut`, and wait for the end of every task."""
        self.shut(refusal)
        await self._looks.aclose()

    def _accept(self) -> Acceptor:
        return Acceptor(self.listener.socket, self._arrived, self._refusal)

    async def _keep_place(self) -> None:
        """A socket that somebody has removed is made again, so that new clients find it."""
        told = ""
        while True:
            await self._sleep(LOOK)
            if self.listener.in_place:
                told = ""
                continue
            path = self.listener.path
            try:
                self._acceptor.stop()
                self.listener.renew()
            except (Refusal, OSError) as refusal:
                if str(refusal) != told:
                    told = str(refusal)
                    logger.error("the socket %s is gone and cannot be made again: %s", path, told)
            else:
                logger.warning("the socket %s was gone; it is made again", path)
                self._acceptor = self._accept()
            self._acceptor.start()
