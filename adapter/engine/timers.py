"""The timers that a core asks for by name; a part of the name after `:` is the id of a turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Timers:
    """At most one of each name; `fired` is called with the name."""

    def __init__(self, fired: Callable[[str], None]) -> None:
        self._fired = fired
        self._handles: dict[str, asyncio.TimerHandle] = {}

    @property
    def kinds(self) -> list[str]:
        """Of each that will fire, what it is for; without the turn or ask that it belongs to."""
        return sorted(name.partition(":")[0] for name in self._handles)

    def arm(self, name: str, seconds: float | None) -> None:
        """Start a timer anew; one whose setting is off never fires."""
        self.disarm(name)
        if seconds is not None:
            self._start(name, asyncio.get_running_loop().time() + seconds)

    def disarm(self, name: str) -> None:
        handle = self._handles.pop(name, None)
        if handle is not None:
            handle.cancel()

    def rename(self, before: str, after: str) -> None:
        """A turn has another id; its timers keep their hours."""
        for name in list(self._handles):
            what, _, turn_id = name.partition(":")
            if turn_id == before:
                hour = self._handles[name].when()
                self.disarm(name)
                self._start(f"{what}:{after}", hour)

    def close(self) -> None:
        """None of them fires any more."""
        for name in list(self._handles):
            self.disarm(name)

    def _start(self, name: str, hour: float) -> None:
        self._handles[name] = asyncio.get_running_loop().call_at(hour, self._fire, name)

    def _fire(self, name: str) -> None:
        self._handles.pop(name, None)
        self._fired(name)
