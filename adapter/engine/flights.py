"""The turns of one session in flight: the task that submits each, and the answer that it gets."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from adapter.acp.prompts import PromptContent
from adapter.core import values as v
from adapter.core.session import SessionCore
from adapter.engine.calling import recognise
from adapter.engine.services import Services
from adapter.engine.slash import CommandCall, Compact, Work
from adapter.engine.tasks import Tasks
from adapter.upstream.errors import SessionMissing, Unauthorised, UpstreamError

logger = logging.getLogger(__name__)


class Flights:
    """Tables by turn id; a turn that is renamed takes its entries along."""

    def __init__(
        self,
        services: Services,
        session_id: str,
        directory: str,
        core: SessionCore,
        step: Callable[[v.Input], None],
    ) -> None:
        self._services = services
        self._session_id = session_id
        self._directory = directory
        self._core = core
        self._step = step
        self._answers: dict[str, asyncio.Future[v.Outcome]] = {}
        self._submitting: dict[str, asyncio.Task[None]] = {}
        self.tasks = Tasks()

    def start(self, owner: int, turn_id: str, prompt: PromptContent) -> asyncio.Future[v.Outcome]:
        """Begin a turn; the future's result is its outcome."""
        answer: asyncio.Future[v.Outcome] = asyncio.get_running_loop().create_future()
        self._answers[turn_id] = answer
        self._step(v.Submit(turn_id, owner))
        task = self.tasks.start(self._submit(turn_id, prompt), f"submit {turn_id}")
        self._submitting[turn_id] = task
        task.add_done_callback(self._submitted)
        return answer

    def answer(self, turn_id: str) -> asyncio.Future[v.Outcome]:
        """The answer of a turn in flight."""
        return self._answers[turn_id]

    def rename(self, before: str, after: str) -> None:
        """The server has another id for a turn."""
        self._answers[after] = self._answers.pop(before)
        task = self._submitting.pop(before, None)
        if task is not None:
            self._submitting[after] = task

    def settle(self, outcome: v.Outcome) -> None:
        """The turn is over: whatever still submits it stops, and its answer is known."""
        submitting = self._submitting.get(outcome.message_id)
        if submitting is not None and submitting is not asyncio.current_task():
            submitting.cancel()
        answer = self._answers.pop(outcome.message_id, None)
        if answer is not None and not answer.done():
            answer.set_result(outcome)

    def _submitted(self, task: asyncio.Task[None]) -> None:
        for turn_id, one in list(self._submitting.items()):
            if one is task:
                del self._submitting[turn_id]

    async def _submit(self, turn_id: str, prompt: PromptContent) -> None:
        def cancelled() -> bool:
            turn = self._core.turn(turn_id)
            return turn is None or turn.cancel_asked

        def heard() -> bool:
            turn = self._core.turn(turn_id)
            return turn is None or turn.admitted

        submission = self._services.submission
        try:
            work = await self._recognised(turn_id, prompt)
            answer = (
                work
                if isinstance(work, v.Posted)
                else await submission.submit(self._session_id, turn_id, work, cancelled, heard)
            )
        except Exception:
            logger.exception("the prompt %s could not be sent", turn_id)
            answer = v.Posted(turn_id, v.Admission.UNCLEAR, "the adapter failed as it was sent")
        self._step(answer)

    async def _recognised(self, turn_id: str, prompt: PromptContent) -> Work | v.Posted:
        """What it calls, told to the core; or why that cannot be said, before anything is sent."""
        try:
            work = await recognise(prompt, self._services.catalogues, self._directory)
        except SessionMissing:
            return v.Posted(turn_id, v.Admission.GONE)
        except Unauthorised:
            return v.Posted(turn_id, v.Admission.UNAUTHORISED)
        except UpstreamError as error:
            why = f"the slash commands could not be read: {error}"
            return v.Posted(turn_id, v.Admission.UNREACHED, why)
        match work:
            case CommandCall():
                self._step(v.Recognised(turn_id, "command"))
            case Compact():
                self._step(v.Recognised(turn_id, "compaction"))
        return work
