"""The feed of a turn cut after each of its events costs the client nothing."""

from __future__ import annotations

import asyncio
import difflib
import json
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

from stubs.client import AcpClientError
from stubs.proxy import Cut, Proxy
from stubs.real_server import PASSWORD
from stubs.server import Settings
from tests.scenarios.backends import StubBackend, stub_backend
from tests.scenarios.stage import (
    ASKS,
    THOUGHT,
    agent_env,
    audit,
    checked_agent,
    impatient_argv,
    shell,
)
from tests.support.checked import CheckedClient
from tests.support.impatient import GAP_VARIABLE

WORKERS: Final = 6
LEAST_EVENTS: Final = 50
MOST_MISSED: Final = 8
QUICK: Final = Settings(password=PASSWORD, delta_interval=0.02, retry_base=0.05)
EDIT: Final = 'tool edit {"path":"a.txt","oldString":"two","newString":"three"}'
TURN: Final = (
    f"@@think 4 8 && text 8 8 && {shell('echo hi')} || {EDIT} && tool read "
    '{"path":"a.txt"} || text 5 8 && drop && text 2 || error 500 && text 6 8@@'
)
# On a busy machine the reads of so many adapters take longer than a test of a gap waits.
PATIENT: Final = {GAP_VARIABLE: "60"}


class Worker:
    """An adapter behind a proxy of its own, so that its feed can be cut alone."""

    def __init__(self, backend: StubBackend, proxy: Proxy, agent: CheckedClient) -> None:
        self._backend = backend
        self._proxy = proxy
        self._agent = agent
        self.missed = 0
        """Cuts that did not come: a turn has not always the same number of events."""

    async def play(self) -> str:
        """The turn without a cut: what the client saw."""
        return await self._play(self._project())

    async def count(self) -> int:
        """How many events of its session a turn has until it is answered."""
        many = 10_000
        cut, session = await self._plan(project := self._project(), many, clean=True)
        await self._play(project, session)
        return many - cut.after

    async def play_cut(self, after: int, *, clean: bool) -> str:
        """The turn, its feed cut after so many events of its session."""
        cut, session = await self._plan(project := self._project(), after, clean=clean)
        seen = await self._play(project, session)
        self.missed += not cut.done.is_set()
        return seen

    def _project(self) -> Path:
        project = self._backend.project(ASKS)
        (project / "a.txt").write_text("one\ntwo\n", encoding="utf-8")
        return project

    async def _plan(self, project: Path, after: int, *, clean: bool) -> tuple[Cut, str]:
        session = await self._agent.new_session(project)
        return self._proxy.cut_feed(after, clean, containing=session), session

    async def _play(self, project: Path, session: str | None = None) -> str:
        session = session or await self._agent.new_session(project)
        result = await self._agent.prompt(session, TURN)
        assert self._backend.admissions[audit(result)["messageId"]] == 1
        await self._agent.close_session(session)
        content = self._agent.transcript(session).comparable()
        # A thought whose beginning a gap hides comes whole at the end of its step, which may be
        # behind the text of its message: neither is held up for the other.
        content["texts"].sort(key=lambda text: (text[0], text[1] != THOUGHT))
        seen = json.dumps(content, sort_keys=True, indent=1)
        return seen.replace(str(project), "PROJECT")


async def worker(backend: StubBackend, stack: AsyncExitStack) -> Worker:
    proxy = await stack.enter_async_context(Proxy(backend.url))
    agent = await stack.enter_async_context(
        checked_agent(impatient_argv(proxy.url), agent_env(PASSWORD) | PATIENT)
    )
    return Worker(backend, proxy, agent)


async def test_a_cut_after_any_event_costs_nothing(tmp_path: Path) -> None:
    async with stub_backend(tmp_path, QUICK) as backend, AsyncExitStack() as stack:
        wanted = await (first := await worker(backend, stack)).play()
        events = await first.count()
        assert events > LEAST_EVENTS
        cuts = [(after, clean) for after in range(1, events + 1) for clean in (True, False)]
        differing: dict[tuple[int, bool], str] = {}
        missed: list[int] = []

        async def work() -> None:
            one = await worker(backend, stack)
            while cuts:
                after, clean = cuts.pop()
                try:
                    seen = await one.play_cut(after, clean=clean)
                except AcpClientError as error:
                    seen = str(error)
                if seen != wanted:
                    differing[after, clean] = _difference(wanted, seen)
            missed.append(one.missed)

        async with asyncio.TaskGroup() as group:
            for _ in range(WORKERS):
                group.create_task(work())
        assert differing == {}
        assert sum(missed) <= MOST_MISSED


def _difference(wanted: str, seen: str) -> str:
    return "\n".join(difflib.unified_diff(wanted.splitlines(), seen.splitlines(), n=1))
