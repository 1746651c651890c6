"""The way out of a connection: one queue in wire order, one writer, one bound on a slow reader."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Final

from adapter.acp.transport import Clock, Transport

logger = logging.getLogger(__name__)

COALESCE: Final = 64 * 1024
"""Bytes that one write may gather; a longer single line goes alone."""

HARD_FACTOR: Final = 4
"""Times the limit at which a connection is given up at once, for writers that do not look."""


class Outbox:
    """Lines wait here in order until the client takes them.

    Past `limit` bytes it is `congested`: text should then wait elsewhere. When nothing was taken
    for `stall_seconds` while congested, or at `HARD_FACTOR` times the limit, `on_stall` is called
    once: this client has left. `on_broken` is called when the writer ends, whatever ended it.
    """

    def __init__(
        self,
        transport: Transport,
        clock: Clock,
        *,
        limit: int,
        stall_seconds: float,
        on_stall: Callable[[], None],
        on_broken: Callable[[], None],
    ) -> None:
        self._transport = transport
        self._clock = clock
        self._limit = limit
        self._stall_seconds = stall_seconds
        self._on_stall = on_stall
        self._on_broken = on_broken
        self._lines: deque[bytes] = deque()
        self._queued = 0
        self._taken_at = clock()
        self._filled = asyncio.Event()
        self._flushed = asyncio.Event()
        self._flushed.set()
        self._roomy = asyncio.Event()
        self._roomy.set()
        self._check: asyncio.TimerHandle | None = None
        self._closed = False

    @property
    def queued_bytes(self) -> int:
        """Bytes that the operating system has not taken yet."""
        return self._queued

    @property
    def congested(self) -> bool:
        """Whether more is queued than the limit."""
        return self._queued > self._limit

    def put(self, line: bytes) -> None:
        """Queue one line; after `close` it is dropped, since nobody is left to read it."""
        if self._closed:
            return
        if not self._queued:
            self._taken_at = self._clock()
        self._lines.append(line)
        self._queued += len(line)
        self._filled.set()
        self._flushed.clear()
        if self._queued > self._limit * HARD_FACTOR:
            self._stall()
        elif self.congested:
            self._roomy.clear()
            if self._check is None:
                self._watch()

    async def write_out(self) -> None:
        """The writer: run it in one task, until it is cancelled or the transport breaks."""
        try:
            while True:
                await self._filled.wait()
                if not self._lines:
                    return
                batch = self._batch()
                self._transport.write(batch)
                await self._transport.drain()
                if self._closed:
                    return
                self._queued -= len(batch)
                self._taken_at = self._clock()
                if self._queued <= self._limit // 2:
                    self._roomy.set()
                if not self._queued:
                    self._flushed.set()
        except OSError as error:
            logger.info("the client stopped taking bytes: %s", error)
        finally:
            self.close()
            self._on_broken()

    async def flush(self) -> None:
        """Wait until nothing is queued, or nothing will be written any more."""
        await self._flushed.wait()

    async def relaxed(self) -> None:
        """Wait until half of the limit is free, or nothing will be written any more."""
        await self._roomy.wait()

    def close(self) -> None:
        """Forget what is queued. May be called again."""
        self._closed = True
        self._lines.clear()
        self._queued = 0
        self._filled.clear()
        self._flushed.set()
        self._roomy.set()
        if self._check is not None:
            self._check.cancel()
            self._check = None

    def _batch(self) -> bytes:
        lines = [self._lines.popleft()]
        size = len(lines[0])
        while self._lines and size + len(self._lines[0]) <= COALESCE:
            lines.append(self._lines.popleft())
            size += len(lines[-1])
        if not self._lines:
            self._filled.clear()
        return b"".join(lines)

    def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        self._check = loop.call_later(min(1.0, self._stall_seconds / 4), self._look)

    def _look(self) -> None:
        self._check = None
        if not self.congested:
            return
        if self._clock() - self._taken_at >= self._stall_seconds:
            self._stall()
        else:
            self._watch()

    def _stall(self) -> None:
        self.close()
        self._on_stall()
