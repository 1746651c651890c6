"""What the clients do: each a relay to the daemon, with work picked at random."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from stubs.client import AcpClient, AcpClientError
from stubs.client.client import AgentGone
from tests.matrix.scene import answered
from tests.scenarios.stage import shell, words

PAUSE: Final = 2.0
"""Seconds that a user thinks at most."""
FULL: Final = "too_many"
"""All places are taken: refused before it is a turn, and sent again later, as users do."""
LATE: Final = 90.0
"""Seconds after which a request counts as hanging."""


@dataclass(slots=True)
class Tally:
    """What all users saw together. `wrong` is empty if all is well."""

    prompts: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    unanswered: int = 0
    """Prompts whose client left before their answer."""
    characters: int = 0
    wrong: list[str] = field(default_factory=list)


class User:
    """One client at a time, in one project, with one session open."""

    def __init__(
        self, number: int, argv: list[str], env: Mapping[str, str], project: Path, tally: Tally
    ) -> None:
        self._name = f"user {number}"
        self._dice = random.Random(number)
        self._argv = argv
        self._env = env
        self._project = project
        self._tally = tally
        self._session = ""

    async def work(self, over: asyncio.Event) -> None:
        """Until `over` is set; then the client leaves."""
        while not over.is_set():
            async with AcpClient.spawn(self._argv, env=self._env) as agent:
                await self._visit(agent, over)
                self._tally.wrong += [f"{self._name}: {fault}" for fault in agent.violations]

    async def _visit(self, agent: AcpClient, over: asyncio.Event) -> None:
        """One process of the client, from its start until it leaves."""
        await agent.initialize()
        if not await self._opened(agent):
            return
        for _ in range(self._dice.randint(3, 12)):
            await asyncio.sleep(self._dice.uniform(0, PAUSE))
            if over.is_set():
                return
            act = self._dice.choices(
                [self._text, self._tool, self._cancel, self._load, self._reopen, self._leave],
                [6, 3, 3, 1, 1, 1],
            )[0]
            try:
                if not await act(agent):
                    return
            except (TimeoutError, AgentGone) as error:
                self._tally.wrong.append(f"{self._name}: {act.__name__}: {error!r}")
                return

    async def _opened(self, agent: AcpClient) -> bool:
        """The session of before, or a new one; False while the server cannot be reached."""
        try:
            if self._session:
                await agent.resume(self._session, self._project)
            else:
                self._session = await agent.new_session(self._project)
        except AcpClientError as error:
            self._tally.outcomes[f"opening: {error.code}"] += 1
            await asyncio.sleep(self._dice.uniform(0.1, 0.5))
            return False
        return True

    async def _text(self, agent: AcpClient) -> bool:
        count = self._dice.randint(1, 60)
        await self._turn(
            agent, f"@@think 2 && text {count} {self._dice.choice((0, 5, 20))}@@", words(count)
        )
        return True

    async def _tool(self, agent: AcpClient) -> bool:
        script = f"@@text 2 && {shell('sleep 0.1; echo out')} || text 9 10@@"
        await self._turn(agent, script, words(2) + words(9))
        return True

    async def _cancel(self, agent: AcpClient) -> bool:
        async def soon() -> None:
            await asyncio.sleep(self._dice.uniform(0, 0.6))
            await agent.cancel(self._session)

        cancel = asyncio.create_task(soon())
        await self._turn(agent, "@@text 200 10@@", words(200))
        await cancel
        return True

    async def _load(self, agent: AcpClient) -> bool:
        return await self._request(agent, "session/load")

    async def _reopen(self, agent: AcpClient) -> bool:
        done = await self._request(agent, "session/close")
        return done and await self._opened(agent)

    async def _leave(self, agent: AcpClient) -> bool:
        """In mid-turn, without a word."""
        turn = self._begun(agent, "@@text 200 10@@")
        await asyncio.sleep(self._dice.uniform(0, 0.3))
        await agent.hang_up()
        await asyncio.wait([turn])
        self._tally.unanswered += 1
        turn.exception()
        return False

    async def _request(self, agent: AcpClient, method: str) -> bool:
        params: dict[str, Any] = {
            "sessionId": self._session,
            "cwd": str(self._project),
            "mcpServers": [],
        }
        try:
            await agent.request(method, params, LATE)
        except AcpClientError as error:
            self._tally.outcomes[f"{method}: {error.code}"] += 1
            return False
        return True

    def _begun(self, agent: AcpClient, text: str) -> asyncio.Task[Any]:
        self._tally.prompts += 1
        return asyncio.create_task(agent.prompt(self._session, text, LATE))

    async def _turn(self, agent: AcpClient, text: str, whole: str) -> None:
        before = agent.transcript(self._session).text()
        answer = await answered(self._begun(agent, text))
        told = agent.transcript(self._session).text().removeprefix(before)
        self._tally.outcomes[answer.outcome] += 1
        if answer.outcome.endswith(FULL):
            self._tally.prompts -= 1
            await asyncio.sleep(self._dice.uniform(0.2, 1.0))
            return
        self._tally.characters += len(told)
        right = told == whole if answer.outcome == "end_turn" else whole.startswith(told)
        if not right:
            self._tally.wrong.append(f"{self._name}: {answer.outcome}, {told!r} of {text}")
