"""Counters: what was hit and met, one line in the log for each kind, and one for all at the end."""

from __future__ import annotations

import logging

import pytest

from adapter.core.values import Oddity
from adapter.engine.counters import Counters
from adapter.limits import Bound


def test_hits_are_counted_by_their_kind() -> None:
    counters = Counters()
    assert not any(counters[one] for one in [*Bound, *Oddity])
    counters.hit(Bound.PROMPTS)
    counters.hit(Bound.PROMPTS, 3)
    counters.hit(Oddity.CHARACTERS_GONE, 7)
    counters.left_out({"prompts": 10, "tool_locations": 2})
    assert (counters[Bound.PROMPTS], counters[Bound.TOOL_LOCATIONS]) == (5, 1)
    assert counters.omitted == {Bound.PROMPTS: 10, Bound.TOOL_LOCATIONS: 2}
    assert counters.hits[Bound.PROMPTS] == 5
    assert counters[Oddity.CHARACTERS_GONE] == 7


def test_no_two_kinds_have_one_name() -> None:
    names = [one.value for one in [*Bound, *Oddity]]
    assert len(set(names)) == len(names)


def test_the_log_says_each_kind_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    counters = Counters()
    counters.hit(Oddity.DIVERGENCES, 0)
    for _ in range(2):
        for one in (Bound.PROMPTS, Bound.IDLE_SECONDS, Oddity.DIVERGENCES):
            counters.hit(one)
    levels = [record.levelname for record in caplog.records]
    assert levels == ["WARNING", "INFO", "INFO"]
    named = zip(caplog.messages, ["prompts", "idle_seconds", "divergences"], strict=True)
    assert all(name in message for message, name in named)


def test_one_line_tells_all_counts(caplog: pytest.LogCaptureFixture) -> None:
    counters = Counters()
    for _ in range(3):
        counters.hit(Bound.LINE_CHARS)
    counters.hit(Oddity.RUNS_EVICTED)
    caplog.clear()
    caplog.set_level(logging.INFO)
    counters.log({"feed.losses": 2, "feed.malformed": 0})
    (record,) = caplog.records
    assert record.levelname == "INFO"
    assert record.getMessage() == "counted: line_chars 3, runs_evicted 1, feed.losses 2"
