"""Timers by name: one of each, and those of a turn go with its id."""

from __future__ import annotations

import asyncio

from adapter.engine.timers import Timers
from stubs.waiting import until


async def fired(names: list[str], count: int) -> None:
    async def enough() -> bool:
        return len(names) >= count

    await until(f"{count} timers fire", enough)


async def test_a_timer_fires_once_under_its_name() -> None:
    names: list[str] = []
    timers = Timers(names.append)
    timers.arm("a", 0.0)
    timers.arm("a", 0.0)
    timers.arm("b", 0.0)
    await fired(names, 2)
    assert names == ["a", "b"]


async def test_what_is_disarmed_closed_or_off_never_fires() -> None:
    names: list[str] = []
    timers = Timers(names.append)
    timers.arm("a", 0.0)
    timers.disarm("a")
    timers.arm("off", None)
    timers.arm("b", 0.0)
    timers.close()
    timers.arm("last", 0.0)
    await fired(names, 1)
    assert names == ["last"]


async def test_a_turn_that_is_renamed_keeps_the_hours_of_its_timers() -> None:
    names: list[str] = []
    timers = Timers(names.append)
    timers.arm("cancel:x", 0.01)
    timers.arm("cancel:y", 3600.0)
    before = asyncio.get_running_loop().time()
    timers.rename("x", "z")
    await fired(names, 1)
    assert names == ["cancel:z"]
    assert asyncio.get_running_loop().time() >= before
    timers.close()
