"""Which events went by of late, so that one that comes again is known."""

from __future__ import annotations

from typing import Final

KEPT: Final = 1024
"""Ids that are remembered; the oldest goes."""


class Recent:
    """The ids of the newest events. The server gives each event one of its own."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._ids: dict[str, None] = {}

    def again(self, event_id: object) -> bool:
        """Whether an event of that id went by before; takes note of it. What is no id is new."""
        if not isinstance(event_id, str):
            return False
        if event_id in self._ids:
            return True
        if len(self._ids) >= self._kept:
            del self._ids[next(iter(self._ids))]
        self._ids[event_id] = None
        return False
