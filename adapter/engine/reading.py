"""The reads of one session, in lifecycle order, as one snapshot (lifecycle rule 18)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Final, TypeVar

from adapter.core.values import Snapshot
from adapter.engine import marks
from adapter.upstream.client import Server
from adapter.upstream.errors import SessionMissing, Unauthorised, UpstreamError
from contract.reads import Session

logger = logging.getLogger(__name__)

ReadT = TypeVar("ReadT")

# Sessions whose children are read, and parents that are walked up from an ask of a session that
# is not known yet.
CHILD_READS: Final = 128
ANCESTORS: Final = 16


@dataclass(frozen=True, slots=True)
class Family:
    """Descendants of a session: the parent of each, parents first, and their titles."""

    parents: dict[str, str] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)

    def add(self, child: Session, parent: str) -> None:
        self.parents[child.id] = parent
        self.titles[child.id] = child.title


@dataclass(frozen=True, slots=True)
class Reader:
    """The reads of one root session; `directory` is the location that its asks are listed by."""

    server: Server
    session_id: str
    directory: str

    async def snapshot(
        self,
        needed: frozenset[str],
        judged: frozenset[str],
        known: frozenset[str],
        unnamed: frozenset[str] = frozenset(),
    ) -> Snapshot:
        """Inbox, then active, then messages; then asks, forms and children of the location.

        The verdicts rest on the first three; what of the others cannot be read is None.

        `needed` are the turns whose rows are looked for, `judged` those that were admitted
        before, `known` the descendants that are followed already, `unnamed` the commands of
        which neither an item nor a child is known. Raises `UpstreamError` when a
        read fails in a way that proves nothing.
        """
        server = self.server
        try:
            info = await server.info()
            items = await server.inbox(self.session_id)
            inbox = frozenset(item.id for item in items)
            calls = frozenset(item.payload.call for item in items) - {None}
            active = await server.active()
            rows, complete = await server.rows_back_to(self.session_id, needed - inbox - calls)
            pairs = marks.named(items, rows)
            sought = unnamed - {key for key, _ in pairs}
            carried = await marks.workers(server, self.session_id, sought)
            asks = await _optional(server.permissions(self.directory))
            forms = await _optional(server.forms(self.directory))
            askers = {ask.session_id for ask in asks or ()}
            askers |= {form.session_id for form in forms or ()}
            family = await _optional(self._children(active, frozenset(askers), known))
        except SessionMissing as error:
            if error.session_id not in ("", self.session_id):
                raise
            return Snapshot(state="gone", judged=judged)
        except Unauthorised:
            return Snapshot(state="unauthorised", judged=judged)
        return Snapshot(
            inbox=inbox,
            active=self.session_id in active,
            rows=rows,
            complete=complete,
            asks=asks,
            # Asks of children that are not known could not be told from those of strangers.
            forms=forms if family is not None else None,
            children=tuple(family.parents.items()) if family is not None else (),
            titles=tuple(family.titles.items()) if family is not None else (),
            pid=info.pid,
            judged=judged,
            named=pairs,
            workers=carried,
            busy=active,
        )

    async def _children(
        self, active: frozenset[str], askers: frozenset[str], known: frozenset[str]
    ) -> Family:
        """The descendants that run or ask.

        An idle child cannot ask, so only running ones are looked into further; an ask of a
        session that is not known yet is followed upwards.
        """
        found = Family()
        queue = [self.session_id]
        reads = 0
        while queue and reads < CHILD_READS:
            parent = queue.pop(0)
            reads += 1
            for child in await self.server.children(parent):
                if child.id not in found.parents and child.id != self.session_id:
                    found.add(child, parent)
                    if child.id in active:
                        queue.append(child.id)
        for asker in sorted(askers - known - found.parents.keys() - {self.session_id}):
            for child, parent in await self._lineage(asker, known | found.parents.keys()):
                found.add(child, parent)
        return found

    async def _lineage(self, asker: str, known: frozenset[str]) -> list[tuple[Session, str]]:
        """The chain from a followed session down to `asker`; empty if it is not one of ours."""
        chain: list[tuple[Session, str]] = []
        current = asker
        for _ in range(ANCESTORS):
            try:
                child = await self.server.session(current)
            except (SessionMissing, ValueError):
                # Gone, or no id that the server can be asked for.
                return []
            parent = child.parent_id
            if parent is None or parent == current:
                return []
            chain.append((child, parent))
            if parent == self.session_id or parent in known:
                return chain[::-1]
            current = parent
        return []


async def _optional(read: Awaitable[ReadT]) -> ReadT | None:
    """A read that the verdicts do not rest on; None when it fails."""
    try:
        return await read
    except (SessionMissing, Unauthorised):
        raise
    except UpstreamError as error:
        logger.warning("a part of a snapshot could not be read: %s", error)
        return None
