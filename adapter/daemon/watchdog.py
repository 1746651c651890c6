"""The signs of life for the watchdog: from the event loop itself, while the feed is looked after.

A loop that is blocked sends none, and neither does one whose feed has nobody (O-03): the service
manager ends such a daemon and starts another.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from contract.numbers import whole

MICROSECONDS: Final = 1_000_000


def interval(environ: Mapping[str, str], pid: int) -> float | None:
    """Seconds between two signs of life; None if the service manager waits for none of `pid`.

    Half of what it waits for, as sd_watchdog_enabled(3) has it.
    """
    microseconds = whole(environ.get("WATCHDOG_USEC", ""))
    meant = environ.get("WATCHDOG_PID") or str(pid)
    if meant != str(pid) or not microseconds:
        return None
    return microseconds / MICROSECONDS / 2


async def feed(
    seconds: float,
    is_well: Callable[[], bool],
    tell: Callable[[], None],
    sleep: Callable[[float], Awaitable[None]],
) -> None:
    """`tell` now and every so many seconds, for ever, as long as it is well."""
    while True:
        if is_well():
            tell()
        await sleep(seconds)
