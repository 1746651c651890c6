"""What the admin socket answers, as JSON: made by the daemon, read by `status` and `sessions`.

There is no text of a conversation in it, no title, and no secret. Seconds are those since the
thing named began; counts are as they stand.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class Shape(BaseModel):
    """Fields that a newer daemon adds are ignored."""

    model_config = ConfigDict(defer_build=True, frozen=True, extra="ignore")


class ServerState(Shape):
    url: str
    version: str = ""
    """Of the server that answered last; empty before the first answer."""
    pid: int = 0


class FeedState(Shape):
    """`generation` counts connections: each knows nothing of the events of the one before."""

    connected: bool
    generation: int
    losses: int
    silent_seconds: float | None = None
    """Since the last byte, heartbeats included; None without a connection."""
    events: int = 0
    skipped: int = 0
    heartbeats: int = 0
    oversize: int = 0
    repeated: int = 0
    unknown: int = 0
    malformed: int = 0


class ClientState(Shape):
    """`pid` is the process on the socket, `parent` the one that the relay serves (0: not known)."""

    number: int
    pid: int
    parent: int
    uid: int
    name: str
    version: str
    """Of the relay."""
    cwd: str
    seconds: float
    turns: int
    queue: int
    """Turns that the server has not begun."""
    holds: int
    """Sessions whose updates wait for the end of a replay."""
    owed: int
    """Updates that wait for a client that reads slowly."""
    bytes: int
    """Queued for it and not taken."""
    calls: int
    """Its requests without an answer."""
    sessions: int


class TurnState(Shape):
    """`generation` is the opening that the turn belongs to, `phase` as in `adapter.core.state`."""

    generation: int
    phase: str
    cancel: str
    gaps: int
    call: str | None = None


class AttachmentState(Shape):
    client: int
    generation: int
    """Of this opening; each has another one."""


class SessionState(Shape):
    """A session that is put aside has nothing but who has it open."""

    id: str
    directory: str = ""
    aside: bool = False
    attachments: tuple[AttachmentState, ...] = ()
    turns: tuple[TurnState, ...] = ()
    gap: bool = False
    timers: tuple[str, ...] = ()
    buffered: int = 0
    """Events that wait for the end of a reading."""
    children: int = 0
    bytes_beside: int = 0
    """What is remembered of what is shown beside turns."""
    owes: bool = False
    """Whether the server has yet to confirm a stop or an answer, or waits for one of ours."""
    tables: dict[str, int] = Field(default_factory=dict)


class State(Shape):
    """Of the daemon; the tables of clients and sessions are bounded by its limits."""

    version: str
    pid: int
    state: str
    """As `adapter.daemon.daemon.State` has it; `serving` is the only one that takes clients."""
    seconds: float
    drain_seconds: float | None = None
    """While it drains: how long turns in flight still have. None else."""
    server: ServerState
    feed: FeedState
    tables: dict[str, int]
    counted: dict[str, int]
    """Limits that were hit and oddities that were met, by name; others are left out."""
    clients: tuple[ClientState, ...]
    sessions: tuple[SessionState, ...]

    @property
    def serves(self) -> bool:
        return self.state == "serving"

    @property
    def turns(self) -> int:
        """Prompts in flight, of every client."""
        return self.tables.get("turns", 0)


class Check(Shape):
    """`ok` is None where that cannot be known; `why` is a sentence unless it is true."""

    ok: bool | None
    why: str = ""


class Readiness(Shape):
    """`missing` names the checks that are not true."""

    ready: bool
    missing: tuple[str, ...]
    checks: dict[str, Check]

    @property
    def reaches(self) -> bool:
        """Whether its server has answered now, be it with a refusal."""
        check = self.checks.get("server")
        return check is not None and check.ok is True


class Health(Shape):
    ok: bool
    version: str
    seconds: float
