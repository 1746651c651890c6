"""What the client has of each part, so that no character is sent twice or lost.

Lifecycle rule 9. A part's text reaches the adapter as true deltas while the part is *live*,
and as the full text in its `ended` event or in a read. The table holds, per (session, part),
how many characters were sent and a digest of them: enough to extend by a suffix, to stay
silent on a repeat, and to notice a text that is not the one already sent.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from hashlib import blake2b
from typing import Literal, NamedTuple

Kind = Literal["text", "reasoning"]


class Part(NamedTuple):
    """The key of a part inside a session; ordinals count per kind and message."""

    message_id: str
    kind: Kind
    ordinal: int


class State(Enum):
    """LIVE takes deltas, HELD waits for the full text, CLOSED takes nothing more."""

    LIVE = "live"
    HELD = "held"
    CLOSED = "closed"


@dataclass(slots=True)
class Offset:
    state: State
    sent: int = 0
    digest: blake2b = field(default_factory=lambda: blake2b(digest_size=16))

    def extend(self, text: str) -> None:
        self.sent += len(text)
        self.digest.update(text.encode("utf-8", "surrogatepass"))

    def starts(self, full: str) -> bool:
        """Whether what was sent is a prefix of `full`."""
        head = full[: self.sent].encode("utf-8", "surrogatepass")
        return blake2b(head, digest_size=16).digest() == self.digest.digest()


class OffsetTable:
    """Offsets of every part of the turns in flight, keyed by (session, part).

    Bounded by its users: an entry exists only for a message that a turn in flight owns, and
    `forget` removes the entries of those messages when the turn settles. What is watched beside
    turns has a table of its own, under keys of its own.
    """

    def __init__(self) -> None:
        self._sessions: dict[str, dict[Part, Offset]] = {}
        self.divergences = 0

    def __len__(self) -> int:
        return sum(len(parts) for parts in self._sessions.values())

    def sent(self, session_id: str, part: Part) -> int:
        """Characters of the part that the client has."""
        offset = self._sessions.get(session_id, {}).get(part)
        return offset.sent if offset else 0

    def state(self, session_id: str, part: Part) -> State | None:
        offset = self._sessions.get(session_id, {}).get(part)
        return offset.state if offset else None

    def started(self, session_id: str, part: Part) -> None:
        """The part's `started` was seen on this feed connection: it becomes live, if new."""
        self._sessions.setdefault(session_id, {}).setdefault(part, Offset(State.LIVE))

    def delta(self, session_id: str, part: Part, delta: str) -> str:
        """The text to send for a delta: all of it for a live part, nothing otherwise."""
        offset = self._at(session_id, part)
        if offset.state is not State.LIVE or not delta:
            return ""
        offset.extend(delta)
        return delta

    def full(self, session_id: str, part: Part, text: str) -> str:
        """The text to send for a part's full text; closes the part.

        The missing suffix if `text` extends what was sent, nothing if it is equal or
        shorter; nothing and one divergence if what was sent is no prefix of it.
        """
        offset = self._at(session_id, part)
        if offset.state is State.CLOSED:
            return ""
        contradicts = self.contradicts(session_id, part, text)
        offset.state = State.CLOSED
        if contradicts:
            self.divergences += 1
            return ""
        suffix = text[offset.sent :]
        offset.extend(suffix)
        return suffix

    def contradicts(self, session_id: str, part: Part, text: str) -> bool:
        """Whether this full text of the part would count as a divergence now."""
        offset = self._sessions.get(session_id, {}).get(part)
        if offset is None or offset.state is State.CLOSED:
            return False
        return len(text) < offset.sent or not offset.starts(text)

    def hold(self, session_id: str) -> None:
        """The feed lost its continuity: no part of the session takes deltas any more."""
        for offset in self._sessions.get(session_id, {}).values():
            if offset.state is State.LIVE:
                offset.state = State.HELD

    def restart(self, session_id: str, messages: frozenset[str]) -> None:
        """Another client takes these messages over: it gets their open parts in whole."""
        for part, offset in self._sessions.get(session_id, {}).items():
            if part.message_id in messages and offset.state is not State.CLOSED:
                self._sessions[session_id][part] = Offset(State.HELD)

    def forget(self, session_id: str, messages: frozenset[str]) -> None:
        """Remove exactly the entries of these messages of this session."""
        parts = self._sessions.get(session_id)
        if parts is None:
            return
        for part in [part for part in parts if part.message_id in messages]:
            del parts[part]
        if not parts:
            del self._sessions[session_id]

    def parts(self, session_id: str) -> tuple[Part, ...]:
        """The parts that the session has entries of."""
        return tuple(self._sessions.get(session_id, ()))

    def count(self, session_id: str) -> int:
        """How many parts those are."""
        return len(self._sessions.get(session_id, ()))

    def take(self, session_id: str, message_id: str) -> dict[Part, Offset]:
        """Remove the entries of a message, for another table to go on with."""
        parts = self._sessions.get(session_id, {})
        return {part: parts.pop(part) for part in list(parts) if part.message_id == message_id}

    def give(self, session_id: str, taken: dict[Part, Offset]) -> None:
        """Go on with what another table had of these parts."""
        if taken:
            self._sessions.setdefault(session_id, {}).update(taken)

    def drop(self, session_id: str) -> None:
        """Remove all entries of the session."""
        self._sessions.pop(session_id, None)

    def _at(self, session_id: str, part: Part) -> Offset:
        return self._sessions.setdefault(session_id, {}).setdefault(part, Offset(State.HELD))
