"""Words that more than one side of the adapter says."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """ "1 turn", "2 turns", "0 turns": a noun whose plural is made by an s."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
