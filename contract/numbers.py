"""Whole numbers as others write them."""

from __future__ import annotations

from typing import Final

DIGITS: Final = 19
"""As many as a number of 64 bits has. Python refuses to read one of thousands of digits."""


def whole(text: str) -> int | None:
    """The number that is written as decimal digits of ASCII alone; None for anything else."""
    is_number = text.isascii() and text.isdecimal() and len(text) <= DIGITS
    return int(text) if is_number else None
