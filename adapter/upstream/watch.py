"""The sessions whose events are wanted, and the question whether a line speaks of one."""

from __future__ import annotations

import re
from typing import Final

LIMIT: Final = 65_536
# A session id as a whole JSON string. Quotes inside a string are escaped, so that a text that
# merely talks of an id does not match.
_TOKEN: Final = re.compile(rb'"(ses_[A-Za-z0-9_-]+)"')


class Watch:
    """A bounded set of session ids; the engine adds and discards, the feed asks.

    A line also speaks of a session of ours when it names it as `parentID`, so that a new child
    is heard of before anything that it does.
    """

    def __init__(self, limit: int = LIMIT) -> None:
        self._limit = limit
        self._ids: set[bytes] = set()

    def __contains__(self, session_id: str) -> bool:
        return session_id.encode() in self._ids

    def __len__(self) -> int:
        return len(self._ids)

    def add(self, session_id: str) -> bool:
        """False at the limit: the session is then not watched."""
        if len(self._ids) >= self._limit and session_id not in self:
            return False
        self._ids.add(session_id.encode())
        return True

    def discard(self, session_id: str) -> None:
        self._ids.discard(session_id.encode())

    def mentions(self, line: bytes) -> bool:
        """Whether `line` names a session of ours, anywhere in it."""
        ids = self._ids
        return any(found.group(1) in ids for found in _TOKEN.finditer(line))

    def unsure(self, head: bytes) -> bool:
        """Whether the head of a line names no session at all, so that it may be ours."""
        return _TOKEN.search(head) is None
