"""What stops the turn of a client that left while events of that turn are missing."""

from __future__ import annotations

import asyncio
import logging

from adapter.core.reconcile import newest_prompt
from adapter.engine.marks import named, workers
from adapter.engine.services import Services
from adapter.upstream.errors import UpstreamError

logger = logging.getLogger(__name__)


async def stop_by_reads(
    services: Services, session_id: str, turn_id: str
) -> tuple[list[str], list[str]]:
    """(turns to interrupt, prompts to withdraw): the rows say whether the turn is the newest.

    An interrupt for anything else would stop somebody else's turn. `turn_id` may be that of a
    command whose item is not known: its mark is looked for, also in the children, one of which
    may carry it out; that one is stopped here.
    """
    server = services.server
    try:
        async with asyncio.timeout(services.settings.exit_reads):
            items = await server.inbox(session_id)
            rows, _ = await server.rows_back_to(session_id, frozenset({turn_id}), 200)
            active = session_id in await server.active()
            known = dict(named(items, rows))
            item_id = known.get(turn_id, turn_id)
            if item_id not in {*(item.id for item in items), *(row.id for row in rows)}:
                for _, child_id in await workers(server, session_id, frozenset({turn_id})):
                    await server.interrupt(child_id)
    except (UpstreamError, TimeoutError) as error:
        logger.info("what became of %s could not be read: %s", turn_id, error)
        return [], [turn_id]
    if all(row.id != item_id for row in rows):
        return [], [item_id]
    return ([item_id] if active and newest_prompt(rows) == item_id else []), []
