"""session/list: a page of the server's sessions, the newest change first.

The server compares directories as strings, and a session carries the path that its client gave:
under the real path of a link, the server would ask for a permission for every file that the
client names by the link (measured on OpenCode 2.0.15). So the list of a directory that has links
is the merged list of both of its names. Nothing here starts a location of the server.
Workaround "both names of a directory are listed".
"""

from __future__ import annotations

import asyncio
import os

from adapter.acp.meta import ours
from adapter.acp.transport import Call
from adapter.engine.cursors import CursorError, Leg, Walk, read, write
from adapter.engine.listed import infos
from adapter.engine.methods.desk import Desk, Json
from adapter.engine.methods.directories import absolute
from adapter.engine.pages import Merged, merge
from adapter.upstream.errors import Refused, UpstreamError
from adapter.upstream.sessions import SessionPage
from contract import acp
from contract.errors import AcpError, Code, invalid_params


class Listing:
    """One request of the server for a page and each name; one more where the page is full."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def list(self, call: Call) -> Json:
        """Roots, or children as well if `_meta["opencode-acp"].includeChildren` is true.

        AcpError -32602 for a cursor that no list with these filters gave.
        """
        params = acp.read_params(acp.ListSessions, call.params)
        children = ours(call.params).get("includeChildren") is True
        names = _names(params.cwd)
        filters = (*names, children)
        walk = Walk(tuple(Leg() for _ in names))
        if params.cursor is not None:
            walk = _resumed(params.cursor, filters, len(names))
        merged, active = await asyncio.gather(
            self._page(walk, names, roots=not children), self._active()
        )
        sessions = infos(merged.rows, active, self._desk.engine.counters.hit)
        result: Json = {"sessions": sessions}
        walk = await self._rest(merged, names, roots=not children)
        if any(walk.legs):
            result["nextCursor"] = _cursor(walk, filters)
        return result

    async def _page(self, walk: Walk, names: tuple[str | None, ...], *, roots: bool) -> Merged:
        limit = self._desk.engine.settings.list_page
        reads = (
            self._read(leg, name, roots=roots, limit=limit)
            for leg, name in zip(walk.legs, names, strict=True)
        )
        return merge(walk, await asyncio.gather(*reads), limit)

    async def _read(
        self, leg: Leg | None, name: str | None, *, roots: bool, limit: int
    ) -> SessionPage | None:
        if leg is None:
            return None
        sessions = self._desk.engine.server.sessions
        try:
            return await sessions.page(name, roots=roots, limit=limit, cursor=leg.cursor)
        except Refused as error:
            if error.tag == "InvalidCursorError" and leg.cursor is not None:
                raise invalid_params(
                    "cursor is none of this server; list from the start."
                ) from error
            raise

    async def _rest(self, merged: Merged, names: tuple[str | None, ...], *, roots: bool) -> Walk:
        """The walk without the legs behind which there is nothing: a cursor promises a row."""
        walk = merged.walk
        if merged.sure or not any(walk.legs):
            return walk
        peeks = (
            self._read(leg, name, roots=roots, limit=1)
            for leg, name in zip(walk.legs, names, strict=True)
        )
        found = await asyncio.gather(*peeks)
        legs = tuple(
            leg if page is not None and page.rows else None
            for leg, page in zip(walk.legs, found, strict=True)
        )
        return Walk(legs, walk.last)

    async def _active(self) -> frozenset[str] | None:
        """What runs, which makes no rows; None if it cannot be read: the list goes without it."""
        try:
            return await self._desk.engine.server.active()
        except UpstreamError:
            return None


def _names(cwd: str | None) -> tuple[str | None, ...]:
    """The names under which sessions of a directory may stand at the server."""
    if cwd is None:
        return (None,)
    given = absolute(cwd)
    real = os.path.realpath(given)
    return (given,) if real == given else (given, real)


def _resumed(cursor: str, filters: tuple[object, ...], legs: int) -> Walk:
    try:
        return read(cursor, filters, legs)
    except CursorError as error:
        raise invalid_params(f"Invalid params: {error}") from None


def _cursor(walk: Walk, filters: tuple[object, ...]) -> str:
    try:
        return write(walk, filters)
    except CursorError as error:
        raise AcpError(Code.LIMIT, str(error)) from None
