"""The feed on a real socket: what ends it, what it says then, and that it always comes back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from adapter.upstream.client import Server
from adapter.upstream.feed import Feed, FeedSettings
from adapter.upstream.transport import Sleep
from adapter.upstream.watch import Watch
from contract.events import CatalogueChanged, Event, SessionCreated, TextDelta
from tests.unit.upstream.wire import Script, Wire, WireServer, stay

OURS = "ses_ours"
FAST = FeedSettings(first_frame=0.3, silence=0.3, first_pause=0.01, longest_pause=0.02, jitter=0)


class Log:
    """A sink that writes down what it hears and lets a test wait for it."""

    def __init__(self) -> None:
        self.heard: list[object] = []
        self.sizes: list[int] = []
        self._news = asyncio.Event()

    def connected(self) -> None:
        self._add("connected")

    def event(self, event: Event | CatalogueChanged, size: int) -> None:
        self.sizes.append(size)
        self._add(event)

    def lost(self, reason: str) -> None:
        self._add(f"lost: {reason}")

    def unauthorised(self) -> None:
        self._add("unauthorised")

    def _add(self, item: object) -> None:
        self.heard.append(item)
        self._news.set()

    async def until(self, condition: Callable[[], bool], seconds: float = 5) -> None:
        async with asyncio.timeout(seconds):
            while not condition():
                self._news.clear()
                await self._news.wait()

    async def length(self, count: int) -> list[object]:
        await self.until(lambda: len(self.heard) >= count)
        return self.heard[:count]


@asynccontextmanager
async def feeding(
    *scripts: Script,
    settings: FeedSettings = FAST,
    clock: Callable[[], float] = time.monotonic,
    sleep: Sleep = asyncio.sleep,
) -> AsyncIterator[tuple[Feed, Log, WireServer]]:
    log = Log()
    watch = Watch()
    watch.add(OURS)
    async with WireServer(*scripts) as wire, Server(wire.url) as server:
        feed = Feed(server, watch, log, clock, settings, sleep=sleep)
        task = asyncio.create_task(feed.run())
        try:
            yield feed, log, wire
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


def delta(text: str) -> dict[str, object]:
    return {"sessionID": OURS, "assistantMessageID": "msg_1", "ordinal": 0, "delta": text}


def heard(text: str) -> TextDelta:
    return TextDelta.model_validate(delta(text))


async def steady(wire: Wire) -> None:
    await wire.connected()
    await stay(wire)


async def test_events_arrive_in_order_between_connected_and_lost() -> None:
    async def script(wire: Wire) -> None:
        await wire.connected()
        await wire.event("session.text.delta", **delta("a"))
        await wire.event("session.text.delta", sessionID="ses_other", delta="x")
        await wire.event("session.text.delta", **delta("b"))
        await wire.end()

    async with feeding(script, steady) as (feed, log, wire):
        assert await log.length(5) == [
            "connected",
            heard("a"),
            heard("b"),
            "lost: the server ended the feed",
            "connected",
        ]
        assert (feed.counters.connections, feed.counters.losses) == (2, 1)
        assert (feed.counters.events, feed.counters.skipped) == (2, 1)
        assert b"GET /api/event HTTP/1.1" in wire.requests[0]


async def test_a_torn_stream_is_lost() -> None:
    async def script(wire: Wire) -> None:
        await wire.connected()
        await wire.write(b"100\r\ndata: {")

    async with feeding(script, steady) as (_, log, _wire):
        _, lost, again = await log.length(3)
        assert str(lost).startswith("lost: The connection to the OpenCode server broke")
        assert again == "connected"


async def test_a_silent_stream_is_lost() -> None:
    async with feeding(steady) as (_, log, _wire):
        assert await log.length(3) == [
            "connected",
            "lost: the server fell silent",
            "connected",
        ]


async def test_heartbeats_keep_a_stream_alive() -> None:
    enough = asyncio.Event()

    async def script(wire: Wire) -> None:
        await wire.connected()
        for _ in range(12):
            await wire.chunk(b": heartbeat\n\n")
            await asyncio.sleep(0.05)
        enough.set()
        await stay(wire)

    async with feeding(script) as (feed, log, _):
        async with asyncio.timeout(5):
            await enough.wait()
        assert log.heard == ["connected"]
        assert feed.counters.heartbeats >= 10
        assert feed.last_byte is not None


@pytest.mark.parametrize("headers", [True, False])
async def test_a_first_frame_is_not_waited_for_for_ever(headers: bool) -> None:
    async def script(wire: Wire) -> None:
        if headers:
            await wire.head()
            await wire.chunk(b": heartbeat\n\n")
        await stay(wire)

    settings = FeedSettings(first_frame=0.1, silence=5, first_pause=0.01, jitter=0)
    async with feeding(script, steady, settings=settings) as (_, log, _wire):
        assert await log.length(2) == ["lost: the server sent no first event", "connected"]


async def test_a_connected_stream_outlives_the_time_of_the_first_frame() -> None:
    async def script(wire: Wire) -> None:
        await wire.connected()
        await asyncio.sleep(0.3)
        await wire.event("session.text.delta", **delta("late"))
        await stay(wire)

    settings = FeedSettings(first_frame=0.1, silence=5)
    async with feeding(script, settings=settings) as (_, log, _wire):
        assert await log.length(2) == ["connected", heard("late")]


async def test_events_before_the_first_frame_are_not_heard() -> None:
    async def script(wire: Wire) -> None:
        await wire.head()
        await wire.event("session.text.delta", **delta("early"))
        await wire.event("server.connected")
        await stay(wire)

    async with feeding(script, settings=FeedSettings()) as (_, log, _wire):
        assert await log.length(1) == ["connected"]


async def test_a_refused_password_is_told_and_tried_again() -> None:
    async def script(wire: Wire) -> None:
        await wire.head(401, "text/plain")
        await wire.end()

    async with feeding(script, script, steady) as (feed, log, _):
        assert await log.length(3) == ["unauthorised", "unauthorised", "connected"]
        assert await feed.ready(1)


@pytest.mark.parametrize(
    ("status", "media", "reason"),
    [
        (503, "text/plain", "the server answered with status 503"),
        (200, "text/html", "the server answered with something else than a feed"),
    ],
)
async def test_what_is_no_feed_is_lost(status: int, media: str, reason: str) -> None:
    async def script(wire: Wire) -> None:
        await wire.head(status, media)
        await wire.end()

    async with feeding(script, steady) as (_, log, _wire):
        assert await log.length(2) == [f"lost: {reason}", "connected"]


async def test_an_oversize_line_of_ours_is_lost() -> None:
    async def script(wire: Wire) -> None:
        await wire.connected()
        await wire.event("session.text.delta", **delta("x" * 6000))
        await stay(wire)

    settings = FeedSettings(line_limit=5000, first_pause=0.01, jitter=0)
    async with feeding(script, steady, settings=settings) as (_, log, _wire):
        assert await log.length(3) == [
            "connected",
            "lost: an event was too large to be read",
            "connected",
        ]


async def test_lines_that_are_no_events_are_counted_and_survived() -> None:
    async def script(wire: Wire) -> None:
        await wire.connected()
        await wire.event("session.oracle.spoke", sessionID=OURS)
        await wire.event("session.viewed", sessionID=OURS)
        await wire.event("session.text.delta", sessionID=OURS)
        await wire.chunk(b'data: {"type":"model.updated", torn "ses_ours"\n\n')
        await wire.event("model.updated")
        surrogate = (
            b'data: {"type":"session.renamed","data":{"sessionID":"ses_ours","title":"\\ud800"}}'
        )
        await wire.chunk(surrogate + b"\n\n")
        await stay(wire)

    async with feeding(script) as (feed, log, _):
        _, changed, renamed = await log.length(3)
        assert changed == CatalogueChanged(what="model", directory=None)
        assert getattr(renamed, "title", None) == "\ufffd"
        assert (feed.counters.unknown, feed.counters.malformed) == (1, 2)


async def test_the_size_of_an_event_is_that_of_its_line() -> None:
    async def script(wire: Wire) -> None:
        await wire.connected()
        for length in (10, 1010):
            result = {"output": {"text": "x" * length}}
            at = {"sessionID": OURS, "assistantMessageID": "msg_1", "id": "call_1"}
            await wire.event("session.tool.success", **at, content=[], metadata=result)

    async with feeding(script) as (_, log, _):
        await log.length(3)
        first, second = log.sizes
        assert first > 100 and second - first == 1000


async def test_a_child_is_heard_from_its_creation_on() -> None:
    class Adopting(Log):
        watch: Watch

        def event(self, event: Event | CatalogueChanged, size: int) -> None:
            super().event(event, size)
            if isinstance(event, SessionCreated):
                self.watch.add(event.session_id)

    async def script(wire: Wire) -> None:
        await wire.connected()
        created = (
            b'data: {"type":"session.created","data":{"sessionID":"ses_c","parentID":"ses_ours"}}'
        )
        started = b'data: {"type":"session.execution.started","data":{"sessionID":"ses_c"}}'
        await wire.chunk(created + b"\n\n" + started + b"\n\n")
        await stay(wire)

    log = Adopting()
    log.watch = Watch()
    log.watch.add(OURS)
    async with WireServer(script) as wire, Server(wire.url) as server:
        feed = Feed(server, log.watch, log, settings=FAST)
        task = asyncio.create_task(feed.run())
        _, created, started = await log.length(3)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    assert isinstance(created, SessionCreated)
    assert getattr(started, "type", None) == "session.execution.started"


async def test_ready_says_no_in_time() -> None:
    async with feeding(stay, settings=FeedSettings()) as (feed, _, _wire):
        assert not await feed.ready(0.05)
        assert not feed.is_connected


async def test_pauses_grow_and_start_again_after_a_connection_that_lived() -> None:
    now = 0.0
    pauses: list[float] = []
    enough = asyncio.Event()

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 6:
            enough.set()
            await asyncio.Event().wait()

    class Aging(Log):
        def connected(self) -> None:
            nonlocal now
            now += 60.0

    async def short(wire: Wire) -> None:
        await wire.head(503)

    async def lived(wire: Wire) -> None:
        await wire.connected()
        await wire.end()

    scripts = [short, short, short, short, lived, short]
    settings = FeedSettings(first_pause=0.1, longest_pause=0.4, jitter=0)
    async with WireServer(*scripts) as wire, Server(wire.url) as server:
        feed = Feed(server, Watch(), Aging(), lambda: now, settings, sleep=sleep)
        task = asyncio.create_task(feed.run())
        async with asyncio.timeout(5):
            await enough.wait()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    assert pauses == pytest.approx([0.1, 0.2, 0.4, 0.4, 0.1, 0.2])


@pytest.mark.parametrize("up", [True, False])
async def test_a_run_that_stands_still_is_known(up: bool) -> None:
    """By the longest of what it waits for: a silence of 40 s, and 5 s each before and after."""
    now = 100.0
    pausing = asyncio.Event()

    async def for_ever(seconds: float) -> None:
        pausing.set()
        await asyncio.Event().wait()

    async def short(wire: Wire) -> None:
        await wire.head(503)

    script = steady if up else short
    settings = FeedSettings(jitter=0)
    async with feeding(script, settings=settings, clock=lambda: now, sleep=for_ever) as at:
        feed, log, _ = at
        async with asyncio.timeout(5):
            await (log.length(1) if up else pausing.wait())
        assert feed.is_connected is up
        now = 150.0
        before = feed.is_turning
        now = 151.0
        assert (before, feed.is_turning) == (True, False)


async def test_a_connection_turns_with_each_byte() -> None:
    now = 0.0
    more = asyncio.Event()

    async def script(wire: Wire) -> None:
        await wire.connected()
        await more.wait()
        await wire.event("session.text.delta", **delta("a"))
        await stay(wire)

    async with feeding(script, settings=FeedSettings(), clock=lambda: now) as (feed, log, _):
        await log.length(1)
        now += 3600.0
        more.set()
        await log.length(2)
        assert feed.is_turning


async def test_nobody_listening_is_lost_and_tried_again() -> None:
    async with WireServer(steady) as wire:
        url = wire.url
    log = Log()
    async with Server(url) as server:
        feed = Feed(server, Watch(), log, settings=FAST)
        task = asyncio.create_task(feed.run())
        assert await log.length(2) == ["lost: The OpenCode server cannot be reached."] * 2
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
