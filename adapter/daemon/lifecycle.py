"""The life of a daemon that serves: what it tells its service manager, and what signals do to it.

SIGTERM and SIGINT: no client and no prompt is taken any more, turns in flight have so many seconds,
and what has not ended by then goes on at the server or is stopped, as the settings say (O-04). A
second one ends the process at once (O-05). SIGHUP reads the settings again (O-06).
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable
from typing import Final

from adapter.daemon import watchdog
from adapter.daemon.daemon import Daemon, State
from adapter.daemon.notify import Manager
from adapter.daemon.reload import Configuration
from adapter.engine.tasks import Tasks
from contract.words import counted

logger = logging.getLogger(__name__)

STATUS_SECONDS: Final = 1.0
"""Between two looks at whether there is news for the service manager."""


class Signals:
    """What the process is told, from the moment of `listen` on: a loop must run."""

    def __init__(self, abandon: Callable[[], None]) -> None:
        """`abandon` ends the process at once."""
        self.stop = asyncio.Event()
        self.reload: Callable[[], None] | None = None
        self._abandon = abandon

    def listen(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stopped, number)
        loop.add_signal_handler(signal.SIGHUP, self._hung_up)

    def _stopped(self, number: signal.Signals) -> None:
        if self.stop.is_set():
            logger.warning("ended at once by a second signal; turns in flight go on at the server")
            self._abandon()
            return
        logger.info("stopping: %s", number.name)
        self.stop.set()

    def _hung_up(self) -> None:
        if self.reload is None or self.stop.is_set():
            logger.info("nothing is reloaded by a daemon that starts or stops")
            return
        self.reload()


class Lifecycle:
    """Of a daemon that has begun, until it is closed."""

    def __init__(
        self,
        daemon: Daemon,
        configuration: Configuration,
        manager: Manager,
        signals: Signals,
        watchdog_seconds: float | None,
    ) -> None:
        self._daemon = daemon
        self._configuration = configuration
        self._manager = manager
        self._signals = signals
        self._watchdog = watchdog_seconds
        self._told = ""
        self._tasks = Tasks()

    async def run(self) -> None:
        """Until a signal has ended the daemon, or somebody has closed it."""
        engine = self._daemon.engine
        self._signals.reload = self._reload
        self._manager.ready(self._status())
        self._tasks.start(self._tell(), "status")
        if self._watchdog is not None:
            life = watchdog.feed(
                self._watchdog, lambda: engine.is_reading, self._manager.alive, engine.sleep
            )
            self._tasks.start(life, "watchdog")
        try:
            await self._due()
            await self._stop()
        finally:
            self._signals.reload = None
            await self._tasks.aclose()

    async def _due(self) -> None:
        """Until a signal has come, or the daemon is closed."""
        causes = (
            self._tasks.start(self._signals.stop.wait(), "wait for a signal"),
            self._tasks.start(self._daemon.run(), "wait for the daemon"),
        )
        await asyncio.wait(causes, return_when=asyncio.FIRST_COMPLETED)

    async def _stop(self) -> None:
        self._manager.stopping()
        start = self._configuration.start
        if self._daemon.state is not State.CLOSED:
            await self._daemon.drain(start.drain_seconds)
        await self._daemon.close(interrupt=start.drain == "interrupt")

    def _reload(self) -> None:
        self._manager.reloading()
        try:
            self._configuration.reload(self._daemon)
        finally:
            self._manager.ready(self._status())

    async def _tell(self) -> None:
        while True:
            await self._daemon.engine.sleep(STATUS_SECONDS)
            if status_line(self._daemon) != self._told:
                self._manager.status(self._status())

    def _status(self) -> str:
        self._told = status_line(self._daemon)
        return self._told


def status_line(daemon: Daemon) -> str:
    """What `systemctl status` shows of it (O-02)."""
    engine = daemon.engine
    version, _ = engine.server_seen
    feed = "up" if engine.feed.is_connected else "down"
    if engine.is_refused:
        feed += ", password refused by the server"
    parts = (
        f"{daemon.state}: OpenCode {version or 'not seen so far'}",
        f"feed {feed}",
        counted(len(daemon.clients), "client"),
        counted(engine.open_sessions, "session"),
        f"{counted(engine.turns, 'prompt')} in flight",
    )
    return ", ".join(parts)
