"""The processes that belong to a server under test, found by its own HOME."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path


def processes_of_home(home: Path) -> list[int]:
    """The ids of the live processes whose environment has this HOME.

    A shell that OpenCode started outlives a killed server; it still carries the HOME, which no
    other process of the machine has.
    """
    wanted = b"HOME=" + os.fsencode(home)
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
    return found


def kill_processes_of_home(home: Path) -> None:
    """Kill them, one by one."""
    for pid in processes_of_home(home):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
