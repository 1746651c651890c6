"""The flight recorder: what one session's core was given while turns were in flight, in heads.

It is written to the log when a turn ends unknown or a text was not as it had been shown, so that
`opencode-acp replay` can run the core on it. What it holds is let go of when no turn is left.
"""

from __future__ import annotations

import dataclasses
import logging
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Final, TypeVar

import orjson

from adapter.core import values as v
from adapter.core.offsets import OffsetTable, Part
from adapter.core.session import SessionCore
from adapter.engine.entries import Run, head_of, key_of, turn_of
from adapter.engine.heads import CLASS, TEXT, UNTRUE, head
from adapter.engine.pace import Pace
from adapter.limits import DEFAULTS, Limits
from contract import events as ev

logger = logging.getLogger(__name__)

BYTES: Final = 32 * 1024
"""Of the JSON of a flight: journald cuts a line at 48 KiB. The oldest input goes first."""
PINNED: Final = 32
"""Inputs that name a turn in flight stay, so many of them: they tell how it began."""
CHILDREN: Final = 32
"""Sub-agents of earlier turns that a flight begins with."""
FLIGHTS: Final = 8
SECONDS: Final = 60.0
"""So many flights of one engine are written in any so many seconds: a server that goes down takes
all turns along."""
MARK: Final = '{"flight":1,'
CUT: Final = "~cut"

Json = Any
GivenT = TypeVar("GivenT")


def pace(clock: Callable[[], float]) -> Pace:
    """How often one engine writes flights."""
    return Pace(FLIGHTS, SECONDS, clock)


@dataclasses.dataclass(frozen=True, slots=True)
class _Entry:
    text: bytes
    turn_id: str | None
    """The turn that the input names."""


