"""The POST of a turn, until it is known whether the server has it (lifecycle rules 1 to 3).

The first POST of a prompt is made once. Every later one carries `resume:false`: it wakes nothing
and makes no second message, it only gets the definite answer that was lost. A compaction is asked
for again under its own id, which makes no second one either. A command is never posted again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tenacity import RetryCallState, wait_exponential, wait_random
from tenacity.asyncio import AsyncRetrying

from adapter.acp.prompts import PromptContent
from adapter.config import Settings
from adapter.core.values import Admission, Posted
from adapter.engine.calling import Search
from adapter.engine.slash import CommandCall, Compact, Work
from adapter.upstream import posted as answers
from adapter.upstream.client import Server
from adapter.upstream.errors import SessionMissing, Unauthorised, UpstreamError
from adapter.upstream.feed import Feed


@dataclass(frozen=True, slots=True)
class Submission:
    """One prompt on its way. `cancelled` says whether the client has cancelled meanwhile."""

    server: Server
    feed: Feed
    settings: Settings
    clock: Callable[[], float]
    sleep: Callable[[float], Awaitable[None]]

    async def submit(
        self,
        session_id: str,
        turn_id: str,
        work: Work,
        cancelled: Callable[[], bool],
        heard: Callable[[], bool] = lambda: False,
    ) -> Posted:
        """The admission, within the deadlines of rule 2; UNCLEAR when they pass.

        `heard` says whether the feed told of the turn's item meanwhile.
        """
        if not await self.feed.ready(self.settings.feed_ready):
            where = f"the OpenCode server at {self.settings.server} cannot be reached"
            return Posted(turn_id, Admission.UNREACHED, where)
        if cancelled():
            return Posted(turn_id, Admission.UNREACHED, "the turn was cancelled")
        doubt = False
        try:
            answer = await self._post(session_id, turn_id, work)
            if isinstance(answer, answers.Unclear) and not cancelled():
                doubt = True
                if isinstance(work, CommandCall):
                    search = Search(self.server, self.settings, self.clock, self.sleep)
                    return await search.look(
                        session_id, turn_id, answer.why, lambda: cancelled() or heard()
                    )
                return await self._settle_doubt(session_id, turn_id, work, cancelled, answer)
        except SessionMissing:
            return Posted(turn_id, Admission.GONE, probed=doubt)
        except Unauthorised:
            return Posted(turn_id, Admission.UNAUTHORISED, probed=doubt)
        except UpstreamError as error:
            return Posted(turn_id, Admission.UNCLEAR, str(error))
        return _read(turn_id, answer, probed=False)

    async def _post(
        self, session_id: str, turn_id: str, work: Work, *, probe: bool = False
    ) -> answers.Posted:
        """A probe does not wake, and has as long as a server that answers has at all."""
        posts = self.server.posts
        deadline = self.settings.admission_reachable if probe else None
        match work:
            case CommandCall(name, text, files):
                return await posts.command(session_id, turn_id, name, text, files)
            case Compact():
                return await posts.compact(session_id, turn_id, deadline=deadline)
            case PromptContent(text, files, skills):
                return await posts.prompt(
                    session_id, turn_id, text, files, skills, resume=not probe, deadline=deadline
                )

    async def _settle_doubt(
        self,
        session_id: str,
        turn_id: str,
        work: PromptContent | Compact,
        cancelled: Callable[[], bool],
        first: answers.Unclear,
    ) -> Posted:
        """Ask again without a wake until the answer is definite.

        A server that answers every one of them with a 5xx has ended its work on each: what the
        reads do not show then was not admitted, and will not be.
        """
        failed = first.failed
        began = self.clock()
        wait = wait_exponential(multiplier=0.1, max=2.0) + wait_random(0, 0.1)
        state = RetryCallState(AsyncRetrying(), None, (), {})
        reached: float | None = None
        why = "the server gave no answer to the prompt"
        while True:
            await self.sleep(wait(state))
            state.attempt_number += 1
            now = self.clock()
            limit = self.settings.admission_unreachable
            late = now - began > limit
            if reached is not None:
                late = late or now - reached > self.settings.admission_reachable
            if late and failed and not await self._is_there(session_id, turn_id):
                return Posted(turn_id, Admission.NOT_ADMITTED, why, probed=True)
            if late or cancelled():
                return Posted(turn_id, Admission.UNCLEAR, why)
            answer = await self._post(session_id, turn_id, work, probe=True)
            match answer:
                case answers.Unsent(reason):
                    # What the first POST did is as unclear as before.
                    why = reason
                case answers.Unclear(reason):
                    why = reason
                    failed = failed and answer.failed
                    reached = reached if reached is not None else self.clock()
                case _:
                    return _read(turn_id, answer, probed=True)

    async def _is_there(self, session_id: str, turn_id: str) -> bool:
        """Whether the server has the prompt, as far as is known: inbox first, then the row."""
        try:
            if any(item.id == turn_id for item in await self.server.inbox(session_id)):
                return True
            return await self.server.row(session_id, turn_id) is not None
        except UpstreamError:
            return True


def _read(turn_id: str, answer: answers.Posted, *, probed: bool) -> Posted:
    match answer:
        case answers.Admitted(item, same_text=True):
            return Posted(turn_id, Admission.ADMITTED, probed=probed, item_id=item.id)
        case answers.Taken():
            return Posted(turn_id, Admission.ADMITTED, probed=probed)
        case answers.Admitted():
            return Posted(
                turn_id, Admission.UNCLEAR, "the server holds another text under this prompt's id"
            )
        case answers.NotAdmitted(_, message):
            return Posted(turn_id, Admission.NOT_ADMITTED, message, probed)
        case answers.Unsent(why):
            return Posted(turn_id, Admission.UNREACHED, why, probed)
        case answers.Unclear(why):
            return Posted(turn_id, Admission.UNCLEAR, why, probed)
