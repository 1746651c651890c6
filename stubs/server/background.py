"""Blocking work of a session that a front end moves to the background."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from stubs.server.store import Session
from stubs.server.wire import Json

ResultT = TypeVar("ResultT")

REQUESTED: Final = (
    "User requested that active blocking work be moved to the background.\n\n"
    "Backgrounded work:\n{work}\n\n"
    "The backgrounded work is still unfinished. Move on to other work if you can. If there is "
    "nothing else useful to do, finish your response. Do not wait, sleep, poll, or report the "
    "backgrounded work as complete until a later completion notification is added to the "
    "conversation."
)


class MovedError(Exception):
    """The work goes on without its caller, as `task`."""

    def __init__(self, task: asyncio.Task[Any]) -> None:
        super().__init__("moved to the background")
        self.task = task


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """What a tool waits for: `moved` when it need not any more, `left` once it does not."""

    session: str
    what: str
    moved: asyncio.Event
    left: asyncio.Event


class Background:
    """`tell` puts a synthetic item into a session and wakes it."""

    def __init__(self, tell: Callable[[Session, Json], None]) -> None:
        self._tell = tell
        self._jobs: list[Job] = []
        self._tasks: set[asyncio.Task[Any]] = set()

    async def wait(
        self, session: Session, what: str, work: Coroutine[Any, Any, ResultT]
    ) -> ResultT:
        """The result of the work. Raises MovedError if a front end moves it meanwhile."""
        job = Job(session.id, what, asyncio.Event(), asyncio.Event())
        self._jobs.append(job)
        task = asyncio.create_task(work)
        moved = asyncio.create_task(job.moved.wait())
        try:
            await asyncio.wait({task, moved}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            task.cancel()
            await asyncio.wait({task})
            raise
        finally:
            moved.cancel()
            self._jobs.remove(job)
            job.left.set()
        if not task.done():
            raise MovedError(task)
        return task.result()

    def follow(
        self, session: Session, task: asyncio.Task[ResultT], report: Callable[[ResultT], Json]
    ) -> None:
        """Tell the session when moved work is over: `report` makes the item's payload."""

        async def follow() -> None:
            self._tell(session, report(await task))

        watcher = asyncio.create_task(follow())
        for one in (task, watcher):
            self._tasks.add(one)
            one.add_done_callback(self._tasks.discard)

    async def move(self, session: Session) -> None:
        """Move whatever blocks the session; nothing happens if nothing does."""
        jobs = [job for job in self._jobs if job.session == session.id]
        for job in jobs:
            job.moved.set()
        for job in jobs:
            await job.left.wait()
        # The tools tell of their ends first.
        await asyncio.sleep(0)
        if jobs:
            work = "\n".join(f"- {job.what}" for job in jobs)
            self._tell(session, {"text": REQUESTED.format(work=work)})

    async def abandon(self) -> None:
        """Forget all of it, as a killed server does."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
