"""The executions of a session: what wakes it, what a turn ends, what stays parked.

An execution runs from `session.execution.started` to its end event and may answer several
prompts. A wake during an execution is remembered: it starts another one after a failure or a
decline, while a success has run everything and an interrupt of the user forgets it.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol

from stubs.server.journal import Journal
from stubs.server.store import Item, Session
from stubs.server.wire import Json, digest

INSTRUCTIONS: Final = ("core/environment", "core/date", "core/codemode", "core/skill-guidance")


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a step or an execution ended. `again`: the model asked for another step."""

    kind: Literal["succeeded", "failed", "interrupted"]
    error: Json | None = None
    reason: Literal["user", "shutdown"] | None = None
    again: bool = False


DONE: Final = Outcome("succeeded")


class Turns(Protocol):
    """What an execution does with a session; steps.py implements it."""

    def refusal(self, session: Session) -> Json | None:
        """The error that fails an execution before anything is delivered."""

    async def title(self, session: Session) -> None:
        """The title that the first turn of an untitled session gets."""

    async def step(self, session: Session, number: int, stop: asyncio.Event) -> Outcome:
        """One model step, `number` from 1 since the last delivery."""

    async def compact(self, session: Session, item: Item, stop: asyncio.Event) -> bool:
        """Carry out a compaction item; False when `stop` ended it."""

    def repair(self, session: Session) -> None:
        """Set right what a killed server left behind."""


@dataclass(slots=True)
class Execution:
    """A session that is awake."""

    session: Session
    steers_only: bool = False
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    reason: Literal["user", "shutdown"] = "user"
    woken: bool = False
    resume: bool = False
    last: Outcome = DONE
    task: asyncio.Task[None] | None = None


class Executions:
    """All executions; owns their tasks."""

    def __init__(self, journal: Journal, turns: Turns) -> None:
        self._journal = journal
        self._turns = turns
        self.running: dict[str, Execution] = {}

    def wake(self, session: Session, *, steers_only: bool = False) -> Execution:
        """Start an execution, or remember the wake if one runs."""
        execution = self.running.get(session.id)
        if execution is not None:
            execution.woken = True
            return execution
        execution = Execution(session, steers_only)
        self.running[session.id] = execution
        execution.task = asyncio.create_task(self._live(execution), name=f"run {session.id}")
        execution.task.add_done_callback(_complain)
        return execution

    def interrupt(self, session: Session, *, resume: bool = False) -> bool:
        """Stop what runs. What waits in the inbox is parked; `resume` runs its steers on."""
        execution = self.running.get(session.id)
        if execution is None:
            if resume and _steers(session):
                self.wake(session, steers_only=True)
            return False
        if execution.stop.is_set():
            return False
        execution.woken = False
        execution.resume = resume
        execution.stop.set()
        return True

    async def finish(self, session: Session) -> Outcome:
        """Wait until the session sleeps. The outcome of its last execution."""
        execution = self.running.get(session.id)
        if execution is None or execution.task is None:
            return DONE
        await asyncio.wait([execution.task])
        return execution.last

    async def idle(self, timeout: float | None = None) -> bool:
        """Wait until nothing runs; False at the timeout (seconds)."""
        tasks = [execution.task for execution in self.running.values() if execution.task]
        if not tasks:
            return True
        _, pending = await asyncio.wait(tasks, timeout=timeout)
        return not pending and await self.idle(timeout)

    async def abandon(self) -> None:
        """End every task without a word, as a killed server does."""
        tasks = [execution.task for execution in self.running.values() if execution.task]
        self.running.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def terminate(self) -> None:
        """End every execution as a server that is told to stop: no idle row is written."""
        for execution in self.running.values():
            execution.reason = "shutdown"
            execution.woken = False
            execution.stop.set()
        await self.idle()

    async def _live(self, execution: Execution) -> None:
        session = execution.session
        try:
            while True:
                outcome = execution.last = await self._execute(execution)
                self._end(session, outcome)
                again = execution.woken and outcome.kind != "succeeded"
                steers = execution.resume and bool(_steers(session))
                if not again and not steers:
                    return
                execution.steers_only = steers and not again
                execution.stop.clear()
                execution.woken = execution.resume = False
        finally:
            if self.running.get(session.id) is execution:
                del self.running[session.id]

    async def _execute(self, execution: Execution) -> Outcome:
        session = execution.session
        self._journal.durable(session, "session.execution.started", located=False)
        error = self._turns.refusal(session)
        if error is not None:
            await asyncio.sleep(0)
            return Outcome("failed", error=error)
        await asyncio.sleep(0)
        self._turns.repair(session)
        if session.inbox:
            self._instruct(session)
        number = 0
        while True:
            delivered = await self._boundary(execution, may_take_queued=number == 0)
            if delivered is None:
                return Outcome("interrupted", reason=execution.reason)
            if delivered:
                number = 0
            elif number == 0:
                return DONE
            number += 1
            outcome = await self._turns.step(session, number, execution.stop)
            if outcome.kind == "interrupted" and outcome.reason == "user":
                return Outcome("interrupted", reason=execution.reason)
            if outcome.kind != "succeeded":
                return outcome
            if not outcome.again:
                number = 0

    async def _boundary(self, execution: Execution, *, may_take_queued: bool) -> bool | None:
        """Deliver what is due. True when the model has something to answer; None: stopped."""
        session = execution.session
        answerable = False
        while True:
            due = _steers(session)
            if not due and may_take_queued and not answerable and not execution.steers_only:
                due = list(session.inbox.values())[:1]
            if not due:
                return answerable
            for item in due:
                self._journal.deliver(session, item)
                if item.kind == "compaction":
                    if not await self._turns.compact(session, item, execution.stop):
                        return None
                else:
                    answerable = True
            if answerable and not session.titled:
                session.titled = True
                await self._turns.title(session)

    def _instruct(self, session: Session) -> None:
        """The instructions that a session's first delivery brings."""
        if session.instructed:
            return
        session.instructed = True
        delta = instructions(session.directory)
        self._journal.durable(
            session,
            "session.instructions.updated",
            {"delta": delta},
            version=2,
            metadata={"instructions": {"initial": True}},
        )

    def _end(self, session: Session, outcome: Outcome) -> None:
        data: Json = {}
        if outcome.error is not None and outcome.kind == "failed":
            data = {"error": outcome.error}
        if outcome.kind == "interrupted":
            data = {"reason": outcome.reason}
        # A declined ask or form, and a server that stops, leave no idle row.
        self._journal.end(session, outcome.kind, data, idle=outcome.reason != "shutdown")


def instructions(directory: str) -> Json:
    """The hashes of a session's instructions, of the server's form."""
    return {key: digest(key + directory) + digest(key)[:24] for key in INSTRUCTIONS}


def _complain(task: asyncio.Task[None]) -> None:
    error = None if task.cancelled() else task.exception()
    if error is not None:
        logging.getLogger(__name__).error("an execution broke", exc_info=error)


def _steers(session: Session) -> list[Item]:
    return [item for item in session.inbox.values() if item.delivery == "steer"]
