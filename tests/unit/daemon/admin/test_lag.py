"""The lag of the loop, by a clock that only the test moves."""

from __future__ import annotations

import asyncio

import pytest

from adapter.daemon.admin.lag import PERIOD, measure


async def test_what_the_loop_comes_too_late_is_told() -> None:
    now = 100.0
    late = iter([0.0, 0.25, -0.001])
    told: list[float] = []

    async def sleep(seconds: float) -> None:
        nonlocal now
        assert seconds == PERIOD
        more = next(late, None)
        if more is None:
            raise asyncio.CancelledError
        now += seconds + more

    with pytest.raises(asyncio.CancelledError):
        await measure(lambda: now, sleep, told.append)
    assert told == pytest.approx([0.0, 0.25, 0.0])
