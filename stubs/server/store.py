"""Sessions, their messages and their inboxes: what survives a restart of the server. Pure data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

from stubs.server.wire import Json, digest

MAX_SESSIONS: Final = 10_000

Delivery = Literal["steer", "queue"]


class StoreFullError(Exception):
    """The store holds MAX_SESSIONS sessions."""


def no_tokens() -> Json:
    """A usage of nothing."""
    return {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}


@dataclass(slots=True)
class Item:
    """An admitted input that is not delivered yet. `created` in milliseconds."""

    id: str
    kind: Literal["user", "synthetic", "compaction"]
    payload: Json
    delivery: Delivery
    created: int

    def view(self, session_id: str) -> Json:
        """As the inbox and the prompt route show it."""
        return {
            "id": self.id,
            "sessionID": session_id,
            "time": {"created": self.created},
            "type": self.kind,
            "payload": self.payload,
            "delivery": self.delivery,
        }


@dataclass(slots=True)
class Session:
    """One session. `rows` are its projected messages, oldest first; `seq` the last durable number.

    `idle` is the time of the last idle row, `outcome` its outcome; both stay stale after a turn
    that wrote none.
    """

    id: str
    directory: str
    slug: str
    created: int
    title: str | None = None
    parent: str | None = None
    agent: str | None = None
    model: Json | None = None
    permissions: list[Json] | None = None
    metadata: Json | None = None
    fork: Json | None = None
    updated: int = 0
    idle: int | None = None
    outcome: str | None = None
    cost: float = 0
    tokens: Json = field(default_factory=no_tokens)
    seq: int = -1
    instructed: bool = False
    titled: bool = False
    rows: list[Json] = field(default_factory=list)
    inbox: dict[str, Item] = field(default_factory=dict)

    @property
    def project_id(self) -> str:
        """The id of the session's project; here one project per directory."""
        return digest(self.directory)

    def row(self, message_id: str) -> Json | None:
        """The message of that id, or None."""
        return next((row for row in reversed(self.rows) if row["id"] == message_id), None)

    def add_usage(self, cost: float, tokens: Json) -> None:
        """Count one model response into the session's totals."""
        self.cost += cost
        for key in ("input", "output", "reasoning"):
            self.tokens[key] += tokens[key]
        for key in ("read", "write"):
            self.tokens["cache"][key] += tokens["cache"][key]

    def usage(self) -> Json:
        """Cost and tokens so far, copied."""
        tokens = {**self.tokens, "cache": dict(self.tokens["cache"])}
        return {"cost": self.cost, "tokens": tokens}

    def view(self) -> Json:
        """As the session routes show it; absent values have no key."""
        time: Json = {"created": self.created, "updated": self.updated or self.created}
        if self.idle is not None:
            time["idle"] = self.idle
        found: Json = {
            "id": self.id,
            "parentID": self.parent,
            "fork": self.fork,
            "projectID": self.project_id,
            "agent": self.agent,
            "model": self.model,
            **self.usage(),
            "outcome": self.outcome,
            "time": time,
            "title": self.title,
            "metadata": self.metadata,
            "permissions": self.permissions,
            "location": {"directory": self.directory},
        }
        return {key: value for key, value in found.items() if value is not None}


class Store:
    """All sessions, and which session owns each prompt id: those are unique over the store."""

    def __init__(self) -> None:
        self.sessions: dict[str, Session] = {}
        self.owners: dict[str, str] = {}

    def add(self, session: Session) -> Session:
        """Keep a new session. Raises StoreFullError."""
        if len(self.sessions) >= MAX_SESSIONS:
            raise StoreFullError
        self.sessions[session.id] = session
        return session

    def remove(self, session_id: str) -> None:
        """Forget a session; its prompt ids are free again."""
        del self.sessions[session_id]
        self.owners = {key: owner for key, owner in self.owners.items() if owner != session_id}

    def children(self, session_id: str) -> list[Session]:
        """The direct children of a session."""
        return [session for session in self.sessions.values() if session.parent == session_id]
