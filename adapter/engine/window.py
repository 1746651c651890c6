"""The window of a snapshot: from the first read until the verdict, events are buffered.

Lifecycle rules 17 to 19. A read that fails is tried again as long as the feed is up; the core's
own deadline ends the wait. The buffer is bounded: an overflow is a gap of its own, and the
window starts anew.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from adapter.core import values as v
from adapter.core.session import SessionCore
from adapter.engine.reading import Reader
from adapter.engine.services import Services
from adapter.upstream.errors import UpstreamError
from contract.events import Event

logger = logging.getLogger(__name__)

EVENTS: Final = 4096
CHARACTERS: Final = 16 * 1024 * 1024
FIRST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 2.0


class Window:
    """One session's snapshot under way, if any."""

    def __init__(
        self,
        services: Services,
        session_id: str,
        directory: str,
        core: SessionCore,
        step: Callable[[v.Input], None],
    ) -> None:
        self._services = services
        self._session_id = session_id
        self._reader = Reader(services.server, session_id, directory)
        self._core = core
        self._step = step
        self._task: asyncio.Task[None] | None = None
        self._buffer: list[Event] = []
        self._size = 0
        self._needed: frozenset[str] = frozenset()

    @property
    def tasks(self) -> set[asyncio.Task[None]]:
        return {self._task} if self._task is not None else set()

    def open(self, needed: frozenset[str]) -> None:
        """Start reading, or widen what is read; needs the feed to be up."""
        self._needed |= needed
        if self._task is None and self._services.feed_is_up():
            self._start()

    def close(self) -> None:
        """The feed is lost: what was read and buffered is worth nothing."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
        self._buffer, self._size = [], 0

    def buffered(self, event: Event) -> bool:
        """Keep the event for after the snapshot; False when no snapshot is under way."""
        if self._task is None:
            return False
        self._buffer.append(event)
        self._size += _size(event)
        if len(self._buffer) > EVENTS or self._size > CHARACTERS:
            logger.warning("the buffer of %s overflowed: a gap", self._session_id)
            self.close()
            self._step(v.FeedLost())
            self._step(v.FeedBack())
        return True

    def _start(self) -> None:
        self._buffer, self._size = [], 0
        self._task = asyncio.create_task(self._read(), name=f"snapshot {self._session_id}")

    async def _read(self) -> None:
        pause = FIRST_PAUSE
        while True:
            needed = self._needed | self._core.admitted_ids
            try:
                snapshot = await self._reader.snapshot(
                    needed, self._core.admitted_ids, self._core.children
                )
                break
            except UpstreamError as error:
                logger.warning("a snapshot of %s failed: %s", self._session_id, error)
            await self._services.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)
        more = self._needed - needed
        buffer, self._buffer, self._size = tuple(self._buffer), [], 0
        self._task, self._needed = None, frozenset()
        self._services.saw_pid(snapshot.pid)
        for child_id, _ in snapshot.children:
            self._services.follow(child_id, self._session_id)
        self._step(v.Reconcile(snapshot, buffer))
        if more & self._core.admitted_ids:
            self.open(more)


def _size(event: Event) -> int:
    return sum(len(value) for value in event.__dict__.values() if isinstance(value, str))
