"""JSON as the server writes it, and the ids that it makes."""

from __future__ import annotations

import hashlib
import json
import random
import time
from typing import Any, Final

Json = dict[str, Any]

ALPHABET: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_MASK: Final = (1 << 48) - 1


def dumps(value: object) -> bytes:
    """Compact JSON; a lone surrogate is escaped, as JavaScript writes it."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def now_ms() -> int:
    """Milliseconds since the epoch, as every `time` on the wire."""
    return time.time_ns() // 1_000_000


def digest(text: str) -> str:
    """A stable hash where the server shows one (projects, snapshots)."""
    return hashlib.sha1(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()


class Ids:
    """Ids of the server's form: prefix, 12 hex digits of time and counter, 14 characters.

    They ascend with time, those of sessions descend.
    """

    def __init__(self) -> None:
        self._last = 0
        self._random = random.Random()

    def make(self, prefix: str) -> str:
        """The next id, such as "evt_22cfd64c2001ntIZfETFLHJoh4"."""
        self._last = max(self._last + 1, now_ms() * 0x1000 + 1)
        stamp = self._last & _MASK
        if prefix == "ses":
            stamp = ~stamp & _MASK
        tail = "".join(self._random.choices(ALPHABET, k=14))
        return f"{prefix}_{stamp:012x}{tail}"

    def slug(self) -> str:
        """Two words, as the server names a session."""
        first = self._random.choice(("calm", "brave", "quiet", "kind", "neon", "swift", "sunny"))
        second = self._random.choice(("falcon", "river", "cabin", "moon", "comet", "garden"))
        return f"{first}-{second}"
