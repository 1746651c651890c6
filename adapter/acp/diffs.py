"""Unified patches of the server as pairs of old and new text (ACP wants texts, not patches)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

_HUNK: Final = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


@dataclass(frozen=True, slots=True)
class DiffText:
    """The lines of one hunk before and after; `old` is None for a file that is new."""

    old: str | None
    new: str


def hunks(patch: str, *, added: bool) -> Iterator[DiffText]:
    """Each hunk of a patch of one file. A patch without hunks has no change to show."""
    old: list[str] = []
    new: list[str] = []
    open_hunk = False
    last: list[list[str]] = []
    # Only 0x0A ends a line: a file may hold U+2028 and the like.
    for line in re.findall(r"[^\n]*\n|[^\n]+", patch):
        if _HUNK.match(line):
            if open_hunk:
                yield _pair(old, new, added=added)
            old, new, open_hunk, last = [], [], True, []
        elif open_hunk and line.startswith("\\"):
            # "No newline at end of file" speaks of the line before it.
            for side in last:
                side[-1] = side[-1].removesuffix("\n")
        elif open_hunk:
            last = [old] if line[0] == "-" else [new] if line[0] == "+" else [old, new]
            for side in last:
                side.append(line[1:] if line[0] in "-+ " else line)
    if open_hunk:
        yield _pair(old, new, added=added)


def _pair(old: list[str], new: list[str], *, added: bool) -> DiffText:
    return DiffText(None if added and not old else "".join(old), "".join(new))
