"""Signs of life: half of the time, from the loop, while the feed has somebody; O-03."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from adapter.config import Settings
from adapter.daemon import watchdog
from adapter.daemon.notify import Manager
from adapter.engine.engine import Engine
from stubs.waiting import until
from tests.unit.daemon.manager import hearing

NOWHERE = "http://127.0.0.1:1"
OURS = 4711


@pytest.mark.parametrize(
    ("environ", "seconds"),
    [
        ({"WATCHDOG_USEC": "30000000"}, 15.0),
        ({"WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "4711"}, 0.5),
        ({"WATCHDOG_USEC": "1000000", "WATCHDOG_PID": ""}, 0.5),
        ({"WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "4712"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "9" * 5000}, None),
        ({"WATCHDOG_USEC": "-1"}, None),
        ({"WATCHDOG_USEC": "30s"}, None),
        ({"WATCHDOG_USEC": ""}, None),
        ({"WATCHDOG_PID": "4711"}, None),
        ({}, None),
    ],
)
def test_how_often(environ: dict[str, str], seconds: float | None) -> None:
    assert watchdog.interval(environ, OURS) == seconds


class Rounds:
    """A sleep that returns at once, and ends the feeding after so many rounds."""

    def __init__(self, number: int) -> None:
        self.slept: list[float] = []
        self._number = number

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if len(self.slept) == self._number:
            raise asyncio.CancelledError


async def test_it_is_told_while_all_is_well() -> None:
    rounds = Rounds(4)
    told: list[int] = []
    well = iter((True, True, False, True))
    with pytest.raises(asyncio.CancelledError):
        await watchdog.feed(
            0.5, lambda: next(well), lambda: told.append(len(rounds.slept)), rounds.sleep
        )
    assert told == [0, 1, 3]
    assert rounds.slept == [0.5] * 4


async def test_a_feed_that_is_down_is_looked_after_and_one_whose_task_ended_is_not() -> None:
    broken = asyncio.Event()

    async def pause(seconds: float) -> None:
        await broken.wait()
        raise asyncio.CancelledError

    engine = Engine(Settings(server=NOWHERE), sleep=pause)
    async with engine:
        await asyncio.sleep(0)
        assert engine.is_reading
        assert not engine.feed.is_connected
        broken.set()

        async def ended() -> bool:
            return not engine.is_reading

        await until("the feed has nobody", ended)


async def test_a_feed_whose_task_stands_still_is_not_looked_after() -> None:
    now = 0.0
    still = asyncio.Event()

    async def pause(seconds: float) -> None:
        still.set()
        await asyncio.Event().wait()

    async with Engine(Settings(server=NOWHERE), clock=lambda: now, sleep=pause) as engine:
        async with asyncio.timeout(30):
            await still.wait()
        assert engine.is_reading
        now += 3600.0
        assert not engine.is_reading


def block() -> None:
    """Fifty times as long as between two signs of life."""
    time.sleep(0.05)


async def test_a_loop_that_is_blocked_says_nothing(tmp_path: Path) -> None:
    with hearing(tmp_path) as there:
        manager = Manager(there.address)
        feeding = asyncio.create_task(
            watchdog.feed(0.001, lambda: True, manager.alive, asyncio.sleep)
        )
        await there.until("WATCHDOG=1", 3)
        before = len(there.heard())
        block()
        assert len(there.heard()) == before
        await there.until("WATCHDOG=1", before + 1)
        feeding.cancel()
        manager.close()
