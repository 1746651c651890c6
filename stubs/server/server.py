"""The stub as a server on loopback: start, stop, restarts, and the faults of the feed."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from typing import Final, Literal, Self

from aiohttp import web

from stubs.server.config import Settings
from stubs.server.control import add_control
from stubs.server.faults import Faults
from stubs.server.feed import Cut, End, Feed
from stubs.server.host import Host, Seen
from stubs.server.http import make_app
from stubs.server.wire import Json

LOOPBACK: Final = "127.0.0.1"
Restart = Literal["lost", "terminated", "finished"]


class StubServer:
    """`async with StubServer(Settings(...)) as stub`: the v2 server at `stub.url`.

    `faults` switches faults of requests, `feed` those of the event feed, `log` holds the requests
    seen, `admissions` counts per message id how often it was admitted anew. State lives as long
    as this object and survives `restart`. Raises OSError when the port is taken.
    """

    def __init__(self, settings: Settings | None = None, port: int = 0) -> None:
        self.host = Host(settings or Settings())
        self.url = ""
        self._port = port
        self._runner: web.AppRunner | None = None
        self._restart: asyncio.Task[None] | None = None

    @property
    def faults(self) -> Faults:
        """Faults of requests."""
        return self.host.faults

    @property
    def feed(self) -> Feed:
        """The event feed: `cut`, `close_all`, `hush`, `publish`, `publish_raw`."""
        return self.host.feed

    @property
    def log(self) -> deque[Seen]:
        """The requests seen, oldest first."""
        return self.host.log

    @property
    def admissions(self) -> Counter[str]:
        """How often each message id was admitted."""
        return self.host.admissions

    async def __aenter__(self) -> Self:
        await self._listen()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._restart is not None:
            self._restart.cancel()
            await asyncio.wait([self._restart])
        await self._hang_up()
        await self.host.kill()

    def cut_feed(
        self,
        after: int = 0,
        *,
        torn: bool = False,
        session: str | None = None,
        pattern: str | None = None,
        later: bool = False,
    ) -> None:
        """End the present feed connections after `after` more events (0: now).

        Only events of `session` count if it is given, and only those whose type `pattern` finds.
        `torn` breaks the body off; `later` cuts the connections to come in the same way.
        """
        self.feed.cut(Cut(after, End.TORN if torn else End.CLEAN, session, pattern), later=later)

    def inject(self, event: Json) -> None:
        """Send an event as it is to every feed connection."""
        self.feed.publish(event)

    def inject_oversize(self, size: int, session: str = "ses_elsewhere") -> None:
        """Send one event of `size` bytes and more, of a session."""
        item = {"type": "user", "payload": {"text": "x" * size}, "delivery": "queue"}
        data = {"sessionID": session, "inboxID": "msg_oversize", "item": item}
        self.inject({"id": "evt_oversize", "type": "session.oversize", "data": data})

    async def restart(self, kind: Restart, down: float = 0.0) -> None:
        """A restart on the same port with another pid; connections are refused meanwhile.

        lost        as kill -9: what runs is lost and nothing of it is written
        terminated  as SIGTERM: what runs is aborted and written, without an idle row
        finished    what runs is completed while nobody is connected
        The port is closed for at least `down` seconds.
        """
        self.feed.close_all(End.TORN)
        if kind == "lost":
            await self._cut_off()
            await self.host.kill()
        await self._hang_up()
        if kind == "lost":
            await self.host.kill()  # what came while the connections were closed
        elif kind == "terminated":
            await self.host.executions.terminate()
            await self.host.kill()
        else:
            await self.host.executions.idle()
        self.host.restarts += 1
        await asyncio.sleep(down)
        await self._listen()

    def restart_soon(self, kind: Restart, down: float = 0.0) -> None:
        """`restart` from within a request."""
        self._restart = asyncio.create_task(self.restart(kind, down))

    async def _listen(self) -> None:
        app = make_app(self.host)
        add_control(app, self)
        runner = web.AppRunner(
            app,
            access_log=None,
            keepalive_timeout=self.host.settings.keep_alive,
            shutdown_timeout=0.05,
            handler_cancellation=True,
        )
        await runner.setup()
        self._runner = runner
        await web.TCPSite(runner, LOOPBACK, self._port, reuse_address=True).start()
        self._port = runner.addresses[0][1]
        self.url = f"http://{LOOPBACK}:{self._port}"

    async def _cut_off(self) -> None:
        """Nobody sees a server that has lost a part of its state: no request is answered more."""
        if self._runner is None:
            return
        for site in list(self._runner.sites):
            await site.stop()
        server = self._runner.server
        for connection in server.connections if server is not None else ():
            if connection.transport is not None:
                connection.transport.abort()

    async def _hang_up(self) -> None:
        """Close the port and every connection."""
        runner, self._runner = self._runner, None
        if runner is not None:
            self.feed.close_all(End.TORN)
            await runner.cleanup()
            await self.host.requests.drop()
