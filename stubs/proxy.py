"""A loopback proxy between the adapter and its server, whose faults a test commands.

    async with Proxy(server.url) as proxy:          # the adapter is given proxy.url
        cut = proxy.cut_feed(after=3, clean=False)  # tear the feed after three more events
        await cut.done.wait()

It takes requests whole and gives each a connection of its own to the server; responses are passed
on as they come, the event feed frame by frame.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Final, Self

import aiohttp
from aiohttp import web

FEED_PATH: Final = "/api/event"
MAX_BODY_BYTES: Final = 64 * 1024 * 1024
MAX_LOG: Final = 2000
KEEP_ALIVE_SECONDS: Final = 5.0  # as OpenCode 2.0.15
# Headers that speak of one connection; aiohttp writes those of each side itself.
HOP_HEADERS: Final = frozenset(
    {"connection", "keep-alive", "transfer-encoding", "content-length", "host", "date", "server"}
)


@dataclass(slots=True)
class Cut:
    """The end of a feed connection, `after` so many more events that hold `containing`.

    `clean` ends the body properly; otherwise a frame is torn. `done` is set once it happened.
    `server.connected` and heartbeats are not counted.
    """

    after: int
    clean: bool
    containing: bytes
    done: asyncio.Event = field(default_factory=asyncio.Event)

    def counts(self, frame: bytes) -> bool:
        """Take note of a frame that was passed on; True when the cut is due."""
        if frame.startswith(b"data:") and b'"server.connected"' not in frame:
            self.after -= self.containing in frame
        return self.after <= 0


@dataclass(slots=True)
class Rule:
    """What happens to the next `times` requests that match; None: to every one.

    `path` is a regular expression to be found in the path, `method` "" any. In this order:
    `delay` waits so many seconds; `refuse` breaks the connection before the server sees the
    request; `status` answers it instead of the server; `late` waits so many seconds once the server
    has answered; `swallow` breaks the connection then. `used` counts the requests that it was
    applied to.
    """

    path: str
    method: str = ""
    times: int | None = 1
    delay: float = 0.0
    refuse: bool = False
    status: int = 0
    late: float = 0.0
    swallow: bool = False
    used: int = 0

    def take(self, method: str, path: str) -> bool:
        """Whether the request matches; uses up one of the times."""
        if self.method not in ("", method) or not re.search(self.path, path):
            return False
        if self.times is not None and self.used >= self.times:
            return False
        self.used += 1
        return True


class Proxy:
    """The proxy, at `url` on loopback while it is entered; `requests` logs "METHOD path"."""

    def __init__(self, upstream: str) -> None:
        self.upstream = upstream
        self.url = ""
        self.requests: deque[str] = deque(maxlen=MAX_LOG)
        self.rules: list[Rule] = []
        self._cuts: deque[Cut] = deque()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._inserts: deque[bytes] = deque(maxlen=MAX_LOG)
        self.repeats = False
        """Whether each frame of a feed is passed on twice."""
        self._feeds: set[asyncio.Future[Cut]] = set()
        self._sent: set[asyncio.Task[web.StreamResponse]] = set()
        self._port = 0
        app = web.Application(client_max_size=MAX_BODY_BYTES)
        app.router.add_route("*", "/{tail:.*}", self._handle)
        self._runner = web.AppRunner(
            app,
            access_log=None,
            handler_cancellation=True,
            keepalive_timeout=KEEP_ALIVE_SECONDS,
            shutdown_timeout=0.1,
            auto_decompress=False,
        )
        self._site: web.TCPSite | None = None
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            auto_decompress=False,
            connector=aiohttp.TCPConnector(force_close=True, limit=0),
            timeout=aiohttp.ClientTimeout(total=None),
        )
        await self._runner.setup()
        await self.accept()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._flowing.set()
        await self._runner.cleanup()
        for sent in self._sent:
            sent.cancel()
        if self._sent:
            await asyncio.wait(self._sent)
        if self._session is not None:
            await self._session.close()

    @property
    def feeds(self) -> int:
        """How many feed connections are open."""
        return len(self._feeds)

    @property
    def sending(self) -> int:
        """How many requests that are no reads are on their way."""
        return len(self._sent)

    def add(self, rule: Rule) -> Rule:
        """Apply a rule from now on; the first rule that matches a request is applied."""
        self.rules.append(rule)
        return rule

    def cut_feed(self, after: int = 0, clean: bool = False, containing: str = "") -> Cut:
        """Cut every open feed connection now, or the first one that passes `after` events on.

        Planned cuts are carried out in the order in which they were asked for.
        """
        cut = Cut(after, clean, containing.encode())
        if after > 0:
            self._cuts.append(cut)
        else:
            for feed in list(self._feeds):
                if not feed.done():
                    feed.set_result(cut)
        return cut

    def hold(self) -> None:
        """Let no byte of any feed pass, heartbeats included; connections stay open."""
        self._flowing.clear()

    @property
    def is_held(self) -> bool:
        """Whether feeds are held."""
        return not self._flowing.is_set()

    def release(self) -> None:
        """Let what was held pass, and all that follows."""
        self._flowing.set()

    def insert(self, data: bytes) -> None:
        """Write bytes into the first feed that passes a frame on, before that frame."""
        self._inserts.append(data)

    async def refuse(self) -> None:
        """Refuse connections and break those that are open, as a machine whose server died."""
        if self._site is not None:
            await self._site.stop()
            self._site = None
        server = self._runner.server
        if server is not None:
            for connection in server.connections:
                if connection.transport is not None:
                    connection.transport.abort()

    async def accept(self) -> None:
        """Accept connections (again), always on the same port."""
        if self._site is None:
            self._site = web.TCPSite(self._runner, "127.0.0.1", self._port)
            await self._site.start()
            self._port = self._runner.addresses[0][1]
            self.url = f"http://127.0.0.1:{self._port}"

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        """Reads end with their client; what was sent is passed on although its sender is gone.

        So does a server without a proxy (OpenCode facts, later experiments 14).
        """
        if request.method == "GET":
            return await self._serve(request)
        sent = asyncio.create_task(self._serve(request))
        self._sent.add(sent)
        sent.add_done_callback(self._passed_on)
        return await asyncio.shield(sent)

    def _passed_on(self, sent: asyncio.Task[web.StreamResponse]) -> None:
        self._sent.discard(sent)
        if not sent.cancelled():
            # That the answer found nobody is no fault; asked, so that nobody is told of it.
            sent.exception()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(f"{request.method} {request.path}")
        taken = (rule for rule in self.rules if rule.take(request.method, request.path))
        rule = next(taken, Rule(""))
        await asyncio.sleep(rule.delay)
        if rule.refuse:
            return _broken(request)
        if rule.status:
            return web.Response(status=rule.status)
        try:
            async with self._ask(request) as answer:
                await asyncio.sleep(rule.late)
                if rule.swallow:
                    await answer.read()
                    return _broken(request)
                return await self._pass_on(request, answer)
        except aiohttp.ClientError:
            return _broken(request)

    @contextlib.asynccontextmanager
    async def _ask(self, request: web.Request) -> AsyncIterator[aiohttp.ClientResponse]:
        assert self._session is not None
        async with self._session.request(
            request.method,
            self.upstream + request.raw_path,
            headers=[(k, v) for k, v in request.headers.items() if k.lower() not in HOP_HEADERS],
            data=await request.read(),
            allow_redirects=False,
        ) as answer:
            yield answer

    async def _pass_on(
        self, request: web.Request, answer: aiohttp.ClientResponse
    ) -> web.StreamResponse:
        response = web.StreamResponse(status=answer.status, reason=answer.reason)
        for key, value in answer.headers.items():
            if key.lower() not in HOP_HEADERS:
                response.headers.add(key, value)
        if request.path == FEED_PATH and answer.status == 200:
            return await self._pass_feed(request, answer, response)
        if answer.content_length is not None:
            response.content_length = answer.content_length
        await response.prepare(request)
        async for piece in answer.content.iter_any():
            await response.write(piece)
        return response

    async def _pass_feed(
        self, request: web.Request, answer: aiohttp.ClientResponse, response: web.StreamResponse
    ) -> web.StreamResponse:
        await response.prepare(request)
        cut_now: asyncio.Future[Cut] = asyncio.get_running_loop().create_future()
        self._feeds.add(cut_now)
        frames = asyncio.create_task(self._pass_frames(answer, response))
        ends: set[asyncio.Future[Any]] = {cut_now, frames}
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            cut = cut_now.result() if cut_now.done() else await frames
        finally:
            frames.cancel()
            await asyncio.gather(frames, return_exceptions=True)
            self._feeds.discard(cut_now)
        if cut is not None and not cut.clean:
            await response.write(b'data: {"id":"evt_')
            _broken(request)
        if cut is not None:
            cut.done.set()
        return response

    async def _pass_frames(
        self, answer: aiohttp.ClientResponse, response: web.StreamResponse
    ) -> Cut | None:
        """Pass frames on until a planned cut is due (returned) or the server ends the feed."""
        rest = b""
        async for piece in answer.content.iter_any():
            *frames, rest = (rest + piece).split(b"\n\n")
            for frame in frames:
                await self._flowing.wait()
                while self._inserts:
                    await response.write(self._inserts.popleft())
                await response.write((frame + b"\n\n") * (2 if self.repeats else 1))
                if self._cuts and self._cuts[0].counts(frame):
                    return self._cuts.popleft()
        return None


def _broken(request: web.Request) -> web.Response:
    """Break the client's connection; the response is for a caller that has to return one."""
    if request.transport is not None:
        request.transport.close()
    return web.Response(status=502)
