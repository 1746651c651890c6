"""Requests that go on when their client has hung up."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

Answer = TypeVar("Answer")


class Requests:
    """The requests in work that outlive their connection, but not the server."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[Any]] = set()

    async def outlive(self, serving: Coroutine[Any, Any, Answer]) -> Answer:
        """Its answer; whoever waits for it may be cancelled without ending it."""
        task = asyncio.create_task(serving)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return await asyncio.shield(task)

    async def drop(self) -> None:
        """End what is still in work: the server goes down."""
        running = list(self._running)
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)
