"""One root session: its core, who has it open, and the performance of what the core asks for.

What goes to clients is performed at once and in order, so that updates precede the answer of
their turn. What goes to the server is a task of the hub's.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine

from adapter.acp import toolcalls, updates
from adapter.acp.prompts import PromptContent
from adapter.core import values as v
from adapter.core.reconcile import newest_prompt
from adapter.core.session import SessionCore
from adapter.core.state import Phase
from adapter.engine.client import Attachment
from adapter.engine.effects import Effects
from adapter.engine.services import Services
from adapter.engine.window import Window
from adapter.upstream.errors import UpstreamError
from contract.events import AgentSelected, Event, ModelSelected
from contract.reads import Session
from contract.shapes import ModelRef, PermissionAsk

logger = logging.getLogger(__name__)


class Hub:
    """The engine's side of one session. Every method returns at once unless it is a coroutine."""

    def __init__(self, services: Services, session: Session, directory: str) -> None:
        self.session_id = session.id
        self.directory = directory
        self.agent = session.agent
        self.model: ModelRef | None = session.model
        self._choices_seen = 0
        self.core = SessionCore(session.id, services.offsets, services.pid(), session.cost)
        # Choices are read and set by one request at a time.
        self.choosing = asyncio.Lock()
        self._rested = asyncio.Event()
        self._services = services
        self._attachments: dict[int, Attachment] = {}
        self._answers: dict[str, asyncio.Future[v.Outcome]] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._submitting: dict[str, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._effects = Effects(services, self.session_id, self.step)
        self._window = Window(services, self.session_id, directory, self.core, self.step)

    # --- who has it open ------------------------------------------------------------------

    def attach(self, attachment: Attachment) -> None:
        self._attachments[attachment.owner] = attachment

    def detach(self, owner: int) -> bool:
        """Whether nobody has the session open any more."""
        self._attachments.pop(owner, None)
        return not self._attachments

    @property
    def attached(self) -> bool:
        return bool(self._attachments)

    async def rest(self, seconds: float) -> None:
        """Wait until no stop is owed to the server any more, at most so long."""
        try:
            async with asyncio.timeout(seconds):
                while self.core.owes_a_stop:
                    self._rested.clear()
                    await self._rested.wait()
        except TimeoutError:
            logger.warning("%s is left with a stop that the server lacks", self.session_id)

    async def aclose(self) -> None:
        """End every task and timer of this session; turns must have settled before."""
        for timer in self._timers.values():
            timer.cancel()
        tasks = {*self._tasks, *self._asking.values(), *self._submitting.values()}
        tasks |= self._window.tasks
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    # --- requests -------------------------------------------------------------------------

    def prompt(self, owner: int, turn_id: str, prompt: PromptContent) -> asyncio.Future[v.Outcome]:
        """Start a turn; the future's result is its outcome."""
        answer: asyncio.Future[v.Outcome] = asyncio.get_running_loop().create_future()
        self._answers[turn_id] = answer
        self.step(v.Submit(turn_id, owner))
        task = asyncio.create_task(self._submit(turn_id, prompt), name=f"submit {turn_id}")
        self._submitting[turn_id] = task
        task.add_done_callback(lambda _: self._submitting.pop(turn_id, None))
        return answer

    def cancel(self, owner: int) -> None:
        """Cancel the owner's turn; a no-op when it has none."""
        self.step(v.Cancel(owner))

    def cancel_turn(self, turn_id: str) -> None:
        """Cancel this turn, if it is still in flight."""
        turn = self.core.turn(turn_id)
        if turn is not None:
            self.step(v.Cancel(turn.owner))

    async def settled(self, owner: int) -> None:
        """Wait until the owner has no turn in flight; a cancel bounds that (rule 13)."""
        for turn in map(self.core.turn, self.core.turn_ids):
            if turn is not None and turn.owner == owner:
                await asyncio.wait({self._answers[turn.id]})

    async def leave(self, owner: int, *, interrupt: bool) -> tuple[list[str], list[str]]:
        """The client left: (turns to interrupt, prompts to withdraw), to be written at exit.

        A prompt that is not delivered is cancelled first: on an idle session its DELETE loses to
        the delivery (OpenCode facts, later experiments 10), and then it has to be interrupted. A
        POST in flight may hold the exit for that, anything else for a moment only.
        """
        turn = self.core.turn_of(owner)
        if interrupt and turn is not None and turn.phase is not Phase.RUNNING:
            settings = self._services.settings
            submitting = turn.phase is Phase.SUBMITTING
            answer = self._answers[turn.id]
            self.step(v.Cancel(owner))
            seconds = settings.exit_post if submitting else settings.exit_event
            await asyncio.wait({answer}, timeout=seconds)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self._services.settings.exit_event)
        turn = self.core.turn_of(owner)
        doubtful = turn is not None and (turn.phase is not Phase.RUNNING or self.core.in_gap)
        outputs = self.core.step(v.Left(owner, interrupt))
        stops = [o.turn_id for o in outputs if isinstance(o, v.Interrupt)]
        withdrawals = [o.turn_id for o in outputs if isinstance(o, v.Withdraw)]
        for output in outputs:
            if not isinstance(output, v.Interrupt | v.Withdraw):
                self._perform(output)
        if interrupt and turn is not None and doubtful:
            return await self._stop_by_reads(turn.id)
        return stops, withdrawals

    async def _stop_by_reads(self, turn_id: str) -> tuple[list[str], list[str]]:
        """What stops a turn of which events are missing: the rows say whether it is the newest.

        An interrupt for anything else would stop somebody else's turn.
        """
        server = self._services.server
        try:
            async with asyncio.timeout(self._services.settings.exit_reads):
                rows, _ = await server.rows_back_to(self.session_id, frozenset({turn_id}), 200)
                active = self.session_id in await server.active()
        except (UpstreamError, TimeoutError) as error:
            logger.info("what became of %s could not be read: %s", turn_id, error)
            return [], [turn_id]
        if all(row.id != turn_id for row in rows):
            return [], [turn_id]
        return ([turn_id] if active and newest_prompt(rows) == turn_id else []), []

    def notify(self, told: v.Notice) -> None:
        """A notice to the attachment that `told` names."""
        self._perform(told)

    # --- the feed -------------------------------------------------------------------------

    def hear(self, event: Event) -> None:
        """An event of this session or of a descendant."""
        match event:
            case AgentSelected() if event.session_id == self.session_id:
                self.chose_agent(event.agent)
            case ModelSelected() if event.session_id == self.session_id:
                self.chose_model(event.model)
            case _:
                pass
        if not self._window.buffered(event):
            self.step(v.Heard(event))

    def feed_lost(self) -> None:
        self._window.close()
        self.step(v.FeedLost())

    def feed_back(self) -> None:
        self.step(v.FeedBack())
        self._spawn(self._refresh())

    def unauthorised(self) -> None:
        """The feed is refused with 401: no turn can be followed any further."""
        if self.core.turn_ids:
            self.step(v.Reconcile(v.Snapshot(state="unauthorised")))

    # --- choices --------------------------------------------------------------------------

    def chose_agent(self, agent: str) -> None:
        """The session's agent, by an event or by a set that was accepted."""
        self.agent = agent
        self._choices_seen += 1

    def chose_model(self, model: ModelRef) -> None:
        self.model = model
        self._choices_seen += 1

    async def _refresh(self) -> None:
        """Read what the gap may have changed (rule 18); a choice heard meanwhile is newer."""
        seen = self._choices_seen
        try:
            session = await self._services.server.session(self.session_id)
        except UpstreamError as error:
            logger.info("the choices of %s could not be read: %s", self.session_id, error)
            return
        if seen == self._choices_seen:
            self.agent, self.model = session.agent, session.model

    # --- the core -------------------------------------------------------------------------

    def step(self, given: v.Input) -> None:
        """Give the core an input and perform what follows.

        Raises RuntimeError for a fault of ours in an output, after the others: the end of a turn,
        for one, is owed all the same.
        """
        faults = 0
        for output in self.core.step(given):
            try:
                self._perform(output)
            except Exception:
                logger.exception("%s could not be performed", type(output).__name__)
                faults += 1
        if not self.core.owes_a_stop:
            self._rested.set()
        if faults:
            raise RuntimeError("an output of the core could not be performed")

    def _perform(self, output: v.Output) -> None:
        match output:
            case v.Chunk():
                attachment = self._attachments.get(output.owner)
                if attachment is not None:
                    attachment.client.text(self.session_id, output)
            case v.Tool():
                self._update(output.owner, updates.tool(output, self.directory))
            case v.Notice():
                attachment = self._attachments.get(output.owner)
                if attachment is not None:
                    advertised = attachment.client.takes_notices
                    self._update(output.owner, updates.notice(output, advertised=advertised))
            case v.Usage():
                size = self._services.context_size(self.directory, output.model)
                if size is not None:
                    self._update(output.owner, updates.usage(output, size))
            case v.AskClient():
                self._ask(output)
            case v.WithdrawAsk(ask_id):
                task = self._asking.pop(ask_id, None)
                if task is not None:
                    task.cancel()
            case v.Arm(timer, wait):
                self._arm(timer, getattr(self._services.settings.waits, wait))
            case v.Disarm(timer):
                self._disarm(timer)
            case v.Settled():
                self._settled(output.outcome)
            case v.TakeSnapshot(needed):
                self._window.open(needed)
            case _:
                self._spawn(self._effects.perform(output))

    def _update(self, owner: int, update: dict[str, object]) -> None:
        attachment = self._attachments.get(owner)
        if attachment is not None:
            attachment.client.update(self.session_id, update)

    def _settled(self, outcome: v.Outcome) -> None:
        submitting = self._submitting.get(outcome.message_id)
        if submitting is not None and submitting is not asyncio.current_task():
            submitting.cancel()
        answer = self._answers.pop(outcome.message_id, None)
        if answer is not None and not answer.done():
            answer.set_result(outcome)
        logger.info(
            "turn %s: %s (gaps %d, recovered %d)",
            outcome.message_id,
            outcome.stop.value if outcome.stop else outcome.reason,
            outcome.gaps,
            outcome.recovered,
        )

    # --- tasks and timers -----------------------------------------------------------------

    async def _submit(self, turn_id: str, prompt: PromptContent) -> None:
        def cancelled() -> bool:
            turn = self.core.turn(turn_id)
            return turn is None or turn.cancel_asked

        submission = self._services.submission
        try:
            answer = await submission.submit(self.session_id, turn_id, prompt, cancelled)
        except Exception:
            logger.exception("the prompt %s could not be sent", turn_id)
            answer = v.Posted(turn_id, v.Admission.UNCLEAR, "the adapter failed as it was sent")
        self.step(answer)

    def _ask(self, asked: v.AskClient) -> None:
        ask = asked.ask
        task = asyncio.create_task(self._ask_client(asked), name=f"ask {ask.id}")
        self._asking[ask.id] = task
        task.add_done_callback(lambda done: self._asked(ask.id, done))

    def _asked(self, ask_id: str, task: asyncio.Task[None]) -> None:
        if self._asking.get(ask_id) is task:
            del self._asking[ask_id]

    async def _ask_client(self, asked: v.AskClient) -> None:
        attachment = self._attachments.get(asked.owner)
        decision: v.Decision = "reject"
        if attachment is not None:
            try:
                params = self._ask_params(asked.ask, asked.tool)
                decision = self._decision(await attachment.client.ask(params))
            except Exception:
                logger.exception("the ask %s could not be shown", asked.ask.id)
        self.step(v.Answered(asked.ask.id, decision))

    def _ask_params(self, ask: PermissionAsk, tool: v.Tool | None) -> dict[str, object]:
        options = [{"optionId": "allow_once", "name": "Allow once", "kind": "allow_once"}]
        if self._services.settings.allow_always:
            options.append(
                {"optionId": "allow_always", "name": "Always allow", "kind": "allow_always"}
            )
        options.append({"optionId": "reject_once", "name": "Reject", "kind": "reject_once"})
        return {
            "sessionId": self.session_id,
            "toolCall": toolcalls.permission(ask, tool, self.directory),
            "options": options,
        }

    def _decision(self, answer: object) -> v.Decision:
        """Only a clear choice of an option that was offered is an approval (rule 14)."""
        outcome = answer.get("outcome") if isinstance(answer, dict) else None
        if not isinstance(outcome, dict) or outcome.get("outcome") != "selected":
            return "reject"
        match outcome.get("optionId"):
            case "allow_once":
                return "once"
            case "allow_always" if self._services.settings.allow_always:
                return "always"
            case _:
                return "reject"

    def _arm(self, timer: str, seconds: float | None) -> None:
        """Start a timer anew; one whose setting is off never fires."""
        self._disarm(timer)
        if seconds is None:
            return
        loop = asyncio.get_running_loop()
        self._timers[timer] = loop.call_later(seconds, self._fired, timer)

    def _disarm(self, timer: str) -> None:
        handle = self._timers.pop(timer, None)
        if handle is not None:
            handle.cancel()

    def _fired(self, timer: str) -> None:
        self._timers.pop(timer, None)
        self.step(v.Fired(timer))

    def _spawn(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            logger.error("a request of ours failed", exc_info=task.exception())
