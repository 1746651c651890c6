"""The tasks of one owner: none is forgotten, and a fault in one is logged."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

logger = logging.getLogger(__name__)

ResultT = TypeVar("ResultT")


def log_fault(task: asyncio.Task[Any]) -> None:
    """Say what a task raised; to be called when it is done. Nobody awaits its result."""
    if not task.cancelled() and task.exception() is not None:
        logger.error("%s failed", task.get_name(), exc_info=task.exception())


class Tasks:
    """Each is kept until it is done. Whoever starts them bounds how many there are."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[Any]] = set()

    def __len__(self) -> int:
        return len(self._running)

    def __iter__(self) -> Iterator[asyncio.Task[Any]]:
        """As they stand now: a task that ends meanwhile changes nothing."""
        return iter(frozenset(self._running))

    def start(self, work: Coroutine[Any, Any, ResultT], name: str) -> asyncio.Task[ResultT]:
        task = asyncio.create_task(work, name=name)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    def cancel(self) -> None:
        """Cancel all of them; each still runs to its end."""
        for task in self:
            task.cancel()

    async def aclose(self) -> None:
        """Cancel all of them and wait for their end."""
        self.cancel()
        if self._running:
            await asyncio.wait(frozenset(self._running))

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        log_fault(task)
