"""The recordings of a real server under tests/data/captures, as events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from contract import events as ev

CAPTURES: Final = Path(__file__).parent.parent / "data" / "captures"


def recorded(name: str) -> list[ev.Event]:
    """The events of one recording that the adapter uses, in order."""
    events = []
    for line in (CAPTURES / f"{name}.sse").read_text(encoding="utf-8").splitlines():
        if line.startswith("data: "):
            parsed = ev.parse(json.loads(line.removeprefix("data: ")))
            if isinstance(parsed, ev.Event):
                events.append(parsed)
    return events


def turn_of(name: str) -> tuple[str, str, list[ev.Event]]:
    """Session, prompt id and events of a recorded turn.

    Some recordings were filtered and lack the inbox's events: these get them back, with an id
    of their own, right before and after the execution's start.
    """
    events = recorded(name)
    session = next(e for e in events if isinstance(e, ev.ExecutionStarted)).session_id
    ids = [
        e.inbox_id for e in events if isinstance(e, ev.InboxEnqueued) and e.session_id == session
    ]
    if ids:
        return session, ids[0], events
    turn = "msg_recorded"
    at = next(i for i, e in enumerate(events) if isinstance(e, ev.ExecutionStarted))
    item = ev.InboxEnqueuedItem(type="user")
    enqueued = ev.InboxEnqueued(session_id=session, inbox_id=turn, item=item)
    delivered = ev.InboxDelivered(session_id=session, inbox_id=turn)
    return session, turn, [*events[:at], enqueued, events[at], delivered, *events[at + 1 :]]
