"""The reads that show what became of the newest prompt of ours in a session."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field, replace
from typing import Final

from adapter.core.standing import Carrier, Reads, Standing, standing
from adapter.engine import marks
from adapter.upstream.client import Server
from adapter.upstream.errors import SessionMissing
from adapter.upstream.sessions import LOOK_BACK_ROWS
from contract.calls import child_of
from contract.reads import AnyRow, SyntheticRow

# Children that are looked into, those that ended and those that may not have, each.
CHILDREN: Final = 8


@dataclass(slots=True)
class Search:
    """One reading of a session; turns that are `later`, also those that become it, are no past.

    The order is that of a prompt's life: inbox, active, rows, then the children of which no row
    tells. Raises `UpstreamError`.
    """

    server: Server
    session_id: str
    later: Set[str]
    # The turn whose command a child carried out; None for a child that no command of ours made.
    _calls: dict[str, str | None] = field(default_factory=dict)

    async def look(self) -> Standing | None:
        server = self.server
        inbox = await server.inbox(self.session_id)
        active = await server.active()
        await self._look_into([child_of(item.payload.metadata) for item in inbox])
        rows, is_cut = await self._rows()
        reads = Reads(inbox, self.session_id in active, rows, self._carried())
        found = await self._carriers(reads, active)
        # Of one that does not run the rows that were not read may tell.
        carriers = [one for one in found if one.runs or not is_cut]
        return standing(replace(reads, carriers=carriers), self.later)

    async def _rows(self) -> tuple[tuple[AnyRow, ...], bool]:
        """(rows, oldest first, from the page of the newest prompt on; whether none is in reach)."""
        newest_first: list[AnyRow] = []
        async for page in self.server.sessions.pages_back(self.session_id):
            newest_first.extend(page)
            tellers = [row for row in page if isinstance(row, SyntheticRow)]
            await self._look_into([child_of(row.metadata) for row in tellers])
            if Reads(rows=page, carried=self._carried()).newest_own(self.later) is not None:
                return tuple(reversed(newest_first)), False
        return tuple(reversed(newest_first)), len(newest_first) >= LOOK_BACK_ROWS

    async def _carriers(self, reads: Reads, active: frozenset[str]) -> list[Carrier]:
        """The newest children that are newer than any item of ours and carry out a command."""
        own = reads.newest_own(self.later)
        since = 0.0 if own is None else own.created
        found: list[Carrier] = []
        for child in await self.server.children(self.session_id, CHILDREN):
            if child.time.created <= since or child.id in self._calls:
                continue
            call = await self._call_of(child.id)
            if call is not None:
                found.append(Carrier(child.id, call, child.time.created, child.id in active))
        return found

    async def _look_into(self, children: list[str | None]) -> None:
        """Whether commands of ours made the children of whose end is told; the first ones only."""
        for child_id in children:
            if child_id is None or child_id in self._calls:
                continue
            if len(self._calls) >= CHILDREN:
                return
            self._calls[child_id] = await self._call_of(child_id)

    async def _call_of(self, child_id: str) -> str | None:
        try:
            return await marks.call_of_child(self.server, child_id)
        except (SessionMissing, ValueError):
            # Deleted by itself, or no id that the server can be asked for.
            return None

    def _carried(self) -> dict[str, str]:
        return {child: call for child, call in self._calls.items() if call is not None}
