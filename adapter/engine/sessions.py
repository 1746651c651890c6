"""The sessions that one connection has open, by id."""

from __future__ import annotations

from dataclasses import dataclass

from adapter.engine.client import Attachment, Client
from adapter.engine.engine import Engine
from adapter.engine.hub import Hub
from contract.errors import AcpError, Code, not_sent
from contract.reads import Session


@dataclass(frozen=True, slots=True, eq=False)
class Open:
    """One opening of a session. Each `session/load` or `session/resume` makes a new one.

    So work that belongs to an older opening is known by `OpenSessions.holds` and changes nothing.
    """

    hub: Hub
    owner: int


class OpenSessions:
    """At most `limits.sessions_per_connection`; one more is refused, and the others stay."""

    def __init__(self, engine: Engine, client: Client) -> None:
        self._engine = engine
        self._client = client
        self._open: dict[str, Open] = {}

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
        """AcpError -32053 if one more session is one too many."""
        limit = self._engine.settings.limits.sessions_per_connection
        if session_id not in self._open and len(self._open) >= limit:
            raise AcpError(
                Code.LIMIT,
                f"This connection has {limit} sessions open; close one first.",
            )

    def open(self, session: Session, directory: str, *, ambient: bool) -> Open:
        """Attach this connection; a session that is open here keeps its owner and its turn."""
        self.check_room(session.id)
        known = self._open.get(session.id)
        hub = self._engine.hub(session, directory)
        owner = known.owner if known is not None else self._engine.new_owner()
        one = self._open[session.id] = Open(hub, owner)
        hub.attach(Attachment(owner, self._client, ambient))
        return one

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
        self._engine.mcp.release(one.hub.session_id, one.owner)
        if one.hub.detach(one.owner):
            await self._engine.release(one.hub)

    def all(self) -> dict[str, Open]:
        """As it stands now: requests that are still served may open and close meanwhile."""
        return dict(self._open)
