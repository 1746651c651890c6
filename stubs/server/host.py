"""All parts of the stub, put together; what the routes work on."""

from __future__ import annotations

import asyncio
import os
from collections import Counter, deque
from dataclasses import dataclass
from typing import Final

from stubs.server.background import Background
from stubs.server.compactions import Compactions
from stubs.server.config import Settings
from stubs.server.execution import Executions
from stubs.server.faults import Faults
from stubs.server.feed import Feed
from stubs.server.forms import Forms
from stubs.server.journal import Journal
from stubs.server.mcp import McpHost
from stubs.server.permissions import Permissions
from stubs.server.project import Project
from stubs.server.reload import Reloads
from stubs.server.requests import Requests
from stubs.server.steps import Steps
from stubs.server.store import Item, Session, Store
from stubs.server.subagent import Subagents
from stubs.server.tools import Call, Result, Shop
from stubs.server.wire import Ids, Json, now_ms
from stubs.server.workspace import Workspaces

MAX_LOG: Final = 10_000
# In the order of the server's burst when a location has booted.
BOOTED: Final = (
    "integration",
    "provider",
    "model",
    "agent",
    "command",
    "skill",
    "websearch",
    "reference",
    "plugin",
)


@dataclass(frozen=True, slots=True)
class Seen:
    """A request that came in: its body as text, up to 4,096 bytes of it."""

    method: str
    path: str
    query: str
    body: str


class Host:
    """The state of one stub over its restarts. `admissions` counts, per message id, the times
    that a POST admitted it anew: more than one is a doubled prompt."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.ids = Ids()
        self.store = Store()
        self.feed = Feed(self.ids, settings.feed_bound)
        self.journal = Journal(self.ids, self.store, self.feed.publish)
        self.permissions = Permissions(self.ids, self.store, self.journal)
        self.forms = Forms(self.ids, self.journal)
        self.mcp = McpHost()
        self.background = Background(self._tell)
        self.reloads = Reloads(self.journal.plain)
        self.faults = Faults()
        self.requests = Requests()
        self.log: deque[Seen] = deque(maxlen=MAX_LOG)
        self.admissions: Counter[str] = Counter()
        self.restarts = 0
        shop = Shop(
            self.ids,
            self.journal,
            self.permissions,
            self.forms,
            Workspaces(),
            self._subagent,
            self.mcp,
            self.background,
        )
        compactions = Compactions(settings, self.ids, self.journal)
        steps = Steps(settings, self.ids, self.journal, shop, compactions)
        self.executions = Executions(self.journal, steps)
        self.subagents = Subagents(
            self.ids, self.store, self.journal, self.executions, self.background
        )
        self._boots: dict[str, asyncio.Task[None]] = {}
        self._half_booted: set[str] = set()
        self._located: set[str] = set()

    @property
    def pid(self) -> int:
        """The process id that /api/info shows; another one after each restart."""
        return os.getpid() + self.restarts

    def project(self, directory: str) -> Project:
        """The directory's configuration, read anew."""
        return Project(directory)

    def listed(self, directory: str) -> Project | None:
        """What the lists of a directory are of: of nothing at first, of what is built in half-way
        through its boot, of its configuration from then on."""
        if self.boot(directory) is None:
            return self.project(directory)
        return Project(directory, configured=False) if directory in self._half_booted else None

    def has(self, directory: str) -> bool:
        """Whether a location exists; one that was used does until the server ends."""
        if directory not in self._located and not self.settings.has(directory):
            return False
        self._located.add(directory)
        return True

    def boot(self, directory: str) -> asyncio.Task[None] | None:
        """The boot of a directory that is used for the first time; None once it is over."""
        self.reloads.watch(directory)
        task = self._boots.get(directory)
        if task is None:
            if not self.settings.boot:
                return None
            task = asyncio.create_task(self._boot(directory))
            self._boots[directory] = task
        return None if task.done() else task

    async def kill(self) -> None:
        """Lose what runs, as kill -9: no event, no row is written after this."""
        await self.subagents.abandon()
        await self.background.abandon()
        await self.executions.abandon()
        self.forms.clear()
        self.permissions.asks.clear()
        await self.mcp.clear()
        await self.stop_boots()

    async def stop_boots(self) -> None:
        """Forget that directories were booted."""
        await self.reloads.stop()
        boots = list(self._boots.values())
        self._boots.clear()
        self._half_booted.clear()
        self._located.clear()
        for boot in boots:
            boot.cancel()
        await asyncio.gather(*boots, return_exceptions=True)

    async def _boot(self, directory: str) -> None:
        await asyncio.sleep(self.settings.boot / 2)
        self._half_booted.add(directory)
        await asyncio.sleep(self.settings.boot / 2)
        for name in BOOTED:
            self.journal.plain(f"{name}.updated", {}, directory)

    def _tell(self, session: Session, payload: Json) -> None:
        """A synthetic item, as long as the session is there."""
        if session.id in self.store.sessions:
            item = Item(self.ids.make("msg"), "synthetic", payload, "steer", now_ms())
            self.journal.enqueue(session, item)
            self.executions.wake(session)

    async def _subagent(self, call: Call) -> Result:
        return await self.subagents.run(call)
