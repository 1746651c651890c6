"""The agents and models of a directory, read when they are settled and kept until they change.

A directory that the server has not used yet answers 200 with empty lists for 0.7-2.1 s while it
boots (OpenCode facts, section 9), and half-way with the built-in agents and models alone: then a
built-in model is the default that the configuration replaces. Its plugins are listed last. Every
directory that is asked for is booted, so only the ones that sessions live in are ever read.
Workaround "polling a fresh catalogue".
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from adapter.upstream.client import Server
from adapter.upstream.errors import UpstreamError
from adapter.upstream.transport import Sleep
from contract.reads import Agent, Command, Model, Skill

logger = logging.getLogger(__name__)

ValueT = TypeVar("ValueT")

# Directories that are kept; the least recently used one goes first.
MAX_DIRECTORIES: Final = 256


@dataclass(frozen=True)
class Catalogue:
    """What a session of a directory can choose from; `default` is the model without a choice.

    `booted` is whether the server had read the directory's configuration before the lists were.
    """

    agents: tuple[Agent, ...]
    models: tuple[Model, ...]
    default: Model | None
    commands: tuple[Command, ...] = ()
    skills: tuple[Skill, ...] = ()
    booted: bool = True

    @property
    def complete(self) -> bool:
        """Whether agents and models have arrived; only such a catalogue is kept.

        Commands and skills may come later: then the server says that they changed.
        """
        return bool(self.booted and self.agents and self.models)


@dataclass(frozen=True)
class CatalogueSettings:
    """Seconds: pauses grow from `first_pause` to `longest_pause` until `deadline` is over."""

    deadline: float = 10.0
    first_pause: float = 0.05
    longest_pause: float = 0.4
    growth: float = 1.6
    settle: float = 0.3
    """A reload tells of each list by itself: changes are passed on after this long."""


class Catalogues:
    """One load at a time for each directory, whoever waits for it. Close it with `aclose`.

    A directory whose lists stayed empty for a whole deadline, as on a server without a model, is
    not waited for again until `invalidate` says that it changed.
    """

    def __init__(
        self,
        server: Server,
        settings: CatalogueSettings | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._server = server
        self._settings = settings or CatalogueSettings()
        self._clock = clock
        self._sleep = sleep
        # None: waited for in vain.
        self._kept: OrderedDict[str, Catalogue | None] = OrderedDict()
        self._last: OrderedDict[str, Catalogue] = OrderedDict()
        self._loads: dict[str, asyncio.Task[Catalogue]] = {}
        # The loads above, and those that were invalidated and still have callers.
        self._running: set[asyncio.Task[Catalogue]] = set()

    async def get(self, directory: str) -> Catalogue:
        """The catalogue, incomplete if the deadline passed first. Raises `UpstreamError`.

        A caller that is cancelled leaves the load to the others.
        """
        kept = self._kept.get(directory)
        if kept is not None:
            self._kept.move_to_end(directory)
            return kept
        load = self._loads.get(directory) or self._start(directory)
        return await asyncio.shield(load)

    async def callable_now(self, directory: str) -> Catalogue:
        """The commands and skills as they are at this moment, without anything else.

        Those of a directory that boots come later than its agents and models. Raises
        `UpstreamError`.
        """
        commands = await self._server.commands(directory)
        skills = await self._server.skills(directory)
        return Catalogue((), (), None, commands, skills)

    def last(self, directory: str) -> Catalogue | None:
        """What was last known of a directory, without asking; it may have changed since."""
        return self._last.get(directory)

    def invalidate(self, directory: str | None = None) -> None:
        """Forgets one directory, or all; the result of a load under way is not kept either."""
        if directory is None:
            self._kept.clear()
            self._loads.clear()
        else:
            self._kept.pop(directory, None)
            self._loads.pop(directory, None)

    async def aclose(self) -> None:
        """Cancels the loads; whoever waits for one is cancelled with it."""
        for load in self._running:
            load.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    def _start(self, directory: str) -> asyncio.Task[Catalogue]:
        load = asyncio.create_task(self._load(directory, patient=directory not in self._kept))
        self._loads[directory] = load
        self._running.add(load)
        load.add_done_callback(lambda done: self._finish(directory, done))
        return load

    def _finish(self, directory: str, load: asyncio.Task[Catalogue]) -> None:
        self._running.discard(load)
        # Asked in any case: with every caller cancelled nobody else takes the exception.
        failed = load.cancelled() or load.exception() is not None
        catalogue = None if failed else load.result()
        if catalogue is not None and catalogue.complete:
            _keep(self._last, directory, catalogue)
        if self._loads.get(directory) is not load:
            return
        del self._loads[directory]
        if catalogue is not None:
            _keep(self._kept, directory, catalogue if catalogue.complete else None)

    async def _load(self, directory: str, *, patient: bool) -> Catalogue:
        end = self._clock() + self._settings.deadline
        pause = self._settings.first_pause
        while True:
            catalogue = await self._read(directory)
            if catalogue.complete or not patient or self._clock() + pause > end:
                return catalogue
            await self._sleep(pause)
            pause = min(pause * self._settings.growth, self._settings.longest_pause)

    async def _read(self, directory: str) -> Catalogue:
        server = self._server
        # Asked first: what is read behind a boot that is over is no half of it.
        booted = await server.booted(directory)
        try:
            async with asyncio.TaskGroup() as group:
                models = group.create_task(server.models(directory))
                default = group.create_task(server.default_model(directory))
                commands = group.create_task(_optional(server.commands(directory)))
                skills = group.create_task(_optional(server.skills(directory)))
                agents = group.create_task(server.agents(directory))
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None
        return Catalogue(
            agents.result(),
            models.result(),
            default.result(),
            commands.result(),
            skills.result(),
            booted,
        )


async def _optional(read: Awaitable[tuple[ValueT, ...]]) -> tuple[ValueT, ...]:
    """A list without which a session can be used all the same; empty when it cannot be read."""
    try:
        return await read
    except UpstreamError as error:
        logger.warning("a list of slash commands could not be read: %s", error)
        return ()


def _keep(table: OrderedDict[str, ValueT], directory: str, value: ValueT) -> None:
    table[directory] = value
    table.move_to_end(directory)
    if len(table) > MAX_DIRECTORIES:
        table.popitem(last=False)
