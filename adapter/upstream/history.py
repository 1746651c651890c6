"""The newest rows of one session, oldest first, with one page of them in memory.

The list of messages gives its newest page first. So the pages are walked down to the oldest one
that is wanted, and read again upwards: a cursor stands on a row, so that rows which are added
meanwhile shift nothing and come at the end (measured on OpenCode 2.0.15).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Final, Literal

from adapter.upstream.errors import ShapeMismatch, TooLarge
from adapter.upstream.shaped import an_object, objects, row_of
from adapter.upstream.transport import Transport
from contract import routes, semantics
from contract.reads import AnyRow

# A page over the bound of an answer is asked for again in pages of this part of its size.
SHRINK: Final = 8

Direction = Literal["next", "previous"]


@dataclass(frozen=True, slots=True)
class Page:
    """Raw rows, newest first, and the cursors on both sides; no rows at either end."""

    rows: list[dict[str, Any]]
    cursors: dict[str, Any]


class History:
    """One reading of a session, at most `bound` rows from before it and all that come meanwhile.

    Raises the errors of `Server`'s reads.
    """

    def __init__(self, http: Transport, session_id: str, bound: int) -> None:
        self._http = http
        self._session_id = session_id
        self.bound = bound
        self._limit = semantics.MAX_PAGE
        self._followed: set[str] = set()
        self.is_cut = False
        """Whether older rows were left out; known once the first page is given."""

    async def pages(self) -> AsyncIterator[tuple[AnyRow, ...]]:
        """Rows by pages, all of it ascending.

        `ShapeMismatch` when a row vanished under the reading, as by a revert: what was given
        until then is not the whole.
        """
        page = await self._page(None, self.bound)
        if not page.rows:
            return
        newest = page.rows[0]["id"]
        page = await self._walk_down(page)
        seen = False
        while page.rows:
            seen = seen or any(raw["id"] == newest for raw in page.rows)
            yield tuple(row_of(raw) for raw in reversed(page.rows))
            page = await self._beside(page, "previous")
        if not seen:
            raise ShapeMismatch("The history of this session changed while it was read.")

    async def _walk_down(self, page: Page) -> Page:
        """The oldest page within the bound."""
        count = len(page.rows)
        while count < self.bound:
            older = await self._beside(page, "next", self.bound - count)
            if not older.rows:
                return page
            page = older
            count += len(page.rows)
        self.is_cut = bool((await self._beside(page, "next", 1)).rows)
        return page

    async def _beside(
        self, page: Page, direction: Direction, most: int = semantics.MAX_PAGE
    ) -> Page:
        """The page on one side of another."""
        cursor = page.cursors.get(direction)
        if not isinstance(cursor, str) or not cursor.strip():
            raise ShapeMismatch("The OpenCode server sent a page with a cursor that is none.")
        if cursor in self._followed and direction == "previous":
            raise ShapeMismatch("The OpenCode server sent a page that leads back to itself.")
        self._followed.add(cursor)
        return await self._page(cursor, most)

    async def _page(self, cursor: str | None, most: int) -> Page:
        while True:
            limit = min(self._limit, most)
            query = {"limit": str(limit)} | ({} if cursor is None else {"cursor": cursor})
            try:
                answer = await self._http.call(
                    routes.MESSAGES, {"sessionID": self._session_id}, query=query
                )
            except TooLarge:
                if limit == 1:
                    raise
                self._limit = max(1, limit // SHRINK)
                continue
            body = an_object(answer.json())
            cursors = body.get("cursor")
            return Page(objects(body.get("data")), cursors if isinstance(cursors, dict) else {})
