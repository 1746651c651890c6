"""The flight recorder: the newest of what one session's core was given, without texts.

It is written to the log when a turn ends unknown or a text was not as it had been shown, so that
`opencode-acp replay` can run the core on it. What it holds is let go of when no turn is left.
"""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Callable
from typing import Final

from adapter.core.values import Input
from adapter.engine.heads import head

logger = logging.getLogger(__name__)

FIRST: Final = 16
"""Of the inputs of a flight these are always kept: how its turns began."""
NEWEST: Final = 160
BYTES: Final = 32 * 1024
"""Of the JSON of a flight; journald cuts a line at 48 KiB. The oldest of the newest go first."""
MARK: Final = '{"flight":1,'

Entry = tuple[int, str]


class Recorder:
    """One session's. Times are milliseconds since its flight began."""

    def __init__(self, session_id: str, clock: Callable[[], float]) -> None:
        self._session_id = session_id
        self._clock = clock
        self._began = 0.0
        self._pid = 0
        self._first: list[Entry] = []
        self._newest: deque[Entry] = deque(maxlen=NEWEST)
        self._left_out = 0

    def given(self, what: Input, pid: int) -> None:
        """Keep the head of an input. `pid`: the server's process, when the flight begins."""
        if not self._first:
            self._began, self._pid = self._clock(), pid
        milliseconds = int((self._clock() - self._began) * 1000)
        entry = (milliseconds, json.dumps(head(what), separators=(",", ":")))
        if len(self._first) < FIRST:
            self._first.append(entry)
        else:
            self._left_out += len(self._newest) == NEWEST
            self._newest.append(entry)

    def landed(self) -> None:
        """No turn is left: forget it all."""
        self._first.clear()
        self._newest.clear()
        self._left_out = 0

    def tell(self, why: str) -> None:
        """Write the flight to the log."""
        logger.warning("the flight of %s, since %s: %s", self._session_id, why, self.block())

    def block(self) -> str:
        """The flight as JSON in one line of ASCII, of `BYTES` at most."""
        newest = list(self._newest)
        room = BYTES - sum(len(entry[1]) + 16 for entry in self._first)
        size = sum(len(entry[1]) + 16 for entry in newest)
        left_out = self._left_out
        while newest and size > room:
            size -= len(newest.pop(0)[1]) + 16
            left_out += 1
        entries = ",".join(f"[{at},{text}]" for at, text in [*self._first, *newest])
        about = f'"session":{json.dumps(self._session_id)},"pid":{self._pid},"left_out":{left_out}'
        return f'{MARK}{about},"given":[{entries}]}}'
