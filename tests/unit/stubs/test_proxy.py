"""The faulty proxy does what it is told, seen through an ordinary client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
from aiohttp import web

from stubs.proxy import Proxy, Rule
from stubs.waiting import until


class Upstream:
    """A server with a feed that the test fills, and a route that counts."""

    def __init__(self) -> None:
        self.url = ""
        self.posts = 0
        self.events: asyncio.Queue[bytes] = asyncio.Queue()

    def say(self, *names: str) -> None:
        for name in names:
            self.events.put_nowait(f'data: {{"type":"{name}"}}\n\n'.encode())

    async def feed(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b'data: {"type":"server.connected"}\n\n: heartbeat\n\n')
        while True:
            await response.write(await self.events.get())

    async def post(self, request: web.Request) -> web.Response:
        self.posts += 1
        return web.json_response({"got": await request.text()}, headers={"x-kept": "yes"})


@asynccontextmanager
async def parts() -> AsyncIterator[tuple[Upstream, Proxy, httpx.AsyncClient]]:
    upstream = Upstream()
    app = web.Application()
    app.router.add_get("/api/event", upstream.feed)
    app.router.add_post("/api/thing", upstream.post)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        async with Proxy(url) as proxy, httpx.AsyncClient(base_url=proxy.url) as client:
            yield upstream, proxy, client
    finally:
        await runner.cleanup()


class Reader:
    """Reads a feed to its end: `text` so far, and `torn` once it ended."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.text = ""
        self.torn: bool | None = None
        self.task = asyncio.create_task(self._read(client))

    async def _read(self, client: httpx.AsyncClient) -> None:
        try:
            async with client.stream("GET", "/api/event") as response:
                async for piece in response.aiter_text():
                    self.text += piece
            self.torn = False
        except httpx.TransportError:
            self.torn = True

    async def has(self, text: str) -> None:
        async def found() -> bool:
            return text in self.text

        await until(f"the feed says {text}", found, 5)


@pytest.mark.parametrize("clean", [True, False])
async def test_a_feed_is_cut_now(clean: bool) -> None:
    async with parts() as (upstream, proxy, client):
        reader = Reader(client)
        upstream.say("one")
        await reader.has("one")
        await proxy.cut_feed(clean=clean).done.wait()
        await reader.task
        assert reader.torn is not clean
        assert proxy.feeds == 0


async def test_a_feed_is_cut_after_the_events_that_count() -> None:
    async with parts() as (upstream, proxy, client):
        cut = proxy.cut_feed(after=2, clean=True, containing="mine")
        reader = Reader(client)
        upstream.say("mine-1", "other", "mine-2", "mine-3")
        await cut.done.wait()
        await reader.task
        assert "mine-2" in reader.text
        assert "mine-3" not in reader.text


async def test_a_feed_says_more_and_everything_twice() -> None:
    async with parts() as (upstream, proxy, client):
        reader = Reader(client)
        await reader.has("heartbeat")
        proxy.insert(b"data: inserted\n\n")
        proxy.repeats = True
        upstream.say("one", "two")
        await reader.has("two")
        proxy.cut_feed()
        await reader.task
        assert reader.text.count("inserted") == 1
        assert reader.text.index("inserted") < reader.text.index("one")
        assert reader.text.count("one") == 2


async def test_a_held_feed_is_silent_until_it_is_released() -> None:
    async with parts() as (upstream, proxy, client):
        reader = Reader(client)
        await reader.has("heartbeat")
        proxy.hold()
        upstream.say("one")

        async def taken() -> bool:
            return upstream.events.empty()

        await until("the server wrote it", taken)
        assert (await client.post("/api/thing", content="x")).status_code == 200
        assert "one" not in reader.text
        proxy.release()
        await reader.has("one")
        proxy.cut_feed()
        await reader.task


async def test_rules_answer_swallow_and_refuse() -> None:
    async with parts() as (upstream, proxy, client):
        proxy.add(Rule("/thing$", "POST", times=2, status=503))
        for _ in range(2):
            assert (await client.post("/api/thing")).status_code == 503
        assert upstream.posts == 0
        proxy.add(Rule("/thing$", refuse=True))
        with pytest.raises(httpx.TransportError):
            await client.post("/api/thing")
        assert upstream.posts == 0
        swallow = proxy.add(Rule("/thing$", swallow=True, delay=0.01))
        with pytest.raises(httpx.TransportError):
            await client.post("/api/thing")
        assert (upstream.posts, swallow.used) == (1, 1)
        answer = await client.post("/api/thing", content="body")
        assert (answer.json(), answer.headers["x-kept"]) == ({"got": "body"}, "yes")
        assert list(proxy.requests) == ["POST /api/thing"] * 5


async def test_connections_are_refused_and_accepted_again_on_the_same_port() -> None:
    async with parts() as (_, proxy, client):
        reader = Reader(client)
        await reader.has("heartbeat")
        await proxy.refuse()
        await reader.task
        assert reader.torn
        with pytest.raises(httpx.ConnectError):
            await client.post("/api/thing")
        await proxy.accept()
        assert (await client.post("/api/thing")).status_code == 200
