"""One page of session/list out of the pages of its legs: merged, the newest change first. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from adapter.engine.cursors import Leg, Place, Walk
from adapter.upstream.errors import ShapeMismatch
from adapter.upstream.sessions import SessionPage
from contract.reads import SessionRow


@dataclass(frozen=True, slots=True)
class Merged:
    """The rows of a page, where the walk stands behind it, and whether more is known to follow.

    Not `sure`: the legs that are left may have ended.
    """

    rows: tuple[SessionRow, ...]
    walk: Walk
    sure: bool


def place(row: SessionRow) -> Place:
    """Where a row stands: lists of the server go by the last change."""
    changed = row.time.updated
    return Place(row.time.created if changed is None else changed, row.id)


def merge(walk: Walk, pages: Sequence[SessionPage | None], limit: int) -> Merged:
    """At most `limit` rows; None is the page of a leg that has ended.

    The merge stops where the rows of one leg are used up and more of its rows may follow: these
    may be newer than what the other legs have. ShapeMismatch for rows that stood before the
    place which the walk has reached: the server's cursor leads back.
    """
    waiting = [_fresh(walk, index, page) for index, page in enumerate(pages)]
    taken: list[SessionRow] = []
    while len(taken) < limit and not _is_used_up(waiting, pages):
        heads = [index for index, rows in enumerate(waiting) if rows]
        if not heads:
            break
        newest = max(heads, key=lambda index: _key(waiting[index][0]))
        taken.append(waiting[newest].pop(0))
    last = place(taken[-1]) if taken else walk.last
    legs = tuple(
        _behind(leg, page, rows) for leg, page, rows in zip(walk.legs, pages, waiting, strict=True)
    )
    return Merged(tuple(taken), Walk(legs, last), any(waiting))


def _fresh(walk: Walk, index: int, page: SessionPage | None) -> list[SessionRow]:
    """The rows of a leg's page that were not given before."""
    leg, last = walk.legs[index], walk.last
    if page is None or leg is None:
        return []
    rows = list(page.rows)
    if last is None:
        return rows
    if leg.begun:
        rows = [row for row in rows if _key(row) < (last.updated, last.id)]
    if any(_key(row)[0] > last.updated for row in rows):
        raise ShapeMismatch("The OpenCode server sent a page of sessions that leads back.")
    return rows


def _is_used_up(waiting: list[list[SessionRow]], pages: Sequence[SessionPage | None]) -> bool:
    return any(
        not rows and page is not None and page.following is not None
        for rows, page in zip(waiting, pages, strict=True)
    )


def _behind(leg: Leg | None, page: SessionPage | None, rows: list[SessionRow]) -> Leg | None:
    """Where a leg stands once its page was merged; `rows` are left of the page."""
    if leg is None or page is None:
        return None
    if not rows:
        return None if page.following is None else Leg(page.following)
    return Leg(leg.cursor, begun=True)


def _key(row: SessionRow) -> tuple[float, str]:
    at = place(row)
    return at.updated, at.id
