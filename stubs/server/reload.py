"""Configuration that changes while the server runs: the burst of events by which it says so."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final

from stubs.server.wire import Json

# Seconds between two looks at the files of a directory.
PAUSE: Final = 0.05
# After a change, in the order of the real server: at once, and with the lists that come last.
FIRST: Final = ("skill", "config", "reference", "provider", "model", "provider", "model", "skill")
LAST: Final = ("command", "agent")
GAP: Final = 0.1


class Reloads:
    """One task for each directory that was used; `say` publishes an event of a location."""

    def __init__(self, say: Callable[[str, Json, str], object]) -> None:
        self._say = say
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def watch(self, directory: str) -> None:
        """Look after a directory from now on."""
        if directory and directory not in self._tasks:
            self._tasks[directory] = asyncio.create_task(self._look(directory))

    async def stop(self) -> None:
        """Look after none any more."""
        tasks = list(self._tasks.values())
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _look(self, directory: str) -> None:
        known = _stamps(directory)
        while True:
            await asyncio.sleep(PAUSE)
            found = _stamps(directory)
            if found == known:
                continue
            known = found
            for name in FIRST:
                self._say(f"{name}.updated", {}, directory)
            await asyncio.sleep(GAP)
            for name in LAST:
                self._say(f"{name}.updated", {}, directory)


def _stamps(directory: str) -> dict[str, tuple[int, int]]:
    """Size and time of each file that configures a directory."""
    root = Path(directory)
    files = [root / "opencode.json", *sorted((root / ".opencode").glob("*/**/*.md"))]
    found = {}
    for file in files:
        try:
            status = file.stat()
        except OSError:
            continue
        found[str(file)] = (status.st_size, status.st_mtime_ns)
    return found
