"""What every session of an engine shares, handed down instead of reached for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from adapter.config import Settings
from adapter.core.offsets import OffsetTable
from adapter.engine.counters import Counters
from adapter.engine.following import Following
from adapter.engine.observer import Observer, Silent
from adapter.engine.pace import Pace
from adapter.engine.submission import Submission
from adapter.upstream.catalogue import Catalogues
from adapter.upstream.client import Server


@dataclass(slots=True)
class Services:
    """One engine's server, settings and shared tables.

    Only `settings` is ever replaced, by the engine: whoever may be told other ones looks here.
    """

    server: Server
    settings: Settings
    catalogues: Catalogues
    offsets: OffsetTable
    submission: Submission
    clock: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]]
    feed_is_up: Callable[[], bool]
    pid: Callable[[], int]
    """The server process that was seen last; 0 before the first reading."""
    saw_pid: Callable[[int], None]
    following: Following
    context_size: Callable[[str, str | None], int | None]
    """(directory, model key): tokens of the model's context, None when not known."""
    flights: Pace
    """How often what led to an unknown outcome is written to the log."""
    counters: Counters = field(default_factory=Counters)
    observer: Observer = field(default_factory=Silent)
