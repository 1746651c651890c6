"""Waiting for a condition, with a deadline."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def until(what: str, probe: Callable[[], Awaitable[T | None]], seconds: float = 30.0) -> T:
    """The first result of `probe` that is neither None nor False.

    Raises TimeoutError, naming `what`, after `seconds`.
    """
    deadline = time.monotonic() + seconds
    while True:
        result = await probe()
        if result is not None and result is not False:
            return result
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {seconds} s: {what}")
        await asyncio.sleep(0.02)
