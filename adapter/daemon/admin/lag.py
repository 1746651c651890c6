"""How late the event loop is, measured by a task that asks to be woken (O-32)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, NoReturn

PERIOD: Final = 0.5
"""Seconds between two measurements."""


async def measure(
    clock: Callable[[], float],
    sleep: Callable[[float], Awaitable[None]],
    late: Callable[[float], None],
) -> NoReturn:
    """Tell `late` after each period by how many seconds the loop came too late, until cancelled."""
    while True:
        due = clock() + PERIOD
        await sleep(PERIOD)
        late(max(0.0, clock() - due))
