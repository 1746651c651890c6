"""One cell: a fault in a phase. What it needs is brought there, and its outcome is judged."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from stubs.client import AcpClientError
from stubs.proxy import Proxy
from stubs.waiting import until
from tests.matrix.faults import FAULTS, Fault
from tests.matrix.judge import faults
from tests.matrix.phases import PHASES, Phase
from tests.matrix.scene import LOST, Answer, Lane, Scene, answered, scene
from tests.scenarios.backends import Backend
from tests.scenarios.stage import FrontEnd

SECONDS = 60.0
"""A cell that takes longer hangs."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A place in the matrix; `key` is its name in tests and tables."""

    fault: Fault
    phase: Phase

    @property
    def key(self) -> str:
        return f"{self.fault.key}/{self.phase.key}"


@dataclass(frozen=True, slots=True)
class Run:
    """How a cell went: the outcome for its client, and what is wrong."""

    cell: Cell
    outcome: str
    wrong: tuple[str, ...] = ()


def cells() -> list[Cell]:
    """All that there are to run; what a fault has no place in is left out."""
    return [
        Cell(fault, phase)
        for fault in FAULTS
        for phase in PHASES
        if not fault.only or phase.key in fault.only
    ]


@asynccontextmanager
async def lane(backend: Backend) -> AsyncIterator[Lane]:
    """A way to a server for cells, one after the other."""
    async with Proxy(backend.url) as proxy, backend.client() as http:
        one = Lane(backend, proxy, FrontEnd(http))
        try:
            yield one
        finally:
            await one.aclose()


async def run(cell: Cell, on: Lane) -> Run:
    """Run one cell. What goes wrong in it is told and not raised."""
    await on.backend.rest()
    try:
        async with asyncio.timeout(SECONDS), scene(on, cell.phase.permission) as one:
            answer = await _play(cell, one)
            outcome = "; ".join([await _outcome(one, answer), *one.side])
            return Run(cell, outcome, tuple(await faults(one, cell.phase, answer)))
    except (TimeoutError, AssertionError, AcpClientError) as error:
        return Run(cell, "", (f"{type(error).__name__}: {error}",))


async def _play(cell: Cell, one: Scene) -> Answer:
    await cell.phase.reach(one)
    await cell.fault.strike(one)
    await cell.phase.meanwhile(one)
    await cell.fault.mend(one)
    assert one.turn is not None
    return await answered(one.turn)


async def _outcome(one: Scene, answer: Answer) -> str:
    """The answer, or what became at the server of a turn whose client has none."""
    if answer.outcome != LOST:
        return answer.outcome
    await one.nothing_goes_on()
    if await one.front.get(f"session/{one.session}/permission"):
        return f"{LOST}: its permission is open"
    return f"{LOST}: {await _end(one)}"


async def _end(one: Scene) -> str:
    """How the prompt's turn ended at the server."""

    async def told() -> str | None:
        return await _row_of_end(one)

    return await until("the turn has its end at the server", told)


async def _row_of_end(one: Scene) -> str | None:
    rows = await one.front.get(f"session/{one.session}/message", limit=200, order="asc")
    own = [n for n, row in enumerate(rows) if row["type"] == "user" and row["text"] == one.text]
    if not own:
        return "never ran"
    return next((row["outcome"] for row in rows[own[0] :] if row["type"] == "idle"), None)


@asynccontextmanager
async def lanes(backends: list[Backend]) -> AsyncIterator[list[Lane]]:
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(lane(backend)) for backend in backends]


async def run_all(todo: list[Cell], on: list[Lane]) -> list[Run]:
    """All cells, on all lanes side by side; in the order of `todo`."""
    queue = list(reversed(todo))
    runs: dict[str, Run] = {}

    async def work(one: Lane) -> None:
        while queue:
            cell = queue.pop()
            runs[cell.key] = await run(cell, one)

    async with asyncio.TaskGroup() as group:
        for one in on:
            group.create_task(work(one))
    return [runs[cell.key] for cell in todo]
