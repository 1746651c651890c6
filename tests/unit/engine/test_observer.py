"""What an engine tells its observer, and that several of them hear the same."""

from __future__ import annotations

from adapter.core import values as v
from adapter.engine.observer import Settlement, Several, Silent


class Recording:
    """Remembers what it was told, in order."""

    def __init__(self) -> None:
        self.told: list[object] = []

    def settled(self, settlement: Settlement) -> None:
        self.told.append(settlement)

    def verdict(self, name: str) -> None:
        self.told.append(name)

    def gap(self, seconds: float) -> None:
        self.told.append(seconds)

    def event(self, kind: str) -> None:
        self.told.append(kind)

    def answered(self, decision: v.Decision, reason: v.AskReason) -> None:
        self.told.append((decision, reason))

    def recovered(self, size: int) -> None:
        self.told.append(size)

    def requested(self, route: str, status: int, seconds: float) -> None:
        self.told.append((route, status, seconds))


def test_each_of_several_hears_everything_in_order() -> None:
    first, second = Recording(), Recording()
    several = Several(first, Silent(), second)
    settlement = Settlement("ses_1", v.Outcome("msg_1", stop=v.Stop.END_TURN), 1.0, None)
    several.settled(settlement)
    several.verdict("lost")
    several.gap(0.5)
    several.event("session.created")
    several.answered("reject", "left")
    several.recovered(7)
    several.requested("GET /api/info", 200, 0.1)
    assert first.told == [
        settlement,
        "lost",
        0.5,
        "session.created",
        ("reject", "left"),
        7,
        ("GET /api/info", 200, 0.1),
    ]
    assert second.told == first.told
