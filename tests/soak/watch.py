"""What the daemon takes of the machine, looked at from outside."""

from __future__ import annotations

import asyncio
import os
import statistics
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PAGE: Final = os.sysconf("SC_PAGE_SIZE")
GROWTH: Final = 1.10
"""How much larger the memory of the last quarter may be than that of the second."""


@dataclass(frozen=True, slots=True)
class Sample:
    """Of one process: seconds since the start of the watch, bytes, and counts."""

    at: float
    rss: int
    descriptors: int
    threads: int


def sample(pid: int, began: float) -> Sample:
    """As /proc has it now."""
    process = Path(f"/proc/{pid}")
    rss = int((process / "statm").read_text().split()[1]) * PAGE
    descriptors = len(os.listdir(process / "fd"))
    threads = len(os.listdir(process / "task"))
    return Sample(time.monotonic() - began, rss, descriptors, threads)


async def watch(pid: int, samples: list[Sample], over: asyncio.Event) -> None:
    """A sample each second until `over` is set."""
    began = time.monotonic()
    while not over.is_set():
        samples.append(sample(pid, began))
        await asyncio.sleep(1.0)


def growth(samples: list[Sample]) -> float:
    """The memory of the last quarter, as a multiple of that of the second one; 1.0 of too few."""
    quarter = len(samples) // 4
    if not quarter:
        return 1.0
    second = [one.rss for one in samples[quarter : 2 * quarter]]
    last = [one.rss for one in samples[-quarter:]]
    return statistics.median(last) / statistics.median(second)
