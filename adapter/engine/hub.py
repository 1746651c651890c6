"""One root session: its core, who has it open, and the performance of what the core asks for.

What goes to clients is performed at once and in order, so that updates precede the answer of
their turn. What goes to the server is a task of the hub's.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Any

from adapter.acp import updates
from adapter.acp.prompts import PromptContent
from adapter.core import values as v
from adapter.core.session import SessionCore
from adapter.core.state import ACTIVE_PATIENCE, Phase
from adapter.engine.asking import Asking
from adapter.engine.client import Attachment
from adapter.engine.effects import Effects
from adapter.engine.flights import Flights
from adapter.engine.leaving import stop_by_reads
from adapter.engine.offers import Offers, Told
from adapter.engine.past import Past
from adapter.engine.recorder import CHILDREN, Recorder
from adapter.engine.repeats import Repeats
from adapter.engine.services import Services
from adapter.engine.settlements import Settlements
from adapter.engine.tasks import Tasks
from adapter.engine.telling import Tellable, updates_of
from adapter.engine.timers import Timers
from adapter.engine.window import Window
from contract.events import Event, SessionCreated
from contract.reads import Session

logger = logging.getLogger(__name__)


class Hub:
    """The engine's side of one session. Every method returns at once unless it is a coroutine."""

    def __init__(self, services: Services, session: Session, directory: str) -> None:
        self.session_id = session.id
        self.directory = directory
        limits = services.settings.limits
        self.core = SessionCore(session.id, services.offsets, services.pid(), session.cost, limits)
        self._stepped = asyncio.Event()
        self._services = services
        self._attachments: dict[int, Attachment] = {}
        self._repeats = Repeats()
        self.choices = Offers(services, session, directory, self._attachments)
        self._timers = Timers(lambda timer: self.step(v.Fired(timer)))
        self._tasks = Tasks()
        self.settlements = Settlements(session.id, services.clock, services.observer)
        self._recorder = Recorder(
            self.core,
            services.offsets,
            limits,
            services.clock,
            services.flights,
            pid=services.pid,
            before=self._stands,
        )
        self._flights = Flights(services, self.session_id, directory, self.core, self.step)
        self._asking = Asking(services, self.session_id, directory, self.step)
        self._effects = Effects(services, self.session_id, directory, self.step)
        self._window = Window(services, self.session_id, directory, self.core, self.step)
        self.past = Past(services, self.core, self.notify)

    # --- who has it open ------------------------------------------------------------------

    def attach(self, attachment: Attachment) -> None:
        self._attachments[attachment.owner] = attachment
        self.step(v.Watch(attachment.owner, attachment.ambient))

    def reattach(self, attachment: Attachment, told: Told | None, title: str) -> None:
        """An attachment that was put aside is back; it learns what it missed."""
        self.attach(attachment)
        self.choices.recall(attachment.owner, told, title)
        self._tasks.start(self.choices.refresh(), f"choices of {self.session_id}")

    def detach(self, owner: int) -> bool:
        """Whether nobody has the session open any more."""
        self._attachments.pop(owner, None)
        self.step(v.Watch(owner, wanted=False))
        self.choices.forget(owner)
        self._repeats.forget(owner)
        return not self._attachments

    @property
    def attached(self) -> bool:
        return bool(self._attachments)

    @property
    def resting(self) -> bool:
        """Whether nothing is in flight: no turn, no ask, no request of ours, nothing to be told."""
        busy = self._tasks or self._flights.tasks or self.choices.tasks or self.past.tasks
        return self.core.at_rest and not busy

    @property
    def timers(self) -> list[str]:
        """What each timer is for that will fire."""
        return self._timers.kinds

    @property
    def buffered(self) -> int:
        """Events that wait for the end of a reading."""
        return len(self._window)

    @property
    def calls(self) -> int:
        """Running calls of which the last update is remembered."""
        return len(self._repeats)

    @property
    def owes(self) -> bool:
        """Whether the server has not confirmed a stop or the answer of an ask, or waits for one."""
        core = self.core
        return core.owes_a_stop or core.owes_an_answer or core.owes_a_refusal

    async def rest(self) -> None:
        """Wait until nothing is owed to the server any more.

        At most as long as a gap, and before that as long as an ask may be left to others.
        """
        waits = self._services.settings.waits
        others = waits.unattended * ACTIVE_PATIENCE if self.core.owes_a_refusal else 0.0
        if not await self._until(lambda: not self.owes, others + waits.gap):
            logger.warning("%s is left with a stop or an answer to come", self.session_id)

    async def part(self) -> None:
        """The process ends: refuse what was left to others. Takes `exit_reads` at most."""
        try:
            self.step(v.Parting())
        except RuntimeError:
            logger.exception("what %s left open could not be refused", self.session_id)
        settled = self._until(
            lambda: not self.core.owes_an_answer, self._services.settings.exit_reads
        )
        if not await settled:
            logger.warning("%s is left with an answer to come", self.session_id)

    async def whole(self) -> None:
        """Wait until no event of a turn is missing: a gap's reads are over, or given up."""
        await self._until(
            lambda: not (self.core.in_gap and self.core.turn_ids), self._services.settings.waits.gap
        )

    async def _until(self, reached: Callable[[], bool], seconds: float) -> bool:
        """Wait for something that only a step of the core brings about; False: not in time."""
        try:
            async with asyncio.timeout(seconds):
                while not reached():
                    self._stepped.clear()
                    await self._stepped.wait()
        except TimeoutError:
            return False
        return True

    def close(self) -> None:
        """Answer every turn that is left, cancel every task, and let no timer fire any more."""
        try:
            self.step(v.LetGo())
        except RuntimeError:
            logger.exception("what %s left could not be told", self.session_id)
        self._timers.close()
        for task in self._owned:
            task.cancel()

    async def aclose(self) -> None:
        """`close`, and wait for the end of every task."""
        self.close()
        tasks = self._owned
        if tasks:
            await asyncio.wait(tasks)

    @property
    def _owned(self) -> frozenset[asyncio.Task[Any]]:
        flights, asking = self._flights.tasks, self._asking.tasks
        others = self._window.tasks | self.choices.tasks | self.past.tasks
        return frozenset({*self._tasks, *flights, *asking, *others})

    # --- requests -------------------------------------------------------------------------

    def prompt(self, owner: int, turn_id: str, prompt: PromptContent) -> asyncio.Future[v.Outcome]:
        """Start a turn; the future's result is its outcome."""
        self.past.prompted(turn_id)
        self.settlements.began(owner)
        return self._flights.start(owner, turn_id, prompt)

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
                await asyncio.wait({self._flights.answer(turn.id)})

    async def leave(self, owner: int, *, interrupt: bool) -> tuple[list[str], list[str]]:
        """The client left: (turns to interrupt, prompts to withdraw), to be written at exit.

        A prompt that is not delivered is cancelled first: on an idle session its DELETE loses to
        the delivery (OpenCode facts, later experiments 10), and then it has to be interrupted. A
        POST in flight may hold the exit for that, anything else for a moment only.
        """
        turn = self.core.turn_of(owner)
        if interrupt and turn is not None and turn.phase is not Phase.RUNNING:
            settings = self._services.settings
            submitting = turn.phase in (Phase.SUBMITTING, Phase.CALLED)
            answer = self._flights.answer(turn.id)
            self.step(v.Cancel(owner))
            seconds = settings.exit_post if submitting else settings.exit_event
            await asyncio.wait({answer}, timeout=seconds)
        elif turn is not None and turn.phase in (Phase.SUBMITTING, Phase.CALLED):
            # It is to go on, so the server has to have it.
            await self._until(lambda: self._is_admitted(owner), self._services.settings.exit_post)
        if self._tasks:
            await asyncio.wait(frozenset(self._tasks), timeout=self._services.settings.exit_event)
        turn = self.core.turn_of(owner)
        doubtful = turn is not None and (turn.phase is not Phase.RUNNING or self.core.in_gap)
        outputs = self._recorder.step(v.Left(owner, interrupt))
        stops = [o.turn_id for o in outputs if isinstance(o, v.Interrupt)]
        withdrawals = [o.turn_id for o in outputs if isinstance(o, v.Withdraw)]
        for output in outputs:
            if not isinstance(output, v.Interrupt | v.Withdraw):
                self._perform(output)
        if turn is not None and not interrupt:
            # The turn goes on behind its client, and would wait for these for ever.
            settings = self._services.settings
            await self._until(lambda: not self.core.owes_an_answer, settings.exit_reads)
        if interrupt and turn is not None and doubtful:
            return await stop_by_reads(self._services, self.session_id, turn.key)
        return stops, withdrawals

    def _is_admitted(self, owner: int) -> bool:
        turn = self.core.turn_of(owner)
        return turn is None or turn.phase not in (Phase.SUBMITTING, Phase.CALLED)

    def notify(self, told: v.Notice) -> None:
        """A notice to the attachment that `told` names."""
        self._perform(told)

    # --- the feed -------------------------------------------------------------------------

    def hear(self, event: Event, size: int) -> None:
        """An event of this session or of a descendant; `size` as the feed says."""
        if event.session_id == self.session_id:
            self.choices.hear(event)
        if not self._window.buffered(event, size):
            self.step(v.Heard(event))

    def feed_lost(self) -> None:
        self._window.close()
        self.step(v.FeedLost())

    def feed_back(self) -> None:
        self.step(v.FeedBack())
        self._tasks.start(self.choices.refresh(), f"choices of {self.session_id}")

    def unauthorised(self) -> None:
        """The feed is refused with 401: no turn can be followed any further."""
        if self.core.turn_ids:
            self.step(v.Reconcile(v.Snapshot(state="unauthorised")))

    # --- the core -------------------------------------------------------------------------

    def step(self, given: v.Input) -> None:
        """Give the core an input and perform what follows.

        Raises RuntimeError for a fault of ours in an output, after the others: the end of a turn,
        for one, is owed all the same.
        """
        faults = 0
        for output in self._recorder.step(given):
            try:
                self._perform(output)
            except Exception:
                logger.exception("%s could not be performed", type(output).__name__)
                faults += 1
        self._stepped.set()
        if faults:
            raise RuntimeError("an output of the core could not be performed")

    def _stands(self) -> Iterator[v.Input]:
        """What gives a new core the state of this one while it has no turn."""
        for child_id in sorted(self.core.children)[:CHILDREN]:
            made = {"session_id": child_id, "parent_id": self.session_id}
            yield v.Heard(SessionCreated(**made))
        for one in self._attachments.values():
            if one.ambient:
                yield v.Watch(one.owner)
        if self.core.in_gap:
            yield v.FeedLost()

    def _perform(self, output: v.Output) -> None:
        match output:
            case v.Chunk(origin=v.OfChild()) | v.Tool(origin=v.OfChild()) if not self._shows(
                output
            ):
                pass
            case v.Chunk():
                self._chunk(output)
            case v.Tool():
                self._tool(output)
            case v.Progress() | v.Prompted() | v.Compaction() | v.Notice():
                self._tell(output)
            case v.Usage():
                size = self._services.context_size(self.directory, output.model)
                if size is not None:
                    self._update(output.owner, updates.usage(output, size))
            case v.AskClient():
                self._asking.show(output, self._attachments.get(output.owner))
            case v.ShowForm():
                self._asking.show_form(output, self._attachments.get(output.owner))
            case v.WithdrawAsk(ask_id):
                self._asking.withdraw(ask_id)
            case v.Arm(timer, wait):
                self._timers.arm(timer, getattr(self._services.settings.waits, wait))
            case v.Disarm(timer):
                self._timers.disarm(timer)
            case v.Renamed(before, after):
                self._flights.rename(before, after)
                self._timers.rename(before, after)
            case v.Settled():
                self._settled(output)
            case v.Counted(bound, times):
                self._services.counters.hit(bound, times)
            case v.Unfollow(child_id):
                self._services.following.discard(child_id, self.session_id)
            case v.TakeSnapshot(needed):
                self._window.open(needed)
            case _:
                self._ask_server(output)

    def _settled(self, settled: v.Settled) -> None:
        self._repeats.forget(settled.owner)
        self._flights.settle(settled.outcome)
        attachment = self._attachments.get(settled.owner)
        label = attachment.client.label if attachment is not None else ""
        self.settlements.settled(settled.owner, settled.outcome, label)

    def _ask_server(self, output: v.Output) -> None:
        name = f"{type(output).__name__} in {self.session_id}"
        self._tasks.start(self._effects.perform(output), name)

    def _shows(self, output: v.Chunk | v.Tool) -> bool:
        """Whether the client wants the updates of sub-agents themselves."""
        attachment = self._attachments.get(output.owner)
        return attachment is not None and attachment.client.can.child_updates

    def _chunk(self, chunk: v.Chunk) -> None:
        if chunk.recovered:
            size = len(chunk.text.encode("utf-8", "surrogatepass"))
            self._services.observer.recovered(size)
        if chunk.origin is None:
            self.settlements.shown(chunk.owner)
        attachment = self._attachments.get(chunk.owner)
        if attachment is not None:
            attachment.client.text(self.session_id, chunk)

    def _tool(self, tool: v.Tool) -> None:
        attachment = self._attachments.get(tool.owner)
        if attachment is None:
            return
        update = updates.tool(tool, self.directory, attachment.client.limits)
        if not self._repeats.repeats(tool, update):
            attachment.client.update(self.session_id, update)

    def _tell(self, output: Tellable) -> None:
        attachment = self._attachments.get(output.owner)
        if attachment is not None:
            for update in updates_of(output, attachment.client):
                attachment.client.update(self.session_id, update)

    def _update(self, owner: int, update: dict[str, object]) -> None:
        attachment = self._attachments.get(owner)
        if attachment is not None:
            attachment.client.update(self.session_id, update)
