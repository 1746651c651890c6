"""The items and the children that slash commands made, found by the marks in them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from adapter.upstream.client import Server
from contract.calls import call_of
from contract.reads import AnyRow, InboxItem, UserRow, row_call

# The newest children that are looked into, and the newest rows of a session that are read for it.
CHILDREN: Final = 8
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


async def workers(server: Server, session_id: str, turns: frozenset[str]) -> Pairs:
    """The children that carry out the commands of these turns. Raises `UpstreamError`."""
    if not turns:
        return ()
    found: list[tuple[str, str]] = []
    for child in await server.children(session_id, CHILDREN):
        items = await server.inbox(child.id)
        rows, _ = await server.rows_back_to(child.id, turns, ROWS)
        marks = {call_of(item.payload.agents) for item in items}
        marks |= {call_of(row.agents) for row in rows if isinstance(row, UserRow)}
        found += [(mark, child.id) for mark in marks if mark in turns]
    return tuple(found)


async def marked(server: Server, session_id: str, turn_id: str) -> Marked:
    """What shows that the server has a turn's command; in the order of its life."""
    items = await server.inbox(session_id)
    rows, _ = await server.rows_back_to(session_id, frozenset({turn_id}), ROWS)
    own = tuple(pair for pair in named(items, rows) if pair[0] == turn_id)
    if own:
        return Marked(own)
    return Marked(workers=await workers(server, session_id, frozenset({turn_id})))
