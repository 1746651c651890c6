"""What the engine needs of a connection, and one session as opened on it."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Protocol

from adapter.core.values import Chunk

Json = dict[str, object]


class Client(Protocol):
    """The client's end of a connection."""

    @property
    def takes_notices(self) -> bool:
        """Whether it advertised `session.notices`."""

    def update(self, session_id: str, update: Json) -> None:
        """Send a `session/update`; queued in order, never refused."""

    def text(self, session_id: str, chunk: Chunk) -> None:
        """Send text; while the client does not read, only a reference to it is kept."""

    def ask(self, params: Json) -> Awaitable[object]:
        """`session/request_permission`; cancelling the wait withdraws the request."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """A session opened on a connection. `owner` is the engine's number for it."""

    owner: int
    client: Client
