"""One cell's stage: a server, a broken way to it, one client with a turn, and a neighbour."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from stubs.client import AcpClientError
from stubs.client.client import AgentGone
from stubs.proxy import Proxy
from stubs.real_server import Permission
from stubs.waiting import until
from tests.scenarios.backends import Backend
from tests.scenarios.stage import FrontEnd, Json, agent_env, checked_agent, impatient_argv
from tests.support.checked import CheckedClient
from tests.support.impatient import GAP_VARIABLE

GAP_SECONDS: Final = 8
"""Until an adapter gives a server up that is away: longer than a busy machine needs for any cell
that brings it back."""
LOST: Final = "no answer"
"""What a client has that left, or whose agent was killed."""


class Lane:
    """A server with a proxy before it, on which cells are run one after the other.

    They share one agent for as long as it lives.
    """

    def __init__(self, backend: Backend, proxy: Proxy, front: FrontEnd) -> None:
        self.backend = backend
        self.proxy = proxy
        self.front = front
        self._agents = AsyncExitStack()
        self._agent: CheckedClient | None = None

    async def agent(self) -> CheckedClient:
        """A client behind the proxy."""
        if self._agent is None or self._agent.process.returncode is not None:
            await self.aclose()
            env = {**agent_env(self.backend.password), GAP_VARIABLE: str(GAP_SECONDS)}
            started = checked_agent(impatient_argv(self.proxy.url), env)
            self._agent = await self._agents.enter_async_context(started)
        return self._agent

    async def aclose(self) -> None:
        """End the agent; it must have kept every rule, and its daemon holds nothing of it."""
        self._agent = None
        await self._agents.aclose()


@dataclass(slots=True)
class Scene:
    """A cell at work."""

    lane: Lane
    agent: CheckedClient
    project: Path
    session: str
    patience: asyncio.Event
    """Set: the user answers what he is asked."""
    text: str = ""
    """Of the prompt."""
    turn: asyncio.Task[Json] | None = None
    side: list[str] = field(default_factory=list)
    """Outcomes of what the client did beside the turn."""

    @property
    def proxy(self) -> Proxy:
        """The way to the server."""
        return self.lane.proxy

    @property
    def front(self) -> FrontEnd:
        """The neighbour, whose way is whole."""
        return self.lane.front

    def prompt(self, text: str) -> None:
        """Begin the turn."""
        self.text = text
        self.turn = asyncio.create_task(self.agent.prompt(self.session, text))

    async def nothing_goes_on(self) -> None:
        """Until the session is idle at the server, or waits for an answer."""

        async def still() -> bool:
            if self.proxy.sending:
                return False
            asks = await self.front.get(f"session/{self.session}/permission")
            return bool(asks) or not await self.front.is_active(self.session)

        await until("nothing goes on at the server", still)

    def mend_way(self) -> None:
        """Requests and events pass as they are."""
        self.proxy.rules.clear()
        self.proxy.repeats = False
        self.proxy.release()


@dataclass(frozen=True, slots=True)
class Answer:
    """How a prompt ended for its client: a stop reason, `CODE name`, or LOST."""

    outcome: str
    audit: Json

    @property
    def message_id(self) -> str | None:
        """Of the prompt, as the answer tells it."""
        told = self.audit.get("messageId")
        return str(told) if told is not None else None


async def answered(turn: asyncio.Task[Json]) -> Answer:
    """Wait for the answer of a prompt."""
    try:
        result = await turn
    except AcpClientError as error:
        data = error.data or {}
        return Answer(f"{error.code} {data.get('code', '')}".strip(), data)
    except AgentGone:
        return Answer(LOST, {})
    audit: Json = result["_meta"]["opencode-acp"]
    shared = ", shared" if audit["shared"] else ""
    return Answer(f"{result['stopReason']}{shared}", audit)


@asynccontextmanager
async def scene(lane: Lane, permission: Permission) -> AsyncIterator[Scene]:
    """A client with a new session; what the cell did to the way is undone at the end."""
    agent, patience = await lane.agent(), asyncio.Event()

    async def policy(_: Json) -> str:
        await patience.wait()
        return "allow_once"

    agent.policy = policy
    project = lane.backend.project(permission)
    one = Scene(lane, agent, project, await agent.new_session(project), patience)
    try:
        yield one
    finally:
        patience.set()
        agent.go_on()
        one.mend_way()
        await one.proxy.accept()
        if one.turn is not None:
            one.turn.cancel()
            await asyncio.wait([one.turn])
