"""Characters that are no text: who reads a line or a terminal must not obey them. Pure."""

from __future__ import annotations

import unicodedata
from typing import Final

OBEYED: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Categories that a terminal obeys, hides or cannot show: control, format, surrogate, ..."""


def is_obeyed(character: str) -> bool:
    """Whether it is of one of those."""
    return unicodedata.category(character) in OBEYED
