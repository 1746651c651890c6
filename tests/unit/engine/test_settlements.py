"""How the end of a turn is told."""

from __future__ import annotations

import json
import logging

import pytest

from adapter.core.values import Outcome, Stop
from adapter.engine.observer import Settlement, Silent
from adapter.engine.settlements import Settlements
from adapter.logs import set_up
from tests.support.logs import log_stream


class Hears(Silent):
    def __init__(self) -> None:
        self.heard: list[Settlement] = []

    def settled(self, settlement: Settlement) -> None:
        self.heard.append(settlement)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_times_run_from_the_prompt_to_its_first_text_and_to_its_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock, hears = Clock(), Hears()
    turns = Settlements("ses_a", clock, hears)
    turns.began(1)
    clock.now += 1
    turns.began(2)
    assert turns.oldest == 100.0
    turns.shown(1)
    clock.now += 1
    turns.shown(1)
    turns.shown(3)
    done = Outcome("msg_a", Stop.END_TURN, gaps=2, recovered=5)
    with caplog.at_level(logging.INFO):
        turns.settled(1, done)
        turns.settled(2, Outcome("msg_b", code=-32050, reason="unknown"))
    assert hears.heard[0] == Settlement("ses_a", done, 2.0, 1.0)
    assert (hears.heard[1].seconds, hears.heard[1].first_chunk) == (1.0, None)
    first, second = caplog.messages
    assert all(part in first for part in ("msg_a", "end_turn", "2.00 s", "1.00 s", "gaps 2"))
    assert "unknown" in second
    assert turns.oldest is None


@pytest.mark.parametrize("log_format", ["json", "journal"])
def test_a_machine_finds_the_same_in_fields(log_format: str) -> None:
    clock = Clock()
    turns = Settlements("ses_a", clock, Silent())
    turns.began(1)
    clock.now += 1.5
    turns.shown(1)
    clock.now += 0.25
    with log_stream() as out:
        set_up("info", log_format, daemon=True, stream=out)
        outcome = Outcome("msg_a", Stop.END_TURN, gaps=2, recovered=5)
        turns.settled(1, outcome, "7 acpx")
        said = out.getvalue()
    fields: dict[str, str | float] = {"SESSION_ID": "ses_a", "PROMPT_ID": "msg_a"}
    fields |= {"CLIENT": "7 acpx", "OUTCOME": "end_turn", "CODE": 0}
    fields |= {"SECONDS": 1.75, "FIRST_CHUNK_SECONDS": 1.5, "GAPS": 2, "RECOVERED": 5}
    if log_format == "json":
        assert fields.items() <= json.loads(said).items()
    else:
        told = " ".join(
            f"{name}={value}".replace("7 acpx", '"7 acpx"') for name, value in fields.items()
        )
        assert said.endswith(f" {told}\n")
