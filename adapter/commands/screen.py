"""Words and columns for a terminal: what came from others cannot move its cursor (X-16). Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from contract.characters import is_obeyed

GAP: Final = "  "
UNITS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"))


def plain(text: str) -> str:
    """`text` in one line, each character that is not to be seen as U+FFFD."""
    return "".join("\ufffd" if is_obeyed(c) else c for c in text)


def columns(rows: Sequence[Sequence[object]]) -> list[str]:
    """Rows of one length as lines with aligned columns; numbers stand at the right."""
    texts = [[plain(str(cell)) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    numbers = [
        all(isinstance(cell, int) for cell in column[1:]) for column in zip(*rows, strict=True)
    ]
    lines = []
    for row in texts:
        cells = [
            text.rjust(width) if number else text.ljust(width)
            for text, width, number in zip(row, widths, numbers, strict=True)
        ]
        lines.append(GAP.join(cells).rstrip())
    return lines


def duration(seconds: float) -> str:
    """The two largest units: "3 d 4 h", "59 min 3 s", "2 s"."""
    rest = int(seconds)
    parts: list[str] = []
    for length, unit in UNITS:
        if rest >= length or parts:
            parts.append(f"{rest // length} {unit}")
            rest %= length
    return " ".join([*parts, f"{rest} s"][:2])
