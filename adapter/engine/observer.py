"""What an engine tells of its work to whoever counts it, logs it or shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from adapter.core import values as v


@dataclass(frozen=True, slots=True)
class Settlement:
    """The end of one turn. Times in seconds; `first_chunk` is None if nothing was shown."""

    session_id: str
    outcome: v.Outcome
    seconds: float
    first_chunk: float | None


class Observer(Protocol):
    """Hears what happens, at once and in order. Must not raise, and must not wait."""

    def settled(self, settlement: Settlement) -> None:
        """A turn was answered."""

    def verdict(self, name: str) -> None:
        """A reading after a gap, or of a check, came to this verdict."""

    def gap(self, seconds: float) -> None:
        """The feed is back after so long."""

    def event(self, kind: str) -> None:
        """An event that was heard, by its type in `contract.events`."""

    def answered(self, decision: v.Decision, reason: v.AskReason) -> None:
        """A permission was settled at the server with this decision, and by whom or why."""

    def recovered(self, size: int) -> None:
        """So many UTF-8 bytes of text that a gap had hidden were shown after it."""

    def requested(self, route: str, status: int, seconds: float) -> None:
        """A request to the server, by its route's name; status 0 if there was no answer."""


class Silent:
    """An observer that does nothing."""

    def settled(self, settlement: Settlement) -> None: ...

    def verdict(self, name: str) -> None: ...

    def gap(self, seconds: float) -> None: ...

    def event(self, kind: str) -> None: ...

    def answered(self, decision: v.Decision, reason: v.AskReason) -> None: ...

    def recovered(self, size: int) -> None: ...

    def requested(self, route: str, status: int, seconds: float) -> None: ...
