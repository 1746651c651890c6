"""What the engine needs of a connection, and one session as opened on it."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Protocol

from adapter.acp.capabilities import Capabilities
from adapter.core.values import Chunk
from adapter.limits import Limits

Json = dict[str, object]


class Client(Protocol):
    """The client's end of a connection."""

    @property
    def can(self) -> Capabilities:
        """What it advertised."""

    @property
    def limits(self) -> Limits:
        """Those of its beginning: what is made for it fits into the lines that it may have."""

    @property
    def label(self) -> str:
        """What the log calls it: its number in a daemon, and its name and version."""

    def update(self, session_id: str, update: Json) -> None:
        """Send a `session/update`; queued in order, never refused."""

    def text(self, session_id: str, chunk: Chunk) -> None:
        """Send text; while the client does not read, only a reference to it is kept."""

    def ask(self, method: str, params: Json) -> Awaitable[object]:
        """A request to the client, None without a result; cancelling the wait withdraws it."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """A session opened on a connection. `owner` is the engine's number for it.

    `ambient`: its client wants to see work that it did not prompt.
    """

    owner: int
    client: Client
    ambient: bool = False
