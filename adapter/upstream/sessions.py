"""What is done with whole sessions: pages of their list, delete, fork, both ends of their rows.

Raises what every call of `adapter.upstream.client` raises.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Final

from adapter.upstream.errors import SessionMissing, ShapeMismatch
from adapter.upstream.shaped import Walk, data, row_of, shaped
from adapter.upstream.transport import Retry, Transport
from contract import routes
from contract.reads import AnyRow, Session, SessionRow

# Rows of one page when the newest prompt of ours is looked for, and rows in all: a resume is no
# reason to read a whole conversation.
LOOK_BACK_PAGE: Final = 50
LOOK_BACK_ROWS: Final = 400


@dataclass(frozen=True, slots=True)
class SessionPage:
    """Rows, the newest change first, and the server's cursor behind them.

    `following` is None when the page is short, which is the end of the list. Behind a full page
    there may be nothing all the same: the server gives a cursor with every page that has rows.
    """

    rows: tuple[SessionRow, ...]
    following: str | None


class Sessions:
    """The sessions of one server."""

    def __init__(self, http: Transport) -> None:
        self._http = http

    async def page(
        self, directory: str | None, *, roots: bool, limit: int, cursor: str | None = None
    ) -> SessionPage:
        """One page: of one directory if it is given, and without children if `roots`.

        The server compares `directory` as a string. A cursor carries the filters of its list, so
        that none goes with it. A cursor that is none to the server is `Refused` with its tag.
        """
        query = {"limit": str(limit)}
        if cursor is not None:
            query["cursor"] = cursor
        else:
            query |= {"parentID": "null"} if roots else {}
            query |= {} if directory is None else {"directory": directory}
        answer = await self._http.call(routes.SESSION_LIST, query=query)
        raw, following = Walk(cursor).page(answer)
        if len(raw) > limit:
            raise ShapeMismatch("The OpenCode server sent a page that is longer than was asked.")
        rows = tuple(shaped(SessionRow, item) for item in raw)
        return SessionPage(rows, following if len(rows) == limit else None)

    async def delete(self, session_id: str) -> None:
        """Delete a session and its children; one that is gone already counts as deleted."""
        try:
            await self._http.call(routes.SESSION_DELETE, {"sessionID": session_id})
        except SessionMissing:
            return

    async def fork(self, session_id: str, before: str | None = None) -> Session:
        """A copy, with the rows before the message `before` or with all. Never sent twice.

        `Refused` with 400 for a session without rows, with 404 for an unknown message.
        """
        body: Mapping[str, object] = {} if before is None else {"before": before}
        answer = await self._http.call(
            routes.SESSION_FORK, {"sessionID": session_id}, body=body, retry=Retry.UNSENT
        )
        return shaped(Session, data(answer))

    async def pages_back(self, session_id: str) -> AsyncIterator[tuple[AnyRow, ...]]:
        """The newest 400 rows by pages, the newest row first.

        The last page is short, or empty, if the session has no more rows than these.
        """
        walk = Walk()
        query = {"limit": str(LOOK_BACK_PAGE)}
        for _ in range(LOOK_BACK_ROWS // LOOK_BACK_PAGE):
            answer = await self._http.call(routes.MESSAGES, {"sessionID": session_id}, query=query)
            page, cursor = walk.page(answer)
            yield tuple(row_of(raw) for raw in page)
            if cursor is None:
                return
            query = {"limit": str(LOOK_BACK_PAGE), "cursor": cursor}

    async def first_rows(self, session_id: str, count: int) -> tuple[AnyRow, ...]:
        """The oldest rows, oldest first."""
        query = {"limit": str(count), "order": "asc"}
        answer = await self._http.call(routes.MESSAGES, {"sessionID": session_id}, query=query)
        page, _ = Walk().page(answer)
        return tuple(row_of(raw) for raw in page)
