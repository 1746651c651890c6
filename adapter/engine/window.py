"""The window of a snapshot: from the first read until the verdict, events are buffered.

Lifecycle rules 17 to 19. In a gap a read that fails is tried again until the core's own deadline
has settled the turns. Without a gap nothing is missing, so the window is given up after a while
and what was buffered is heard: a check must not hold up the text that it checks. The buffer is
bounded: an overflow is a gap of its own, and the window starts anew.
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
from adapter.engine.tasks import log_fault
from adapter.upstream.errors import UpstreamError
from contract.events import Event

logger = logging.getLogger(__name__)

EVENTS: Final = 4096
CHARACTERS: Final = 16 * 1024 * 1024
FIRST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 2.0
# Seconds of a window without a gap.
PATIENCE: Final = 5.0


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

    def __len__(self) -> int:
        """Events that wait for the end of the reading."""
        return len(self._buffer)

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
        self._buffer, self._size, self._needed = [], 0, frozenset()

    def buffered(self, event: Event, size: int) -> bool:
        """Keep the event for after the snapshot; False when no snapshot is under way.

        `size` are the characters of its line: what is in it, a tool's result or a form, may be
        of any shape.
        """
        if self._task is None:
            return False
        self._buffer.append(event)
        self._size += size
        if len(self._buffer) > EVENTS or self._size > CHARACTERS:
            logger.warning("the buffer of %s overflowed: a gap", self._session_id)
            self.close()
            self._step(v.FeedLost())
            self._step(v.FeedBack())
        return True

    def _start(self) -> None:
        self._buffer, self._size = [], 0
        self._task = asyncio.create_task(self._read(), name=f"snapshot {self._session_id}")
        self._task.add_done_callback(log_fault)

    async def _read(self) -> None:
        try:
            taken = await self._taken()
        except Exception:
            # A fault of ours must not leave the events of the session buffered for ever.
            logger.exception("a snapshot of %s failed", self._session_id)
            taken = None
        buffer, self._buffer, self._size = tuple(self._buffer), [], 0
        more, self._task, self._needed = self._needed, None, frozenset()
        if taken is None:
            for event in buffer:
                self._step(v.Heard(event))
            return
        snapshot, needed = taken
        self._services.saw_pid(snapshot.pid)
        for child_id, _ in snapshot.children:
            self._services.following.add(child_id, self._session_id)
        self._step(v.Reconcile(snapshot, buffer))
        for verdict in self._core.verdicts:
            self._services.observer.verdict(verdict)
        if (more - needed) & self._core.anchors:
            self.open(more - needed)

    async def _taken(self) -> tuple[v.Snapshot, frozenset[str]] | None:
        """The snapshot and what it looked for; None when it was given up outside of a gap."""
        pause = FIRST_PAUSE
        refused = False
        end = self._services.clock() + PATIENCE
        while True:
            needed = self._needed | self._core.anchors
            judged = self._core.admitted_ids
            unnamed = self._core.unnamed_ids
            try:
                async with asyncio.timeout(None if self._core.in_gap else PATIENCE):
                    snapshot = await self._reader.snapshot(
                        needed, judged, self._core.children, unnamed
                    )
                if snapshot.state != "unauthorised" or refused:
                    return snapshot, needed
                refused = True
            except (UpstreamError, ValueError, TimeoutError) as error:
                logger.warning("a snapshot of %s failed: %s", self._session_id, error)
            if not self._core.in_gap and self._services.clock() >= end:
                return None
            await self._services.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)
