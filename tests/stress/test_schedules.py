"""Random schedules on the real server: no hang, no lost or foreign text, no wrong outcome."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.stress.schedules import run_all


@pytest.mark.real
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("first", "count", "restarts"),
    [
        pytest.param(1, 30, False, id="30", marks=pytest.mark.long),
        pytest.param(1001, 500, False, id="500", marks=pytest.mark.long),
        pytest.param(2001, 60, True, id="60-with-restarts", marks=pytest.mark.long),
    ],
)
async def test_nothing_is_lost_or_invented(
    tmp_path: Path, first: int, count: int, restarts: bool
) -> None:
    summary = await run_all(tmp_path, range(first, first + count), restarts=restarts)
    assert summary.found == []
    assert sum(summary.outcomes.values()) > count
    assert summary.gaps > 0
