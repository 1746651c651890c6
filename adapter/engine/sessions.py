"""The sessions that one connection has open, by id."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Final

from adapter.acp.overlimit import OverLimit, over
from adapter.core.state import Turn
from adapter.engine.client import Attachment, Client
from adapter.engine.engine import FULL, Engine
from adapter.engine.hub import Hub
from adapter.engine.offers import Told
from adapter.engine.pace import Pace
from adapter.limits import Bound
from contract.errors import AcpError, Code, not_sent
from contract.reads import Session
from contract.words import counted

logger = logging.getLogger(__name__)

# In which a connection may make `limits.session_creates` sessions.
PACE_SECONDS: Final = 10.0


@dataclass(slots=True, eq=False)
class Answers:
    """Of one owner: openings that have no answer yet, and whether one of them was answered.

    Until then its client does not know of the session.
    """

    awaited: int = 0
    given: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Open:
    """One opening of a session. Each `session/load` or `session/resume` makes a new one.

    So work that belongs to an older opening is known by `OpenSessions.holds` and changes nothing.
    Openings of one owner share its `answers`.
    """

    hub: Hub
    owner: int
    answers: Answers = field(default_factory=Answers)

    @property
    def session_id(self) -> str:
        return self.hub.session_id


@dataclass(frozen=True, slots=True)
class Aside:
    """A session that is open for its client, though nothing of it is kept but this."""

    session: Session
    directory: str
    owner: int
    told: Told | None

    @property
    def session_id(self) -> str:
        return self.session.id


class OpenSessions:
    """At most `limits.sessions_per_connection`; one more is refused, and the others stay.

    One that is put aside counts as well: its client goes on to use it, and notices nothing. So does
    one that is being closed or deleted, until it is let go of.
    """

    def __init__(self, engine: Engine, client: Client) -> None:
        self._engine = engine
        self._client = client
        self._open: dict[str, Open] = {}
        self._aside: dict[str, Aside] = {}
        self._ending: dict[int, Open | Aside] = {}
        self._pace = Pace(client.limits.session_creates, PACE_SECONDS, engine.clock)

    @contextmanager
    def request(self, session_id: object, *, uses: bool = True) -> Iterator[None]:
        """Serve a request that names this session: one that was put aside is opened again.

        Not for a request that `uses` nothing of it. AcpError -32053 if the engine has no room
        for it; it stays aside then.
        """
        one = None
        if isinstance(session_id, str):
            if uses:
                self._take_up(session_id)
            one = self._open.get(session_id)
        with self._engine.places.request(one.owner if one is not None else None):
            yield

    def get(self, session_id: object) -> Open | None:
        return self._open.get(session_id) if isinstance(session_id, str) else None

    def of(self, session_id: str) -> Open:
        """The session as it is open here. AcpError -32603 `not_open`.

        While it is being opened it is not: an opening that fails would leave its work to nobody.
        """
        one = self._open.get(session_id)
        if one is None:
            raise _not_open(
                "This session is not open on this connection; send session/resume first."
            )
        if not one.answers.given:
            raise _not_open("This session is still being opened; wait for the answer of that.")
        return one

    def is_open(self, one: Open) -> bool:
        """Whether the session is still open for this owner, by this opening or a later one."""
        known = self._open.get(one.hub.session_id)
        return known is not None and known.owner == one.owner

    def holds(self, one: Open) -> bool:
        """Whether this opening is the one that counts: no later one, and no close."""
        return self._open.get(one.hub.session_id) is one

    def check_room(self, session_id: str = "") -> None:
        """AcpError -32053 if one more session is one too many, here or in the engine."""
        if session_id in self._open or session_id in self._aside:
            return
        limit = self._client.limits.sessions_per_connection
        if len(self._open) + len(self._aside) + len(self._ending) >= limit:
            raise over(
                Bound.SESSIONS_PER_CONNECTION,
                f"This connection has {counted(limit, 'session')} open; close one first.",
            )
        if not self._engine.has_room(session_id):
            raise over(Bound.SESSIONS, FULL)

    def check_pace(self) -> None:
        """AcpError -32053 if one more session is made too soon; otherwise it counts as made."""
        if not self._pace.take():
            times = self._client.limits.session_creates
            made = counted(times, "session")
            message = f"This connection made {made} within {PACE_SECONDS:g} s; wait."
            data: dict[str, object] = {"code": "too_often", "retrySafe": True}
            refusal = AcpError(Code.LIMIT, message, data)
            raise OverLimit(Bound.SESSION_CREATES, refusal)

    def check_prompts(self) -> None:
        """AcpError -32053 if one more prompt in flight is one too many, here or in the engine."""
        if self._engine.draining:
            message = "The adapter is about to stop; send this prompt again once it is back."
            raise not_sent(Code.LIMIT, "draining", message, retry_safe=True)
        mine = sum(one.hub.core.busy(one.owner) for one in self.all)
        if mine >= self._client.limits.prompts_per_connection:
            flying = counted(mine, "prompt")
            message = f"This connection has {flying} in flight; wait for the end of one."
            raise _retry(Bound.PROMPTS_PER_CONNECTION, message)
        limit = self._engine.settings.limits.prompts
        if self._engine.turns >= limit:
            room = counted(limit, "prompt")
            message = f"There is room for {room} of all clients; try again later."
            raise _retry(Bound.PROMPTS, message)

    @asynccontextmanager
    async def opening(
        self, session: Session, directory: str, *, ambient: bool
    ) -> AsyncIterator[Open]:
        """Attach this connection; a session that is open here keeps its owner and its turn.

        Inside, the opening is served; if that fails the session is as open as it was before.
        """
        one = self._attach(session, directory, ambient=ambient)
        one.answers.awaited += 1
        try:
            yield one
            one.answers.given = True
        finally:
            one.answers.awaited -= 1
            if not one.answers.given and not one.answers.awaited and self.is_open(one):
                await self.detach(self.take(session.id))

    def _attach(self, session: Session, directory: str, *, ambient: bool) -> Open:
        self.check_room(session.id)
        known = self._open.get(session.id)
        hub = self._engine.hub(session, directory)
        if known is not None:
            one = Open(hub, known.owner, known.answers)
        else:
            one = Open(hub, self._engine.new_owner())
        self._open[session.id] = one
        hub.attach(Attachment(one.owner, self._client, ambient))
        self._keep(one)
        return one

    def _keep(self, one: Open) -> None:
        """See to it that the session is put aside when nobody uses it.

        An attachment that was told nothing is still being opened.
        """
        hub, owner = one.hub, one.owner
        self._engine.places.add(
            owner,
            lambda: hub.resting and hub.choices.told_of(owner) is not None,
            lambda: self._put_aside(hub.session_id),
        )

    def _put_aside(self, session_id: str) -> None:
        one = self._open.pop(session_id)
        choices = one.hub.choices
        session = Session(
            id=session_id, title=choices.title, agent=choices.agent, model=choices.model
        )
        told = choices.told_of(one.owner)
        self._aside[session_id] = Aside(session, one.hub.directory, one.owner, told)
        self._engine.places.discard(one.owner)
        if one.hub.detach(one.owner):
            self._engine.drop(one.hub)

    def _take_up(self, session_id: str) -> None:
        """At once, so that a cancel right behind a prompt finds its turn."""
        aside = self._aside.get(session_id)
        if aside is None:
            return
        try:
            hub = self._engine.hub(aside.session, aside.directory)
        except OverLimit as refusal:
            raise _retry(refusal.bound, refusal.message) from None
        del self._aside[session_id]
        one = self._open[session_id] = Open(hub, aside.owner, Answers(given=True))
        hub.reattach(Attachment(aside.owner, self._client), aside.told, aside.session.title)
        self._keep(one)

    def take(self, session_id: str) -> Open | Aside | None:
        """The session, no longer open here; its hub still knows the attachment.

        `detach` lets go of it, `put_back` makes it open again.
        """
        one = self._open.pop(session_id, None) or self._aside.pop(session_id, None)
        if one is not None:
            self._ending[one.owner] = one
        return one

    async def stop(self, one: Open | Aside | None) -> None:
        """Cancel the connection's own turn in a session that was taken, and wait for its end."""
        if isinstance(one, Open):
            one.hub.cancel(one.owner)
            await one.hub.settled(one.owner)

    async def put_back(self, one: Open | Aside | None) -> None:
        """What was taken could not be ended; one that was opened meanwhile stands in its place."""
        if one is None:
            return
        if one.session_id in self.ids:
            await self.detach(one)
            return
        del self._ending[one.owner]
        if isinstance(one, Open):
            self._open[one.session_id] = one
        else:
            self._aside[one.session_id] = one

    async def detach(self, one: Open | Aside | None) -> None:
        """Let go of a session that was taken."""
        if one is None:
            return
        del self._ending[one.owner]
        self._engine.places.discard(one.owner)
        self._engine.mcp.release(one.session_id, one.owner)
        if isinstance(one, Open) and one.hub.detach(one.owner):
            await self._engine.release(one.hub)

    @property
    def all(self) -> tuple[Open, ...]:
        """As it stands now: requests that are still served may open and close meanwhile.

        What is being closed or deleted is among them.
        """
        ending = (one for one in self._ending.values() if isinstance(one, Open))
        return (*self._open.values(), *ending)

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The connection's own turns in flight, to look at."""
        turns = (one.hub.core.turn_of(one.owner) for one in self.all)
        return tuple(turn for turn in turns if turn is not None)

    @property
    def ids(self) -> frozenset[str]:
        """What is open for the client, put aside or not."""
        return frozenset(self._open) | frozenset(self._aside)

    @property
    def owners(self) -> dict[str, int]:
        """The owner of each of them."""
        aside = {one.session_id: one.owner for one in self._aside.values()}
        return aside | {one.session_id: one.owner for one in self._open.values()}

    async def stop_all(self) -> None:
        """The adapter ends before its client does: what is in flight is stopped, as by a close."""
        await asyncio.gather(*(self.stop(one) for one in self.all))

    async def leave_running(self) -> None:
        """The adapter ends before its client does: what is in flight is left to the server."""
        await asyncio.gather(*(one.hub.leave(one.owner, interrupt=False) for one in self.all))

    async def depart(self, *, interrupt: bool) -> None:
        """The client is gone and the engine stays: end its turns, and let go of every session.

        `interrupt` stops them as a close does, with everything that makes sure of it; otherwise
        they go on at the server. A fault in one session keeps no other.
        """
        for session_id in self.ids:
            self.take(session_id)
        ended = await asyncio.gather(
            *(self._depart(one, interrupt=interrupt) for one in list(self._ending.values())),
            return_exceptions=True,
        )
        for fault in ended:
            if fault is not None:
                logger.error("a session could not be left in good order", exc_info=fault)

    async def _depart(self, one: Open | Aside, *, interrupt: bool) -> None:
        # Not put aside any more, as an attachment that nobody uses would be.
        self._engine.places.discard(one.owner)
        try:
            if interrupt:
                await self.stop(one)
            elif isinstance(one, Open):
                await one.hub.leave(one.owner, interrupt=False)
        finally:
            await self.detach(one)

    def leave(self) -> None:
        """The client is gone: nothing is kept for it any more."""
        for one in (*self._open.values(), *self._aside.values(), *self._ending.values()):
            self._engine.places.discard(one.owner)
            self._engine.mcp.release(one.session_id, one.owner)
        self._aside.clear()


def _not_open(message: str) -> AcpError:
    return not_sent(Code.INTERNAL, "not_open", message, retry_safe=True)


def _retry(bound: Bound, message: str) -> OverLimit:
    """A refusal that may be over in a moment; nothing was sent."""
    return OverLimit(bound, not_sent(Code.LIMIT, "too_many", message, retry_safe=True))
