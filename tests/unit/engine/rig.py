"""What the modules of the engine share in their tests: services, a feed that is up, steps."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Final

import httpx

from adapter.config import Settings
from adapter.core import values as v
from adapter.core.offsets import OffsetTable
from adapter.engine.following import Following
from adapter.engine.recorder import pace
from adapter.engine.services import Services
from adapter.engine.submission import Submission
from adapter.upstream.catalogue import Catalogues
from adapter.upstream.client import Server
from adapter.upstream.feed import Feed
from adapter.upstream.watch import Watch
from contract.events import CatalogueChanged, Event

URL: Final = "http://127.0.0.1:4096"
API: Final = f"{URL}/api"
SESSION: Final = f"{API}/session/ses_a"
GONE: Final = httpx.Response(404, json={"_tag": "SessionNotFoundError", "message": "no"})


async def no_pause(_: float) -> None:
    return None


class Nobody:
    """A sink that hears nothing."""

    def connected(self) -> None: ...

    def event(self, event: Event | CatalogueChanged, size: int) -> None: ...

    def lost(self, reason: str) -> None: ...

    def unauthorised(self) -> None: ...


class FixedFeed(Feed):
    """A feed that is up or not, as the test says."""

    def __init__(self, server: Server, *, up: bool) -> None:
        super().__init__(server, Watch(), Nobody())
        self._is_up = up

    async def ready(self, timeout: float) -> bool:
        return self._is_up


@dataclass
class Time:
    """A clock that only `sleep` moves."""

    now: float = 1000.0
    pauses: list[float] = field(default_factory=list)

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


@dataclass
class Told:
    """What was handed to the core, and to the engine."""

    steps: list[v.Input] = field(default_factory=list)
    pids: list[int] = field(default_factory=list)
    following: Following = field(default_factory=lambda: Following(Watch()))
    feed_is_up: bool = True

    def step(self, given: v.Input) -> None:
        self.steps.append(given)

    def services(
        self,
        server: Server,
        settings: Settings | None = None,
        time: Time | None = None,
    ) -> Services:
        settings = settings or Settings()
        time = time or Time()
        return Services(
            server=server,
            settings=settings,
            catalogues=Catalogues(server, settings.catalogue, clock=time.clock, sleep=time.sleep),
            offsets=OffsetTable(),
            submission=Submission(
                server, FixedFeed(server, up=True), settings, time.clock, time.sleep
            ),
            clock=time.clock,
            sleep=time.sleep,
            feed_is_up=lambda: self.feed_is_up,
            pid=lambda: 1,
            saw_pid=self.pids.append,
            following=self.following,
            context_size=lambda directory, model: 1000,
            flights=pace(time.clock),
        )


def listed(*items: object) -> httpx.Response:
    """A list under `data`."""
    return httpx.Response(200, json={"data": list(items)})


def unreachable(_: httpx.Request) -> httpx.Response:
    """A refused connection, whatever is asked."""
    raise httpx.ConnectError("refused")
