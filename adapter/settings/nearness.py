"""What a name that is not known was most likely meant for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

CUTOFF: Final = 0.7
"""How alike two names have to be, from 0 to 1 (difflib); below, any name would be near to some."""
SHOWN: Final = 100
"""Characters of a name that are looked at: it may be anything."""


def near(name: str, known: Iterable[str]) -> str | None:
    """The one of `known` that is most like `name`; None if none is."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(name[:SHOWN], list(known), n=1, cutoff=CUTOFF)), None)


def hint(name: str, known: Iterable[str]) -> str:
    """` (NAME is one)`, for a sentence that says that `name` is none; else empty."""
    found = near(name, known)
    return f" ({found} is one)" if found else ""
