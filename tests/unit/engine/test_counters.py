"""Counters: what was hit, and one line in the log for each kind."""

from __future__ import annotations

import pytest

from adapter.engine.counters import Counters
from adapter.limits import Bound


def test_hits_are_counted_by_the_name_of_their_limit() -> None:
    counters = Counters()
    assert set(counters.read()) == {bound.value for bound in Bound}
    assert not any(counters.read().values())
    counters.hit(Bound.PROMPTS)
    counters.hit(Bound.PROMPTS, 3)
    assert counters[Bound.PROMPTS] == counters.read()["prompts"] == 4
    assert sum(counters.read().values()) == 4
    counters.hit_all({"prompts": 10, "tool_locations": 2})
    assert counters.read()["prompts"] == 5
    assert counters.read()["tool_locations"] == 1


def test_the_log_says_each_kind_once(caplog: pytest.LogCaptureFixture) -> None:
    counters = Counters()
    for bound in (Bound.PROMPTS, Bound.SESSIONS, Bound.PROMPTS, Bound.SESSIONS):
        counters.hit(bound)
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]
    assert "prompts" in caplog.messages[0]
    assert "sessions" in caplog.messages[1]
