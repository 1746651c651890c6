"""What is said of a daemon that ends: to clients that come, and to whoever asks for its state."""

from __future__ import annotations

import math


def sentence(path: str, turns: int = 0, seconds: float = 0) -> str:
    """For a client that comes; `seconds` is how long the turns in flight still have at most."""
    daemon = f"The daemon at {path}" if path else "The daemon"
    if not turns:
        return f"{daemon} is ending; start this command again in a few seconds."
    waits = f"it waits for {awaited(turns, seconds)}"
    return f"{daemon} is ending: {waits}; start this command again after that."


def awaited(turns: int, seconds: float) -> str:
    """What it waits for, and how long."""
    number = "1 turn" if turns == 1 else f"{turns} turns"
    return f"{number}, {max(1, math.ceil(seconds))} s at most"