class Recorder:
    """One session's, in front of its core. Times are milliseconds since the flight began.

    `pid` is the server's process and `before` what stands for the state of the core, when a flight
    begins; `pace` is that of all sessions.
    """

    def __init__(
        self,
        core: SessionCore,
        offsets: OffsetTable,
        limits: Limits,
        clock: Callable[[], float],
        pace: Pace,
        *,
        pid: Callable[[], int] = lambda: 0,
        before: Callable[[], Iterable[v.Input]] = tuple,
    ) -> None:
        self._core = core
        self._offsets = offsets
        self._limits = limits
        self._clock = clock
        self._pace = pace
        self._server_pid = pid
        self._before = before
        self._is_flying = False
        self._is_lost = False
        self._began = 0.0
        self._pid = 0
        self._pinned: list[_Entry] = []
        self._newest: deque[_Entry] = deque()
        self._size = 0
        self._left_out = 0
        self._run: Run | None = None
        self._last: dict[str, Json] = {}
        self._is_told = False

    def __len__(self) -> int:
        """Bytes that are kept."""
        return self._size

    def step(self, given: v.Input) -> list[v.Output]:
        """Give the core an input, of which the head is kept.

        A fault in keeping it costs the flight, and no input: nothing is kept then until no turn is
        left.
        """
        self._guarded(self._note, given)
        outputs = self._core.step(given)
        self._guarded(self._look_at, outputs)
        if not self._core.turn_ids:
            self._land()
        return outputs

    def _guarded(self, work: Callable[[GivenT], None], given: GivenT) -> None:
        if self._is_lost:
            return
        try:
            work(given)
        except Exception:
            logger.exception("a flight of %s could not be kept", self._core.session_id)
            self._land()
            self._is_lost = True

    def _note(self, given: v.Input) -> None:
        if not self._is_flying:
            if not isinstance(given, v.Submit):
                return
            self._take_off()
        key = key_of(given.event) if isinstance(given, v.Heard) else None
        if isinstance(given, v.Heard) and key is not None:
            self._extend(key, given.event)
        else:
            self._put(given)

    def _take_off(self) -> None:
        self._is_flying = True
        self._began, self._pid = self._clock(), self._server_pid()
        for one in self._before():
            self._put(one)

    def _look_at(self, outputs: Sequence[v.Output]) -> None:
        """What came of an input may have to be told."""
        if not self._is_flying:
            return
        unknown = [
            one.outcome
            for one in outputs
            if isinstance(one, v.Settled) and one.outcome.reason == "unknown"
        ]
        diverged = any(
            isinstance(one, v.Counted) and one.bound is v.Oddity.DIVERGENCES for one in outputs
        )
        if diverged:
            self._mark_untrue()
        if unknown:
            self._tell(f"{unknown[0].message_id} ended unknown", unknown)
        elif diverged and not self._is_told:
            self._is_told = True
            self._tell("a text was not as it had been shown", ())

    def block(self, ended: Sequence[v.Outcome] = ()) -> str:
        """The flight as JSON in one line of ASCII, of `BYTES` and a few at most."""
        self._close_run()
        lowered = {
            one.name: value
            for one in dataclasses.fields(self._limits)
            if (value := getattr(self._limits, one.name)) != getattr(DEFAULTS, one.name)
        }
        about = {
            "session": self._core.session_id,
            "pid": self._pid,
            "limits": lowered,
            "left_out": self._left_out,
            "ended": [[one.message_id, one.code] for one in ended],
        }
        given = b",".join(entry.text for entry in (*self._pinned, *self._newest))
        return f'{MARK}{orjson.dumps(about).decode()[1:-1]},"given":[{given.decode()}]}}'

    # --- keeping --------------------------------------------------------------------------

    def _put(self, what: v.Input) -> None:
        self._close_run()
        self._last = head_of(what, self._untrue)
        self._keep(orjson.dumps([self._at(), self._last]), turn_of(what))

    def _extend(self, key: Hashable, event: ev.Event) -> None:
        run = self._run
        if run is None or run.key != key:
            self._close_run()
            run = self._run = Run(key, self._at(), head(event))
        run.pieces += 1
        if isinstance(event, ev.TextDelta | ev.ReasoningDelta):
            run.size += len(event.delta)

    def _close_run(self) -> None:
        run, self._run = self._run, None
        if run is not None:
            self._keep(run.text(), None)

    def _keep(self, text: bytes, turn_id: str | None) -> None:
        if len(text) > BYTES // 2:
            # It would leave room for nothing else, and whatever is left of it proves nothing.
            text = orjson.dumps([self._at(), {CUT: self._last.get(CLASS, "")}])
        self._newest.append(_Entry(text, turn_id))
        self._size += len(text) + 1
        while self._size > BYTES:
            self._drop(self._newest.popleft())

    def _drop(self, entry: _Entry) -> None:
        turns = frozenset(self._core.turn_ids)
        if entry.turn_id in turns:
            if len(self._pinned) == PINNED:
                over = [one for one in self._pinned if one.turn_id not in turns]
                self._pinned = [one for one in self._pinned if one.turn_id in turns]
                self._forget(over)
            if len(self._pinned) < PINNED and len(entry.text) < BYTES // PINNED // 2:
                self._pinned.append(entry)
                return
        self._forget([entry])

    def _forget(self, entries: Sequence[_Entry]) -> None:
        self._left_out += len(entries)
        self._size -= sum(len(one.text) + 1 for one in entries)

    def _land(self) -> None:
        self._is_flying = self._is_told = self._is_lost = False
        self._pinned.clear()
        self._newest.clear()
        self._size = self._left_out = 0
        self._run, self._last = None, {}

    def _at(self) -> int:
        return int((self._clock() - self._began) * 1000)

    # --- texts that were not as they had been shown ---------------------------------------

    def _untrue(self, part: Part, text: str) -> bool:
        return self._offsets.contradicts(self._core.session_id, part, text)

    def _mark_untrue(self) -> None:
        """The event that was given last has the text: its stand-in is to be another one as well."""
        event = self._last.get("event", {})
        if TEXT in event.get("text", {}) and self._newest:
            event["text"] = {UNTRUE: event["text"][TEXT]}
            last = self._newest.pop()
            self._size -= len(last.text) + 1
            self._keep(orjson.dumps([self._at(), self._last]), None)

    # --- telling --------------------------------------------------------------------------

    def _tell(self, why: str, ended: Sequence[v.Outcome]) -> None:
        session_id = self._core.session_id
        fields: dict[str, str | int] = {"SESSION_ID": session_id}
        if ended:
            fields |= {"PROMPT_ID": ended[0].message_id, "CODE": ended[0].code}
        told = self.block(ended) if self._pace.take() else "left out, since there are many"
        logger.warning(
            "the flight of %s, since %s: %s", session_id, why, told, extra={"fields": fields}
        )
