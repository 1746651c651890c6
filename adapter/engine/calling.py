"""From a prompt's `/name` to what it calls, and the submission of what is no plain prompt."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from adapter.acp.prompts import PromptContent
from adapter.config import Settings
from adapter.core.values import Admission, Posted
from adapter.engine.marks import Marked, marked
from adapter.engine.slash import COMPACT, Compact, Work, called
from adapter.upstream.catalogue import Catalogues
from adapter.upstream.client import Server
from adapter.upstream.errors import UpstreamError

# Seconds between two looks for a command.
PAUSE: Final = 0.5


async def recognise(content: PromptContent, catalogues: Catalogues, directory: str) -> Work:
    """What the prompt calls: a command, a compaction, a prompt with a skill, or itself.

    A name that is not known counts as missing only after a fresh look. Raises `UpstreamError`.
    """
    if content.slash is None:
        return content
    if content.slash.name == COMPACT:
        return Compact()
    known = called(content, await catalogues.get(directory))
    if known is None:
        known = called(content, await catalogues.callable_now(directory))
    return known or content


@dataclass(frozen=True, slots=True)
class Search:
    """The item of a command whose answer was lost, by the mark in it."""

    server: Server
    settings: Settings
    clock: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]]

    async def look(
        self,
        session_id: str,
        turn_id: str,
        why: str,
        over: Callable[[], bool],
    ) -> Posted:
        """Read until it is found, or until it stayed absent for as long as rule 2 allows.

        The request is given up by then, and with it a template that was still being expanded. A
        command is never posted twice: nothing would tell the two apart. `over`: the feed told of
        the item, or the client has cancelled.
        """
        began = self.clock()
        reached: float | None = None
        while not over():
            try:
                found = await marked(self.server, session_id, turn_id)
                reached = self.clock() if reached is None else reached
            except UpstreamError as error:
                why, found, reached = str(error), Marked(), None
            if found.named or found.workers:
                item_id = found.named[0][1] if found.named else ""
                return Posted(turn_id, Admission.ADMITTED, probed=True, item_id=item_id)
            now = self.clock()
            if reached is not None and now - reached >= self.settings.admission_reachable:
                return Posted(turn_id, Admission.NOT_ADMITTED, why, probed=True)
            if now - began >= self.settings.admission_unreachable:
                break
            await self.sleep(PAUSE)
        return Posted(turn_id, Admission.UNCLEAR, why)
