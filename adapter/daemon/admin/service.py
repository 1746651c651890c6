"""The admin socket, served beside the daemon's own for as long as that lives.

No TCP: whoever connects is held to the users that the daemon serves before a byte is read.

The HTTP server is loaded when the first one connects: it takes 8 MB, and nobody may ever ask.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import OrderedDict
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final, Self

from adapter.daemon.admin.lag import measure
from adapter.daemon.admin.readiness import Look
from adapter.daemon.admin.standing import Process, Standing
from adapter.daemon.daemon import Daemon
from adapter.daemon.door import Door
from adapter.daemon.hello import credentials
from adapter.daemon.listening import Listener
from adapter.daemon.metrics import Metrics
from adapter.engine.tasks import Tasks

if TYPE_CHECKING:
    from adapter.daemon.admin.app import Site

logger = logging.getLogger(__name__)

CONNECTIONS: Final = 32
"""At once; one more takes the place of the oldest, so that probes that hang keep out nobody."""
FORBIDDEN: Final = b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
SHORT: Final = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class Admin:
    """Use as a context manager inside of the daemon's; the listener is closed at the end."""

    def __init__(self, daemon: Daemon, metrics: Metrics, listener: Listener) -> None:
        self.listener = listener
        self._daemon = daemon
        self._metrics = metrics
        self._look = Look(daemon)
        self._since = daemon.engine.clock()
        self._site: asyncio.Task[Site] | None = None
        self._door = Door(listener, self._arrived, SHORT, daemon.engine.sleep)
        self._open: OrderedDict[asyncio.Transport, None] = OrderedDict()
        self._arriving = Tasks()
        self._tasks = Tasks()
        metrics.registry.register(Standing(daemon, metrics))
        Process(registry=metrics.registry)

    async def __aenter__(self) -> Self:
        self._door.open()
        engine = self._daemon.engine
        lag = measure(engine.clock, engine.sleep, self._metrics.late)
        self._tasks.start(lag, "lag of the loop")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._door.aclose()
        await self._arriving.aclose()
        await self._tasks.aclose()
        await self._look.aclose()
        for transport in self._open:
            transport.abort()
        if self._site is not None and not self._site.cancelled() and not self._site.exception():
            await self._site.result().aclose()

    def _arrived(self, sock: socket.socket) -> None:
        try:
            who = credentials(sock)
            allowed = who.uid in self._daemon.terms.allowed_uids
            if not allowed:
                logger.warning("a process of user %d was refused at the admin socket", who.uid)
                sock.send(FORBIDDEN)
        except OSError as error:
            logger.debug("one that came to the admin socket has left again: %s", error)
            allowed = False
        if allowed and len(self._arriving) < CONNECTIONS:
            self._arriving.start(self._serve(sock), f"admin request of process {who.pid}")
        else:
            sock.close()

    async def _serve(self, sock: socket.socket) -> None:
        with ExitStack() as stack:
            stack.callback(sock.close)
            site = await self._loaded()
            for transport in [one for one in self._open if one.is_closing()]:
                del self._open[transport]
            while len(self._open) >= CONNECTIONS:
                self._open.popitem(last=False)[0].abort()
            loop = asyncio.get_running_loop()
            transport, _ = await loop.connect_accepted_socket(site.protocol, sock)
            self._open[transport] = None
            stack.pop_all()

    async def _loaded(self) -> Site:
        """The application, which the first one that asks waits for."""
        if self._site is None or (self._site.done() and self._site.exception()):
            self._site = self._tasks.start(self._load(), "admin application")
        return await asyncio.shield(self._site)

    async def _load(self) -> Site:
        # In a thread: the clients of the daemon must not wait for an import.
        made = await asyncio.to_thread(_site)
        return made(self._daemon, self._metrics, self._look, self._since)


def _site() -> type[Site]:
    from adapter.daemon.admin.app import Site

    return Site
