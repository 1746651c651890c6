"""What every ACP method of one connection works with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from adapter.acp.transport import Call
from adapter.engine.client import Client
from adapter.engine.engine import Engine
from adapter.engine.sessions import OpenSessions

Json = dict[str, object]
Method = Callable[[Call], Awaitable[Json]]


@dataclass(frozen=True, slots=True)
class Desk:
    """One connection: the engine behind it, its client, the sessions that it has open."""

    engine: Engine
    client: Client
    sessions: OpenSessions
