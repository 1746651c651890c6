"""Whose child a listed session is: only what can be true. Pure.

A parent is told when it is an id of OpenCode, another session than the row's own, and when the
way up through the listed rows comes to an end.
"""

from __future__ import annotations

from collections.abc import Sequence

from contract.reads import SessionRow
from contract.routes import is_id


def parents(rows: Sequence[SessionRow]) -> tuple[dict[str, str], int]:
    """(child to parent, how many parents were refused) of the rows that name one."""
    named = {row.id: row.parent_id for row in rows if row.parent_id is not None}
    fit = {
        child: parent
        for child, parent in named.items()
        if isinstance(parent, str) and is_id("sessionID", parent)
    }
    kept = {child: parent for child, parent in fit.items() if _ends(child, fit)}
    return kept, len(named) - len(kept)


def _ends(child: str, parent_of: dict[str, str]) -> bool:
    """Whether the way up from `child` meets no session twice."""
    met = {child}
    current = parent_of.get(child)
    while current is not None:
        if current in met:
            return False
        met.add(current)
        current = parent_of.get(current)
    return True
