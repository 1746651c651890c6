"""What is counted, besides limits."""

from __future__ import annotations

from enum import Enum


class Oddity(Enum):
    """What is no limit and still worth a count, by the name that the log has for it."""

    DIVERGENCES = "divergences"
    """Texts of the server that did not begin as they had been shown (S2-31)."""
    RUNS_EVICTED = "runs_evicted"
    """Runs of work that nobody here prompted which went for lack of room (S2-45)."""
    SESSIONS_NOT_LISTED = "sessions_not_listed"
    """Sessions that no client could open: an id or a directory that ACP cannot carry."""
    PARENTS_NOT_TOLD = "parents_not_told"
    """Parents of listed sessions that are no id, the session itself, or a circle."""
    CHARACTERS_GONE = "characters_gone"
    """Characters owed to a slow client that the server no longer had."""
