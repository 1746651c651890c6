"""The items and the children that slash commands made, found by the marks in them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from adapter.upstream.client import Server
from contract.calls import call_of
from contract.reads import AnyRow, InboxItem, UserRow, row_call

# The newest children that are looked into, the rows at the beginning of each (its agent and its
# model may stand before its first item), and the newest rows of a session that are read.
CHILDREN: Final = 8
FIRST_ROWS: Final = 4
ROWS: Final = 200

Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Marked:
    """(turn or child, item) of one session; (turn, child that carries its command out)."""

    named: Pairs = ()
    workers: Pairs = ()


def named(items: Iterable[InboxItem], rows: Iterable[AnyRow]) -> Pairs:
    """The items of a session that a command made, or the end of a child."""
    found = [(item.payload.call, item.id) for item in items]
    found += [(row_call(row), row.id) for row in rows]
    return tuple((key, item_id) for key, item_id in found if key is not None)


async def call_of_child(server: Server, child_id: str) -> str | None:
    """The turn whose command a child carries out, by the mark in its first item.

    `SessionMissing` for a child that is gone. Raises `UpstreamError`.
    """
    items = await server.inbox(child_id)
    rows = await server.sessions.first_rows(child_id, FIRST_ROWS)
    found = [call_of(row.agents) for row in rows if isinstance(row, UserRow)]
    found += [call_of(item.payload.agents) for item in items]
    return next(iter(found), None)


async def workers(server: Server, session_id: str, turns: frozenset[str]) -> Pairs:
    """The children that carry out the commands of these turns. Raises `UpstreamError`."""
    if not turns:
        return ()
    found: list[tuple[str, str]] = []
    for child in await server.children(session_id, CHILDREN):
        call = await call_of_child(server, child.id)
        if call in turns:
            found.append((call, child.id))
    return tuple(found)


async def marked(server: Server, session_id: str, turn_id: str) -> Marked:
    """What shows that the server has a turn's command; in the order of its life."""
    items = await server.inbox(session_id)
    rows, _ = await server.rows_back_to(session_id, frozenset({turn_id}), ROWS)
    own = tuple(pair for pair in named(items, rows) if pair[0] == turn_id)
    if own:
        return Marked(own)
    return Marked(workers=await workers(server, session_id, frozenset({turn_id})))
