"""What is said of a daemon that ends: to clients that come, and to whoever asks for its state."""

from __future__ import annotations

import math
from typing import Final

from contract.words import counted

NEXT: Final = (
    "Wait for its end; if no service manager starts the next one, `opencode-acp serve` does."
)
"""What to do about it."""


def sentence(path: str, turns: int = 0, seconds: float = 0) -> str:
    """For a client that comes; `seconds` is how long the turns in flight still have at most."""
    daemon = f"The daemon at {path}" if path else "The daemon"
    if not turns:
        return f"{daemon} is ending; start this command again in a few seconds."
    waits = f"it waits for {awaited(turns, seconds)}"
    return f"{daemon} is ending: {waits}; start this command again after that."


def standing(state: str, turns: int, seconds: float | None) -> str:
    """For whoever asks for the state of a daemon that takes no client."""
    if turns and seconds is not None:
        return f"{state}: it waits for {awaited(turns, seconds)}, and takes no client"
    return f"{state}: it is about to be gone, and takes no client"


def awaited(turns: int, seconds: float) -> str:
    """What it waits for, and how long."""
    return f"{counted(turns, 'turn')}, {max(1, math.ceil(seconds))} s at most"
