"""Rows of the server's list as ACP's SessionInfo, and what of them could not be told. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final

from adapter.acp.bounded import cut, written
from adapter.acp.meta import META
from adapter.core.values import Oddity
from adapter.engine.lineage import parents
from contract.reads import SessionRow
from contract.routes import is_id

Json = dict[str, object]

# A page of a hundred sessions stays below the bound of one line.
TITLE_CHARS: Final = 256
DIRECTORY_BYTES: Final = 6 * 1024


def infos(
    rows: Sequence[SessionRow],
    active: frozenset[str] | None,
    count: Callable[[Oddity, int], None],
) -> list[Json]:
    """One SessionInfo for each row; `active` is None when what runs could not be read.

    `count` is told how many sessions no client could open, and how many parents are none.

    `_meta["opencode-acp"]`: `running`, and for a child `parentSessionId` and `spawnedBy`, which
    is the same session under the name that older clients read.
    """
    kept = [row for row in rows if _can_be_opened(row)]
    count(Oddity.SESSIONS_NOT_LISTED, len(rows) - len(kept))
    parent_of, refused = parents(kept)
    count(Oddity.PARENTS_NOT_TOLD, refused)
    return [_info(row, active, parent_of.get(row.id)) for row in kept]


def _info(row: SessionRow, active: frozenset[str] | None, parent: str | None) -> Json:
    meta: Json = {}
    if active is not None:
        meta["running"] = row.id in active
    if parent is not None:
        meta |= {"parentSessionId": parent, "spawnedBy": parent}
    info: Json = {"sessionId": row.id, "cwd": _directory(row)}
    if row.title.strip():
        info["title"] = cut(row.title, TITLE_CHARS)
    changed = _iso(row.time.created if row.time.updated is None else row.time.updated)
    if changed is not None:
        info["updatedAt"] = changed
    return info | ({"_meta": {META: meta}} if meta else {})


def _directory(row: SessionRow) -> str:
    return row.location.directory if row.location else ""


def _can_be_opened(row: SessionRow) -> bool:
    directory = _directory(row)
    fits = directory.startswith("/") and written(directory) <= DIRECTORY_BYTES
    return fits and is_id("sessionID", row.id)


def _iso(milliseconds: float) -> str | None:
    """ISO 8601 in UTC; None for no time."""
    if milliseconds <= 0:
        return None
    try:
        moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
