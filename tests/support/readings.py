"""The recordings under tests/data/recordings (format: tests/record), played into a core.

A recording holds what the server's reads answered between its events. So a cut feed is replayed
with the truth of that moment: events are lost from the cut on until the recorded reading with
which the client is back, what came while that reading was made is buffered, and the verdict is
made from what the server really said.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from adapter.core import values as v
from contract import events as ev
from contract.reads import parse_row
from contract.shapes import Form, PermissionAsk
from tests.support.drive import Drive, Transcript

FOLDER: Final = Path(__file__).parent.parent / "data" / "recordings"
# Readings with which the last state is looked at again, for verdicts that need more than one.
AFTERWARDS: Final = 12
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reading:
    """All reads of one moment; `heard` events had come when it began."""

    heard: int
    reads: Json

    def snapshot(self, session: str, judged: frozenset[str]) -> v.Snapshot:
        """What the adapter would have read."""
        reads = self.reads
        return v.Snapshot(
            inbox=self.inbox_ids,
            active=session in reads["active"],
            rows=tuple(parse_row(row) for row in reads["message"]),
            asks=tuple(PermissionAsk.model_validate(ask) for ask in reads["permission"]),
            forms=tuple(Form.model_validate(form) for form in reads["form"]),
            children=tuple((child, parent) for child, parent in reads["children"]),
            pid=reads["info"]["pid"],
            judged=judged,
        )

    @property
    def inbox_ids(self) -> frozenset[str]:
        return frozenset(item["id"] for item in self.reads["inbox"])

    def inbox(self, session: str) -> v.InboxRead:
        """The short read of a turn that waits."""
        ids = tuple(item["id"] for item in self.reads["inbox"])
        return v.InboxRead(ids, session in self.reads["active"])


@dataclass(frozen=True, slots=True)
class Moment:
    """Something at one time. `what`: event, begins, ends (of a reading), sent, answered."""

    what: str
    event: ev.Event | None = None
    number: int = 0
    reading: Reading | None = None
    did: str = ""
    body: Json = field(default_factory=dict)


@dataclass(frozen=True)
class Recording:
    """One recorded session: its moments in order; `events` counts the lines of the feed."""

    session: str
    moments: tuple[Moment, ...]
    events: int

    @property
    def readings(self) -> tuple[Reading, ...]:
        """All readings, oldest first."""
        return tuple(m.reading for m in self.moments if m.what == "begins" and m.reading)


def load(name: str) -> Recording:
    """Read a recording."""
    head, *notes = map(json.loads, (FOLDER / f"{name}.jsonl").read_text("utf-8").splitlines())
    moments: list[tuple[float, Moment]] = []
    number = 0
    reads: Json = {}
    for note in notes:
        at = note["at"]
        if "reads" in note:
            reads = {**reads, **note["reads"]}
            reading = Reading(note["heard"], reads)
            moments.append((at, Moment("begins", reading=reading)))
            moments.append((note["until"], Moment("ends", reading=reading)))
        elif "did" in note:
            body = {**(note["body"] or {}), "path": note["path"]}
            moments.append((at, Moment("sent", did=note["did"], body=body)))
            moments.append((note["until"], Moment("answered", did=note["did"], body=body)))
        elif note["line"].startswith("data:"):
            parsed = ev.parse(json.loads(note["line"].removeprefix("data:")))
            event = parsed if isinstance(parsed, ev.Event) else None
            moments.append((at, Moment("event", event=event, number=number)))
            number += 1
    ordered = sorted(moments, key=lambda pair: pair[0])
    return Recording(head["session"], tuple(moment for _, moment in ordered), number)


class Replay:
    """Plays a recording, with a feed that is lost after `cut` events (None: never).

    The client is back with reading `back` among those that began after the cut. Cancels are those
    of the recording; an ask is answered as it was there.
    """

    def __init__(self, name: str, cut: int | None = None, back: int = 0) -> None:
        self.recording = load(name)
        self.drive = Drive(pid=0, session=self.recording.session)
        self._cut = cut
        later = [r for r in self.recording.readings if cut is not None and r.heard >= cut]
        self._back = later[min(back, len(later) - 1)] if later else None
        self._connected = True
        self._window: Reading | None = None
        self._judged: frozenset[str] = frozenset()
        self._buffer: list[ev.Event] = []
        self._wants_snapshot = False
        self._wants_inbox = False
        self._decisions = dict(self._recorded_decisions())
        self._owners: dict[str, int] = {}

    def play(self) -> Transcript:
        """The transcript, once every turn has settled or nothing more can happen."""
        for moment in self.recording.moments:
            self._happen(moment)
        last = self.recording.readings[-1]
        for _ in range(AFTERWARDS):
            if not self.drive.core.turn_ids:
                break
            self._begins(last)
            self._ends(last)
        return self.drive.seen

    def _happen(self, moment: Moment) -> None:
        match moment:
            case Moment("event", event, number):
                if event is not None and self._window is not None:
                    self._buffer.append(event)
                elif event is not None and self._connected:
                    self._step(v.Heard(event))
                if number + 1 == self._cut:
                    self._lose()
            case Moment("begins", reading=Reading() as reading):
                self._begins(reading)
            case Moment("ends", reading=Reading() as reading):
                self._ends(reading)
            case Moment("sent", did="prompt", body=body):
                self._owners[body["id"]] = len(self._owners) + 1
                self._step(v.Submit(body["id"], self._owners[body["id"]]))
            case Moment("answered", did="prompt", body=body):
                self._step(v.Posted(body["id"], v.Admission.ADMITTED))
            case Moment("sent", did="interrupt"):
                self._step(v.Cancel(1))
            case Moment("sent", did="withdraw", body=body):
                self._step(v.Cancel(self._owners[body["path"].rpartition("/")[2]]))
            case _:
                pass

    def _lose(self) -> None:
        self._connected, self._window, self._buffer = False, None, []
        self._step(v.FeedLost())

    def _begins(self, reading: Reading) -> None:
        if not self._connected and (reading is self._back or self._back is None):
            self._connected = True
            self._step(v.FeedBack())
        if not self._connected:
            return
        for timer in [t for t in self.drive.timers if t.partition(":")[0] in ("lost", "parked")]:
            self._step(v.Fired(timer))
        if self._wants_snapshot and self._window is None:
            self._wants_snapshot = False
            self._window, self._judged = reading, self.drive.core.admitted_ids

    def _ends(self, reading: Reading) -> None:
        if self._window is reading:
            self._window, buffer, self._buffer = None, tuple(self._buffer), []
            snapshot = reading.snapshot(self.recording.session, self._judged)
            self._step(v.Reconcile(snapshot, buffer))
        if self._wants_inbox and self._connected:
            self._wants_inbox = False
            self._step(reading.inbox(self.recording.session))

    def _step(self, given: v.Input) -> None:
        for output in self.drive.step(given):
            match output:
                case v.TakeSnapshot():
                    self._wants_snapshot = True
                case v.ReadInbox():
                    self._wants_inbox = True
                case v.AskClient(_, ask, _):
                    self._step(v.Answered(ask.id, self._decisions[ask.id]))
                case v.Reply(_, ask_id, _):
                    self._step(v.Replied(ask_id, settled=True))
                case v.Wake(turn_id):
                    self._step(v.Woken(turn_id, pending=True))
                case _:
                    pass

    def _recorded_decisions(self) -> Iterator[tuple[str, v.Decision]]:
        for moment in self.recording.moments:
            if moment.what == "sent" and moment.did == "reply":
                ask_id = moment.body["path"].split("/")[-2]
                yield ask_id, moment.body["decision"]
