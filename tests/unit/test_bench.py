"""The benchmark of the daemon measures what was asked for (O-33); `make bench` has the figures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from adapter.limits import DEFAULTS
from tests.bench.bench_daemon import DELAY_MS, MEMORY_MB, Figures, Load, measure, within
from tests.bench.bench_start import COLD_MS

GOOD = Figures(medians=[1.0], slow=[4.9], starts=[299.0], memory=[50.0, 119.0])


async def test_every_client_every_round_and_the_memory_are_measured() -> None:
    load = Load(clients=3, turns=2, rounds=2, deltas=4, gap=0.02)
    figures = await measure(load)
    assert len(figures.starts) == load.clients
    assert len(figures.slow) == len(figures.medians) == load.rounds
    for median, slow in zip(figures.medians, figures.slow, strict=True):
        assert 0 < median <= slow
    before, after = figures.memory
    # A whole process, in megabytes.
    assert 10 < before < 1000
    assert 10 < after < 1000


def test_the_bounds_are_those_that_were_asked_for() -> None:
    assert (DELAY_MS, MEMORY_MB, COLD_MS) == (5.0, 120.0, 300.0)
    load = Load()
    assert load.clients == 64
    # As many as may run; the sessions of the others are open beside them.
    assert load.turns == DEFAULTS.prompts


@pytest.mark.parametrize("worse", [{"slow": [5.1]}, {"starts": [301.0]}, {"memory": [121.0, 50.0]}])
def test_a_figure_past_its_bound_fails(
    worse: dict[str, list[float]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert within(GOOD, Load())
    assert "MISSED" not in capsys.readouterr().out
    assert not within(replace(GOOD, **worse), Load())
    assert "MISSED" in capsys.readouterr().out
