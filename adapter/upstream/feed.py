"""The server's event feed: one connection for all sessions, for ever.

The feed waits for nobody: each event is handed to a synchronous sink. Whatever ends a connection
is a loss of continuity, a clean end included, since the server ends a slow reader's stream so and
replays nothing (OpenCode facts, section 2; lifecycle.md, rule 17).
Workaround "reads after every end of the feed".
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final, NoReturn, Protocol

import httpx
from httpx_sse import EventSource, SSEError
from tenacity import AsyncRetrying, RetryCallState, wait_exponential, wait_random

from adapter.upstream.acceptance import REFUSED
from adapter.upstream.client import Server
from adapter.upstream.decode import DecodeError, decode
from adapter.upstream.lines import LINE_LIMIT, EventLines, FeedCounters, OversizeLine
from adapter.upstream.recent import Recent
from adapter.upstream.transport import Sleep, translated
from adapter.upstream.watch import Watch
from contract.events import (
    IGNORED_TYPES,
    SESSIONLESS_TYPES,
    CatalogueChanged,
    Event,
    Unused,
    parse,
)

CONNECTED: Final = "server.connected"


class Sink(Protocol):
    """Who listens. All four return at once; what they raise ends the feed."""

    def connected(self) -> None:
        """`server.connected` came: every event from here on is heard until `lost`."""

    def event(self, event: Event | CatalogueChanged, size: int) -> None:
        """One event, in the order of the server; only between `connected` and `lost`.

        `size` are the characters of its line, so that whoever keeps it knows what it weighs.
        """

    def lost(self, reason: str) -> None:
        """A connection ended, or an attempt to make one failed; `reason` is one phrase."""

    def unauthorised(self) -> None:
        """An attempt was answered 401 or 403; the feed goes on trying."""


@dataclass(frozen=True)
class FeedSettings:
    """Times in seconds. The server sends a heartbeat every 15 s (facts, section 2)."""

    first_frame: float = 5.0
    silence: float = 40.0
    first_pause: float = 0.1
    longest_pause: float = 5.0
    jitter: float = 0.1
    # A connection that lived so long takes the pauses back to the first one.
    settled: float = 5.0
    # Bytes.
    line_limit: int = LINE_LIMIT


class Feed:
    """`run` is a task of the engine's; everything else may be read at any time."""

    def __init__(
        self,
        server: Server,
        watch: Watch,
        sink: Sink,
        clock: Callable[[], float] = time.monotonic,
        settings: FeedSettings | None = None,
        *,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.counters = FeedCounters()
        self._server = server
        self._watch = watch
        self._sink = sink
        self._clock = clock
        self._settings = settings or FeedSettings()
        self._sleep = sleep
        self._up = asyncio.Event()
        self._turned = clock()
        self._lines: EventLines | None = None
        self._recent = Recent()
        self._wait = wait_exponential(
            multiplier=self._settings.first_pause, max=self._settings.longest_pause
        ) + wait_random(0, self._settings.jitter)

    @property
    def is_connected(self) -> bool:
        return self._up.is_set()

    @property
    def last_byte(self) -> float | None:
        """When a byte last came on this connection, by the injected clock; None without one."""
        return None if self._lines is None else self._lines.last_byte

    @property
    def is_turning(self) -> bool:
        """Whether the last step of `run` is no longer ago than its steps take at most.

        Up or down: a connection has a time for its first event and for a silence, and the pause
        before the next one is bounded.
        """
        times = self._settings
        longest = times.first_frame + times.silence + times.longest_pause + times.jitter
        return self._clock() - max(self._turned, self.last_byte or 0.0) <= longest

    async def ready(self, timeout: float) -> bool:
        """Whether the feed is connected within `timeout` seconds."""
        try:
            async with asyncio.timeout(timeout):
                await self._up.wait()
        except TimeoutError:
            return False
        return True

    async def run(self) -> NoReturn:
        """Connects, reads and connects again until cancelled."""
        failures = 0
        while True:
            opened = self._turned = self._clock()
            try:
                reason = await self._connection()
            finally:
                was_up = self._up.is_set()
                self._up.clear()
                self._lines = None
                self._turned = self._clock()
            settled = was_up and self._clock() - opened >= self._settings.settled
            failures = 1 if settled else failures + 1
            if reason is None:
                self._sink.unauthorised()
            else:
                self.counters.losses += was_up
                self._sink.lost(reason)
            await self._sleep(self._pause(failures))

    def _pause(self, failures: int) -> float:
        state = RetryCallState(AsyncRetrying(), None, (), {})
        state.attempt_number = failures
        return self._wait(state)

    async def _connection(self) -> str | None:
        """One connection from start to end: the reason of the end, None for a 401."""
        try:
            async with (
                asyncio.timeout(self._settings.first_frame) as first_frame,
                self._server.feed(silence=self._settings.silence) as response,
            ):
                if response.status_code in REFUSED:
                    return None
                if response.status_code != 200:
                    return f"the server answered with status {response.status_code}"
                await self._read(response, first_frame)
                return "the server ended the feed"
        except TimeoutError:
            return "the server sent no first event"
        except httpx.ReadTimeout:
            return "the server fell silent"
        except OversizeLine:
            return "an event was too large to be read"
        except SSEError:
            return "the server answered with something else than a feed"
        except (httpx.RequestError, httpx.StreamError) as error:
            return str(translated(error))

    async def _read(self, response: httpx.Response, first_frame: asyncio.Timeout) -> None:
        self._lines = EventLines(
            response.aiter_bytes(),
            self._watch,
            self.counters,
            self._clock,
            limit=self._settings.line_limit,
        )
        media = response.headers.get("content-type", "")
        source = EventSource(
            httpx.Response(200, headers={"content-type": media}, stream=self._lines)
        )
        async with aclosing(source.aiter_sse()) as frames:
            async for frame in frames:
                self._frame(frame.data, first_frame)

    def _frame(self, data: str, first_frame: asyncio.Timeout) -> None:
        try:
            raw = decode(data)
        except DecodeError:
            raw = None
        if not isinstance(raw, dict):
            self.counters.malformed += 1
        elif raw.get("type") == CONNECTED:
            self._connected(first_frame)
        elif self._recent.again(raw.get("id")):
            self.counters.repeated += 1
        elif self._up.is_set():
            self._event(parse(raw), len(data))

    def _connected(self, first_frame: asyncio.Timeout) -> None:
        if self._up.is_set():
            return
        first_frame.reschedule(None)
        self.counters.connections += 1
        self._up.set()
        self._sink.connected()

    def _event(self, event: Event | CatalogueChanged | Unused, size: int) -> None:
        if not isinstance(event, Unused):
            self.counters.events += 1
            self._sink.event(event, size)
        elif event.why == "shape":
            self.counters.malformed += 1
        elif event.type not in IGNORED_TYPES and event.type not in SESSIONLESS_TYPES:
            self.counters.unknown += 1
