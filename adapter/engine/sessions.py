"""The sessions that one connection has open, by id."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from adapter.acp.overlimit import OverLimit, over
from adapter.engine.client import Attachment, Client
from adapter.engine.engine import FULL, Engine
from adapter.engine.hub import Hub
from adapter.engine.offers import Told
from adapter.limits import Bound
from contract.errors import Code, not_sent
from contract.reads import Session


@dataclass(frozen=True, slots=True, eq=False)
class Open:
    """One opening of a session. Each `session/load` or `session/resume` makes a new one.

    So work that belongs to an older opening is known by `OpenSessions.holds` and changes nothing.
    """

    hub: Hub
    owner: int


@dataclass(frozen=True, slots=True)
class Aside:
    """A session that is open for its client, though nothing of it is kept but this."""

    session: Session
    directory: str
    owner: int
    told: Told | None


class OpenSessions:
    """At most `limits.sessions_per_connection`; one more is refused, and the others stay.

    One that is put aside counts as well: its client goes on to use it, and notices nothing.
    """

    def __init__(self, engine: Engine, client: Client) -> None:
        self._engine = engine
        self._client = client
        self._open: dict[str, Open] = {}
        self._aside: dict[str, Aside] = {}

    @contextmanager
    def request(self, session_id: object) -> Iterator[None]:
        """Serve a request that names this session: one that was put aside is opened again.

        AcpError -32053 if the engine has no room for it; it stays aside then.
        """
        one = None
        if isinstance(session_id, str):
            self._take_up(session_id)
            one = self._open.get(session_id)
        with self._engine.places.request(one.owner if one is not None else None):
            yield

    def get(self, session_id: object) -> Open | None:
        return self._open.get(session_id) if isinstance(session_id, str) else None

    def of(self, session_id: str) -> Open:
        """The session as it is open here. AcpError -32603 `not_open`."""
        one = self._open.get(session_id)
        if one is None:
            raise not_sent(
                Code.INTERNAL,
                "not_open",
                "This session is not open on this connection; send session/resume first.",
                retry_safe=True,
            )
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
        limit = self._engine.settings.limits.sessions_per_connection
        if len(self._open) + len(self._aside) >= limit:
            raise over(
                Bound.SESSIONS_PER_CONNECTION,
                f"This connection has {limit} sessions open; close one first.",
            )
        if not self._engine.has_room(session_id):
            raise over(Bound.SESSIONS, FULL)

    def check_prompts(self) -> None:
        """AcpError -32053 if one more prompt in flight is one too many, here or in the engine."""
        limits = self._engine.settings.limits
        mine = sum(one.hub.core.busy(one.owner) for one in self._open.values())
        if mine >= limits.prompts_per_connection:
            message = f"This connection has {mine} prompts in flight; wait for the end of one."
            raise _retry(Bound.PROMPTS_PER_CONNECTION, message)
        if self._engine.turns >= limits.prompts:
            message = f"{limits.prompts} prompts of all clients are in flight; try again later."
            raise _retry(Bound.PROMPTS, message)

    def open(self, session: Session, directory: str, *, ambient: bool) -> Open:
        """Attach this connection; a session that is open here keeps its owner and its turn."""
        self.check_room(session.id)
        known = self._open.get(session.id)
        hub = self._engine.hub(session, directory)
        owner = known.owner if known is not None else self._engine.new_owner()
        one = self._open[session.id] = Open(hub, owner)
        hub.attach(Attachment(owner, self._client, ambient))
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
        one = self._open[session_id] = Open(hub, aside.owner)
        hub.reattach(Attachment(aside.owner, self._client), aside.told, aside.session.title)
        self._keep(one)

    async def give_up(self, one: Open) -> None:
        """An opening failed: its client gets no answer by which it could know of the session."""
        if self.holds(one):
            await self.detach(self.take(one.hub.session_id))

    def take(self, session_id: str) -> Open | None:
        """The session, no longer open here; its hub still knows the attachment."""
        return self._open.pop(session_id, None)

    async def detach(self, one: Open | None) -> None:
        """Let go of a session that was taken out of the table."""
        if one is None:
            return
        self._engine.places.discard(one.owner)
        self._engine.mcp.release(one.hub.session_id, one.owner)
        if one.hub.detach(one.owner):
            await self._engine.release(one.hub)

    def all(self) -> dict[str, Open]:
        """As it stands now: requests that are still served may open and close meanwhile."""
        return dict(self._open)

    @property
    def ids(self) -> frozenset[str]:
        """What is open for the client, put aside or not."""
        return frozenset(self._open) | frozenset(self._aside)

    def leave(self) -> None:
        """The client is gone: nothing is kept for it any more."""
        for session_id, aside in self._aside.items():
            self._engine.mcp.release(session_id, aside.owner)
        for one in self._open.values():
            self._engine.places.discard(one.owner)
        self._aside.clear()


def _retry(bound: Bound, message: str) -> OverLimit:
    """A refusal that may be over in a moment; nothing was sent."""
    return OverLimit(bound, not_sent(Code.LIMIT, "too_many", message, retry_safe=True))
