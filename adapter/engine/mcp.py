"""MCP servers of clients, registered at the server for as long as a session is open.

They stand in the directory there, so that every session of it sees their tools; the name is of one
session. Whatever goes wrong with one, the session goes on without it. What the server says of it
is neither told nor logged: it may quote what the client keeps secret.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence, Set
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from adapter.acp.mcpservers import Json, config, registered_name, wanted
from adapter.config import McpSettings
from adapter.engine.mcpmisses import Miss, NotAdded, is_unanswered, reason_in, why
from adapter.engine.tasks import Tasks
from adapter.upstream.errors import UpstreamError
from adapter.upstream.mcp import McpServers
from contract.mcp import CONNECTED, PENDING, McpServer, McpStatus

logger = logging.getLogger(__name__)

# Of the time for all, what one may take to start, and again to list its tools.
START_SHARE: Final = 0.4
# Seconds before each further try of a removal that failed; behind the last, and for whatever is
# not removed at the exit, the next connection of the feed or the last word of the process.
PAUSES: Final = (1.0, 5.0, 30.0, 120.0)
# Registrations that could not be removed and are remembered; one more is left at the server.
LEFT: Final = 256


@dataclass(slots=True)
class _Entry:
    """`holders` are the owners that brought it; without one it is to be removed.

    `failures` counts the removals that failed since somebody held it, or since the feed came back.
    """

    label: str
    config: Json = field(repr=False)
    holders: set[int] = field(default_factory=set)
    failures: int = 0


@dataclass(slots=True)
class _Session:
    """`lock` is held while anything of the session changes at the server; `users` wait for it.

    `stale`: a check is due. `unanswered`: the last one had no answer.
    """

    directory: str
    entries: dict[str, _Entry] = field(default_factory=dict)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    users: int = 0
    removal: asyncio.Task[None] | None = None
    again: asyncio.Task[None] | None = None
    check: asyncio.Task[None] | None = None
    stale: bool = False
    unanswered: bool = False

    @property
    def unheld(self) -> list[str]:
        return [name for name, entry in self.entries.items() if not entry.holders]


class Registrations:
    """Every registration of an engine: at most `MCP_SERVERS` for each attachment.

    An entry stands here before its request is sent and until its removal has succeeded, so that
    a client that leaves in between leaves nothing behind. A removal that comes late may hit what
    another adapter has registered for the same session: the server tells of every removal, and
    that adapter registers it again (`recheck`).
    """

    def __init__(
        self,
        servers: McpServers,
        settings: McpSettings,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]],
        lost: Callable[[str, int, Sequence[NotAdded]], None],
    ) -> None:
        """`lost(session, owner, what)`: what was there did not come back."""
        self._servers = servers
        self.settings = settings
        self._clock = clock
        self._sleep = sleep
        self._lost = lost
        self._sessions: dict[str, _Session] = {}
        self._tasks = Tasks()

    async def aclose(self) -> None:
        await self._tasks.aclose()

    def wanted(self, raw: Sequence[object]) -> tuple[McpServer, ...]:
        """What is to be registered of a client's `mcpServers`. AcpError for what is refused."""
        return wanted(self.settings.policy, raw)

    async def register(
        self, session_id: str, directory: str, owner: int, servers: Sequence[McpServer]
    ) -> list[NotAdded]:
        """Make `servers` the ones of this owner; those that were not added, with the reason.

        Takes `settings.seconds` and a reading at most. What stands already is left alone, what
        the owner brought before and no longer wants is removed.
        """
        session = self._sessions.get(session_id)
        if session is None:
            if not servers:
                return []
            session = self._sessions[session_id] = _Session(directory)
        end = self._clock() + self.settings.seconds
        names = {registered_name(session_id, server.name): server for server in servers}
        session.users += 1
        try:
            for name, entry in session.entries.items():
                if name not in names:
                    entry.holders.discard(owner)
            self._sweep(session_id)
            if not names:
                return []
            async with _held(session.lock, self.settings.seconds) as held:
                if not held:
                    reason = "what the session brought before is still being changed"
                    return [NotAdded(one.name, reason) for one in servers]
                return await self._register(session, owner, names, end)
        finally:
            session.users -= 1
            self._sweep(session_id)

    def release(self, session_id: str, owner: int) -> None:
        """The owner has let go of the session: what nobody else brought is removed."""
        session = self._sessions.get(session_id)
        if session is not None:
            for entry in session.entries.values():
                entry.holders.discard(owner)
            self._sweep(session_id)

    async def settled(self, session_id: str) -> None:
        """Wait until each removal of the session was tried, for `settings.patience` at most."""
        session = self._sessions.get(session_id)
        if session is not None and session.removal is not None:
            await asyncio.wait({session.removal}, timeout=self.settings.patience)

    def unheld(self) -> list[tuple[str, str]]:
        """(directory, name) of what is to be removed and is not known to be."""
        return [
            (session.directory, name)
            for session in self._sessions.values()
            for name in session.unheld
        ]

    def reconnected(self) -> None:
        """The server answers again: what it left without an answer is tried anew."""
        for session_id, session in list(self._sessions.items()):
            for name in session.unheld:
                session.entries[name].failures = 0
            if session.unanswered:
                self._check(session_id, session)
            self._sweep(session_id)

    def recheck(self, directory: str | None) -> None:
        """What is registered there may be forgotten: the server is another process, or it read
        its configuration anew. What is missing is registered again. None: every directory."""
        for session_id, session in self._sessions.items():
            if directory in (None, session.directory):
                self._check(session_id, session)

    def _check(self, session_id: str, session: _Session) -> None:
        session.stale = True
        if session.check is None or session.check.done():
            work = self._recheck(session_id, session)
            session.check = self._tasks.start(work, f"check of MCP of {session_id}")

    async def _recheck(self, session_id: str, session: _Session) -> None:
        """A check without an answer is repeated once, and then when the server answers again."""
        repeats = 0
        while session.stale:
            await self._sleep(PAUSES[0] if session.unanswered else self.settings.settle)
            session.stale = session.unanswered = False
            async with self._changing(session_id, session):
                there = await self._read(session)
                session.unanswered = there is None
                held = {
                    name: one
                    for name, one in session.entries.items()
                    if one.holders and there is not None and name not in there
                }
                holders = {name: frozenset(one.holders) for name, one in held.items()}
                end = self._clock() + self.settings.seconds
                failures = await self._put_all(session, held, end, again=True)
            for owner in frozenset().union(*holders.values()):
                lost = [failure for failure, name in failures if owner in holders[name]]
                if lost:
                    self._lost(session_id, owner, lost)
            if session.unanswered and not repeats:
                repeats += 1
                session.stale = True

    async def _register(
        self, session: _Session, owner: int, names: Mapping[str, McpServer], end: float
    ) -> list[NotAdded]:
        known = await self._read(session) if names.keys() & session.entries.keys() else None
        fresh: dict[str, _Entry] = {}
        for name, server in names.items():
            # So that the server itself says why one failed, before the time is over.
            settings = config(server, self.settings.seconds * START_SHARE)
            entry = session.entries.get(name)
            if entry is None or entry.config != settings or not _stands(known, name):
                holders = entry.holders if entry is not None else set()
                entry = fresh[name] = _Entry(server.name, settings, holders)
                session.entries[name] = entry
            entry.holders.add(owner)
            entry.failures = 0
        return [failure for failure, _ in await self._put_all(session, fresh, end)]

    async def _put_all(
        self, session: _Session, fresh: Mapping[str, _Entry], end: float, *, again: bool = False
    ) -> list[tuple[NotAdded, str]]:
        """Register these; the failures with their names. Nobody holds them any more then.

        `again`: one without an answer is still held, and no failure so far.
        """
        if not fresh:
            return []
        misses: dict[str, Miss] = {}
        for name, entry in fresh.items():
            miss = await self._put(session.directory, name, entry, end)
            if miss is not None:
                misses[name] = miss
        states = await self._settled(session, fresh.keys() - misses.keys(), end)
        failures = []
        for name, entry in fresh.items():
            if name not in misses and _stands(states, name):
                continue
            miss = misses.get(name) or Miss(reason_in(states, name), states is None)
            if again and miss.is_unanswered:
                session.unanswered = True
                continue
            failures.append((NotAdded(entry.label, miss.reason), name))
            entry.holders.clear()
        if len(failures) < len(fresh):
            # The tools are offered about 100 ms after the server says that they are there.
            await self._sleep(self.settings.settle)
        return failures

    async def _put(self, directory: str, name: str, entry: _Entry, end: float) -> Miss | None:
        """None if it was taken. It may be at work all the same, so it is removed else."""
        left = end - self._clock()
        late = Miss(f"it was not there within the {self.settings.seconds:g} s that all have")
        if left <= 0:
            return late
        try:
            await self._servers.put(directory, name, entry.config, left)
        except UpstreamError as error:
            phrase = why(error)
            logger.info("the MCP server %s was not added: %s", name, phrase)
            return late if self._clock() >= end else Miss(phrase, is_unanswered(error))
        return None

    async def _settled(
        self, session: _Session, names: Set[str], end: float
    ) -> dict[str, McpStatus] | None:
        """What became of these: a directory that is used for the first time answers a PUT at once
        and goes on with the start."""
        states = await self._read(session) if names else None
        while states is not None and self._clock() < end:
            if all(states[name].status != PENDING for name in names & states.keys()):
                break
            await self._sleep(self.settings.settle)
            states = await self._read(session)
        return states

    async def _read(self, session: _Session) -> dict[str, McpStatus] | None:
        """The state of each server of the directory; None if the server does not say it."""
        try:
            return await self._servers.statuses(session.directory, self.settings.patience)
        except UpstreamError as error:
            logger.info("the MCP servers of %s cannot be read: %s", session.directory, why(error))
            return None

    def _sweep(self, session_id: str) -> None:
        """Remove what nobody holds, and forget a session that has nothing left."""
        session = self._sessions.get(session_id)
        if session is None:
            return
        if session.unheld and (session.removal is None or session.removal.done()):
            work = self._remove(session_id, session)
            session.removal = self._tasks.start(work, f"removal of MCP of {session_id}")
        if not session.entries and not session.users:
            del self._sessions[session_id]
            for task in (session.again, session.check):
                if task is not None:
                    task.cancel()

    async def _remove(self, session_id: str, session: _Session) -> None:
        """One try for each that nobody holds; what failed is tried again after a pause."""
        tried: set[str] = set()
        async with self._changing(session_id, session):
            while rest := [name for name in session.unheld if name not in tried]:
                name = rest[0]
                tried.add(name)
                try:
                    await self._servers.remove(session.directory, name, self.settings.removal)
                except UpstreamError as error:
                    self._not_removed(session, name, error)
                else:
                    del session.entries[name]
        if not session.unheld or session.again is not None:
            return
        fewest = min(session.entries[name].failures for name in session.unheld)
        if fewest <= len(PAUSES):
            pause = PAUSES[max(fewest - 1, 0)]
            later = self._remove_later(session_id, session, pause)
            session.again = self._tasks.start(later, f"later removal of MCP of {session_id}")

    async def _remove_later(self, session_id: str, session: _Session, pause: float) -> None:
        await self._sleep(pause)
        session.again = None
        self._sweep(session_id)

    def _not_removed(self, session: _Session, name: str, error: UpstreamError) -> None:
        entry = session.entries[name]
        entry.failures += 1
        if entry.failures > 1:
            logger.info("the MCP server %s was not removed again: %s", name, why(error))
            return
        logger.warning("the MCP server %s was not removed: %s", name, why(error))
        known = [one for each in self._sessions.values() for one in each.entries.values()]
        if sum(one.failures > 0 for one in known) > LEFT:
            logger.warning("the MCP server %s is left at the server", name)
            del session.entries[name]

    @asynccontextmanager
    async def _changing(self, session_id: str, session: _Session) -> AsyncIterator[None]:
        session.users += 1
        try:
            async with session.lock:
                yield
        finally:
            session.users -= 1
            self._sweep(session_id)


@asynccontextmanager
async def _held(lock: asyncio.Lock, seconds: float) -> AsyncIterator[bool]:
    """Whether the lock was free in time; it is held inside then."""
    try:
        async with asyncio.timeout(seconds):
            await lock.acquire()
    except TimeoutError:
        yield False
        return
    try:
        yield True
    finally:
        lock.release()


def _stands(states: Mapping[str, McpStatus] | None, name: str) -> bool:
    return states is not None and name in states and states[name].status == CONNECTED
