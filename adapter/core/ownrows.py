"""The rows of a turn out of a conversation that is read page by page. Pure.

What follows a prompt is its own until something closes it (`reconcile.segment`), and what closes
it is known by the prompt and the answer before. So of all that was taken, these two are kept,
without what they say.
"""

from __future__ import annotations

from collections.abc import Sequence

from adapter.core.reconcile import segment
from contract.reads import AnyRow, AssistantRow, UserRow


class OwnRows:
    """One reading, oldest rows first."""

    def __init__(self) -> None:
        self._kept: tuple[AnyRow, ...] = ()
        self._is_over = False

    def take(self, page: Sequence[AnyRow], turn_id: str) -> tuple[AnyRow, ...]:
        """The rows of the page that may be the turn's, behind its prompt; () without any."""
        if self._is_over:
            return ()
        rows = (*self._kept, *page)
        start = next((at for at, row in enumerate(rows) if row.id == turn_id), None)
        if start is None:
            return ()
        rows = rows[start:]
        own = segment(rows, turn_id)
        if own is None or own.closed:
            self._is_over = True
            self._kept = ()
            return rows
        last = own.last
        self._kept = (_bare(rows[0]), *((_bare(last),) if last is not None else ()))
        return rows


def _bare(row: AnyRow) -> AnyRow:
    """The row without what it says: large, and shown by now."""
    match row:
        case AssistantRow():
            return row.model_copy(update={"content": ()})
        case UserRow():
            return row.model_copy(update={"text": "", "files": ()})
        case _:
            return row
