"""One engine: one server, one feed, every session that is open on any connection.

The engine listens to the feed and hands each event to the session it belongs to, by its root.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from adapter.acp.inbound import Inbound
from adapter.acp.overlimit import over
from adapter.config import Settings
from adapter.core import values as v
from adapter.core.offsets import OffsetTable
from adapter.engine import recorder
from adapter.engine.counters import Counters
from adapter.engine.following import Following
from adapter.engine.hub import Hub
from adapter.engine.idle import Places
from adapter.engine.mcp import Registrations
from adapter.engine.mcpmisses import NotAdded, not_added
from adapter.engine.observer import Observer, Silent
from adapter.engine.routecheck import RouteCheck
from adapter.engine.services import Services
from adapter.engine.submission import Submission
from adapter.engine.tasks import Tasks
from adapter.limits import Bound
from adapter.upstream.acceptance import Acceptance
from adapter.upstream.catalogue import Catalogues
from adapter.upstream.client import Server
from adapter.upstream.errors import Unauthorised, UpstreamError
from adapter.upstream.feed import Feed
from adapter.upstream.watch import Watch
from contract.events import CatalogueChanged, Event, SessionCreated
from contract.reads import Session
from contract.shapes import GLOBAL

logger = logging.getLogger(__name__)

FULL: Final = "All sessions that this adapter can have open are in use; close one, or try later."
# Seconds before the feed is read again after a fault of ours.
FAULT_PAUSE: Final = 0.5

Clock = Callable[[], float]
Sleep = Callable[[float], Awaitable[None]]


class Engine:
    """Use as a context manager: the feed runs inside, every session ends with it."""

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Clock = time.monotonic,
        sleep: Sleep = asyncio.sleep,
        observer: Observer | None = None,
    ) -> None:
        self.settings = settings
        self.observer = observer or Silent()
        self.clock = clock
        self.sleep = sleep
        # No new prompt is taken any more: the process is about to end.
        self.draining = False
        self.offsets = OffsetTable()
        self._acceptance = Acceptance(self._judged)
        self.server = Server(
            settings.server,
            settings.credential,
            settings.http,
            clock=clock,
            requested=self.observer.requested,
            acceptance=self._acceptance,
        )
        self.catalogues = Catalogues(self.server, settings.catalogue, clock=clock, sleep=sleep)
        self.mcp = Registrations(self.server.mcp, settings.mcp, clock, sleep, self._lost_mcp)
        self.counters = Counters()
        self.inbound = Inbound(settings.limits.inbound_bytes)
        self.places = Places(settings.limits, clock, self.counters)
        self.watch = Watch()
        self.following = Following(self.watch)
        self.feed = Feed(self.server, self.watch, self, clock, settings.feed, sleep=sleep)
        self._services = Services(
            server=self.server,
            settings=settings,
            catalogues=self.catalogues,
            offsets=self.offsets,
            submission=Submission(self.server, self.feed, settings, clock, sleep),
            clock=clock,
            sleep=sleep,
            feed_is_up=lambda: self.feed.is_connected,
            pid=lambda: self._pid,
            saw_pid=self._saw_pid,
            following=self.following,
            context_size=self._context_size,
            flights=recorder.pace(clock),
            counters=self.counters,
            observer=self.observer,
        )
        self._hubs: dict[str, Hub] = {}
        # What waits until a session that is released owes nothing more.
        self._releases: dict[str, asyncio.Task[None]] = {}
        self._owners = itertools.count(1)
        self._pid = 0
        self._was_up = False
        self._lost_at: float | None = None
        self._refusals = 0
        self._version = ""
        self._route_check = RouteCheck(self.server)
        self._tasks = Tasks()
        self._reading: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Engine:
        self._reading = self._tasks.start(self._read(), "feed")
        return self

    async def __aexit__(self, *_: object) -> None:
        owing = [hub for hub in self.hubs if hub.core.owes_a_refusal]
        await asyncio.gather(*(hub.part() for hub in owing))
        self.places.close()
        await self._tasks.aclose()
        await self._route_check.aclose()
        hubs = list(self._hubs.values())
        for hub in hubs:
            hub.close()
        for hub in hubs:
            await hub.aclose()
        await self.mcp.aclose()
        await self.catalogues.aclose()
        await self.server.aclose()

    # --- sessions -------------------------------------------------------------------------

    def new_owner(self) -> int:
        """A number for one attachment, never used again."""
        return next(self._owners)

    def hub(self, session: Session, directory: str) -> Hub:
        """The hub of a session, made at its first attachment.

        AcpError -32053 at the limit, unless a session that is idle makes room for it.
        """
        hub = self._hubs.get(session.id)
        if hub is None:
            while len(self._hubs) >= self.settings.limits.sessions:
                if not self.places.make_room():
                    raise over(Bound.SESSIONS, FULL)
            if not self.following.open(session.id):
                raise over(Bound.SESSIONS, FULL)
            hub = self._hubs[session.id] = Hub(self._services, session, directory)
        return hub

    def has_room(self, session_id: str) -> bool:
        """Whether the session could be opened now."""
        is_full = len(self._hubs) >= self.settings.limits.sessions
        return not is_full or session_id in self._hubs or self.places.could_make_room

    @property
    def hubs(self) -> tuple[Hub, ...]:
        """Every session that is open and not put aside, as it stands now."""
        return tuple(self._hubs.values())

    @property
    def server_seen(self) -> tuple[str, int]:
        """Version and process id of the server that answered last; ("", 0) before."""
        return self._version, self._pid

    @property
    def is_reading(self) -> bool:
        """Whether somebody looks after the feed, be it up or down, and gets on with it."""
        return self._reading is not None and not self._reading.done() and self.feed.is_turning

    def reconfigure(self, settings: Settings) -> None:
        """Go by other settings of the same server from now on.

        What was measured out when it began keeps its limits: a client its own, an open session
        its own. The times of the server's connections and of the feed stay as well.
        """
        is_new = settings.credential != self.settings.credential
        self.settings = self._services.settings = settings
        self.mcp.settings = settings.mcp
        self.inbound.limit = settings.limits.inbound_bytes
        self.places.go_by(settings.limits)
        self.server.authenticate(settings.credential)
        if is_new:
            # The feed lives on the old one, and nobody else may ask for long.
            self._acceptance.renew()
            self._tasks.start(self._try_password(), "the new password")

    async def _try_password(self) -> None:
        """Ask for anything: the answer is judged where it comes in."""
        try:
            await self.server.info()
        except Unauthorised:
            return
        except UpstreamError as error:
            logger.info("whether the server takes the new password is open: %s", error)

    def _judged(self, refused: bool) -> None:
        credential = self.settings.credential
        if not refused:
            logger.warning("the OpenCode server takes the password again")
        elif credential is None:
            logger.warning("the OpenCode server wants a password, and there is none")
        else:
            logger.warning("the OpenCode server refuses the password of %s", credential.source)

    @property
    def is_refused(self) -> bool:
        """Whether the server refuses the password, of the feed or of any request."""
        return self._acceptance.is_refused

    @property
    def open_sessions(self) -> int:
        """Sessions that a client has open and that are not put aside."""
        return len(self._hubs)

    @property
    def turns(self) -> int:
        """Prompts in flight, of every client."""
        return sum(len(hub.core.turn_ids) for hub in self._hubs.values())

    def tables(self) -> dict[str, int]:
        """Sizes of what is kept for clients, as they stand now."""
        return {
            "sessions": len(self._hubs),
            "followed": len(self.following),
            "watched": len(self.watch),
            "attachments": len(self.places),
            "turns": self.turns,
            "calls": sum(hub.calls for hub in self._hubs.values()),
        }

    async def release(self, hub: Hub) -> None:
        """Forget a session that nobody has open, once the server is owed nothing."""
        if hub.owes:
            # The last one counts: a session may be opened again meanwhile, and come to owe more.
            before = self._releases.get(hub.session_id)
            if before is not None:
                before.cancel()
            later = self._tasks.start(self._release_later(hub), f"release of {hub.session_id}")
            self._releases[hub.session_id] = later
        else:
            await self._forget(hub)

    async def _release_later(self, hub: Hub) -> None:
        await hub.rest()
        if not hub.attached:
            await self._forget(hub)

    def drop(self, hub: Hub) -> None:
        """Forget a session at once that nobody has open and that has nothing in flight."""
        if self._take_out(hub):
            self._tasks.start(hub.aclose(), f"end of {hub.session_id}")

    async def _forget(self, hub: Hub) -> None:
        if self._take_out(hub):
            await hub.aclose()

    def _take_out(self, hub: Hub) -> bool:
        """At once: nothing fires, and nobody waits, once it is out of the table."""
        if self._hubs.get(hub.session_id) is not hub:
            return False
        hub.close()
        del self._hubs[hub.session_id]
        self.following.close(hub.session_id)
        self._releases.pop(hub.session_id, None)
        return True

    async def check_contract(self) -> None:
        """Refuse a server without a required route: AcpError -32054. Checked once it answers."""
        await self._route_check.passed()

    # --- the feed's sink ------------------------------------------------------------------

    def connected(self) -> None:
        self._was_up = True
        if self._lost_at is not None:
            self.observer.gap(self.clock() - self._lost_at)
            self._lost_at = None
        self._refusals = 0
        self.catalogues.invalidate()
        for hub in self._hubs.values():
            hub.feed_back()
        self._tasks.start(self._look_at_server(), "look at the server")

    def event(self, event: Event | CatalogueChanged, size: int) -> None:
        if isinstance(event, CatalogueChanged):
            self.observer.event(f"{event.what}.updated")
            self._catalogue_changed(event.directory)
            return
        self.observer.event(event.type)
        if isinstance(event, SessionCreated) and event.parent_id is not None:
            root = self.following.root_of(event.parent_id)
            if root is not None:
                self.following.add(event.session_id, root)
        hub = self._hubs.get(self.following.root_of(event.session_id) or "")
        if hub is not None:
            hub.hear(event, size)
        elif event.session_id == GLOBAL:
            for hub in self._hubs.values():
                hub.hear(event, size)

    def _catalogue_changed(self, directory: str | None) -> None:
        self.catalogues.invalidate(directory)
        self.mcp.recheck(directory)
        for hub in self._hubs.values():
            if directory in (None, hub.directory):
                hub.choices.changed(settle=self.settings.catalogue.settle)

    def lost(self, reason: str) -> None:
        if not self._was_up:
            return
        self._was_up = False
        self._lost_at = self.clock()
        logger.warning("the feed is lost: %s", reason)
        for hub in self._hubs.values():
            hub.feed_lost()

    def unauthorised(self) -> None:
        """The second refusal in a row ends the turns: a single one may be a proxy's whim."""
        self.lost("the server refused the password")
        self._refusals += 1
        if self._refusals > 1:
            for hub in self._hubs.values():
                hub.unauthorised()

    # --- shared by the hubs ---------------------------------------------------------------

    def _saw_pid(self, pid: int) -> None:
        """Whoever reads it first: a reading after a gap, or the look at a new connection."""
        if pid and self._pid not in (0, pid):
            self._route_check.forget()
            self.mcp.recheck(None)
        self._pid = pid or self._pid

    def _context_size(self, directory: str, model: str | None) -> int | None:
        catalogue = self.catalogues.last(directory)
        for one in catalogue.models if catalogue is not None else ():
            if one.key == model:
                return one.limit.context
        return None

    async def _look_at_server(self) -> None:
        connection = self.feed.counters.connections
        try:
            info = await self.server.info()
        except UpstreamError as error:
            logger.info("the server does not say who it is: %s", error)
            return
        if connection != self.feed.counters.connections:
            # An answer of before a reconnect may be that of another process.
            return
        self._saw_pid(info.pid)
        self.mcp.reconnected()
        self._version = info.version
        for hub in self._hubs.values():
            hub.step(v.ServerSeen(info.pid))

    def _lost_mcp(self, session_id: str, owner: int, servers: Sequence[NotAdded]) -> None:
        hub = self._hubs.get(session_id)
        if hub is not None:
            hub.notify(not_added(owner, servers))

    async def _read(self) -> None:
        """Listen for ever. A fault of ours in one event is a gap: the reads make good for it."""
        while True:
            try:
                await self.feed.run()
            except Exception:
                logger.exception("an event could not be taken")
            self.lost("the adapter failed at an event")
            await self.sleep(FAULT_PAUSE)
