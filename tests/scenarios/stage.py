"""What a scenario works with: the server, adapters on it, and other front ends."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from stubs.client import AcpClient, AcpClientError, Transcript
from stubs.client.client import Policy
from stubs.proxy import Proxy
from stubs.real_server import Permission
from stubs.waiting import until
from tests.scenarios.backends import Backend
from tests.support.checked import CheckedClient
from tests.support.daemons import COMMAND, IMPATIENT, launched

Json = dict[str, Any]

ASKS: Final = {"shell": "ask", "edit": "ask"}
TEXT: Final = "agent_message_chunk"
THOUGHT: Final = "agent_thought_chunk"


def agent_argv(url: str) -> list[str]:
    """The agent command on a server."""
    return [COMMAND, "--server", url, "--no-daemon"]


def impatient_argv(url: str) -> list[str]:
    """The agent with short deadlines."""
    return [sys.executable, IMPATIENT, "--server", url]


def agent_env(password: str) -> dict[str, str]:
    """The environment that an agent gets."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": "/nonexistent",
        "OPENCODE_SERVER_PASSWORD": password,
    }


@asynccontextmanager
async def checked_agent(
    argv: Sequence[str],
    env: Mapping[str, str],
    policy: Policy | None = None,
    capabilities: Json | None = None,
) -> AsyncIterator[CheckedClient]:
    """An agent that was initialized; at the end it must have kept every rule and exit with 0."""
    async with (
        launched(argv, env) as (command, daemon),
        CheckedClient.spawn(command, env=env, policy=policy) as client,
    ):
        assert isinstance(client, CheckedClient)
        if daemon is not None:
            daemon.agents.append(client)
        await client.initialize(**(capabilities or {}))
        yield client
        if client.process.returncode is None:
            assert await client.hang_up() == 0
        assert client.faults() == []
        assert b"Traceback" not in client.stderr, client.stderr.decode()


class Stage:
    """One test's view of a server."""

    def __init__(self, backend: Backend, stack: AsyncExitStack) -> None:
        self.backend = backend
        self._stack = stack

    def project(self, permission: Permission | None = None, **extra: Any) -> Path:
        """A new project directory."""
        return self.backend.project(permission, **extra)

    async def agent(
        self,
        policy: Policy | None = None,
        url: str | None = None,
        password: str | None = None,
        *,
        impatient: bool = False,
        capabilities: Json | None = None,
        config: Path | None = None,
    ) -> CheckedClient:
        """An adapter process of its own, initialized; with short deadlines if `impatient`."""
        argv = (impatient_argv if impatient else agent_argv)(url or self.backend.url)
        argv += ["--config", str(config)] if config is not None else []
        env = agent_env(self.backend.password if password is None else password)
        return await self._stack.enter_async_context(checked_agent(argv, env, policy, capabilities))

    async def proxy(self) -> Proxy:
        """A way to the server that can be broken."""
        return await self._stack.enter_async_context(Proxy(self.backend.url))

    async def front_end(self) -> FrontEnd:
        """Somebody else on the same server."""
        return FrontEnd(await self._stack.enter_async_context(self.backend.client()))


class FrontEnd:
    """Plain HTTP on the server. Raises httpx.HTTPStatusError for every refusal."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self.http = http

    async def get(self, path: str, **query: str | int) -> Any:
        """`data` of a read below /api."""
        answer = await self.http.get(f"/api/{path}", params=query)
        return answer.raise_for_status().json()["data"]

    async def post(self, path: str, body: Json | None = None) -> None:
        (await self.http.post(f"/api/{path}", json=body or {})).raise_for_status()

    async def delete(self, path: str) -> None:
        (await self.http.delete(f"/api/{path}")).raise_for_status()

    async def inbox(self, session: str) -> list[str]:
        """The ids of the items that wait."""
        return [item["id"] for item in await self.get(f"session/{session}/inbox")]

    async def is_active(self, session: str) -> bool:
        return session in await self.get("session/active")

    async def rows(self, session: str, kind: str) -> list[Json]:
        """The newest rows of a type, oldest first."""
        rows = await self.get(f"session/{session}/message", limit=200, order="asc")
        return [row for row in rows if row["type"] == kind]

    async def until_rows(self, session: str, kind: str, count: int) -> list[Json]:
        """Wait until there are so many rows of a type."""

        async def there() -> list[Json] | None:
            found = await self.rows(session, kind)
            return found if len(found) >= count else None

        return await until(f"{count} rows {kind}", there)

    async def until_idle(self, session: str) -> None:
        async def idle() -> bool:
            return not await self.is_active(session)

        await until("the session is idle", idle)

    async def until_answered(self, session: str, prompts: int) -> None:
        """Wait until so many answers have come to their end."""

        async def answered() -> bool:
            rows = await self.rows(session, "assistant")
            return len([row for row in rows if row.get("finish") == "stop"]) >= prompts

        await until(f"{prompts} answers", answered)

    async def until_inbox(self, session: str, items: int) -> list[str]:
        """Wait until so many items wait; their ids."""

        async def filled() -> list[str] | None:
            found = await self.inbox(session)
            return found if len(found) == items else None

        return await until(f"{items} items wait", filled)

    async def until_ask(self, session: str) -> Json:
        """The first open permission ask of a session."""

        async def asked() -> Json | None:
            asks: list[Json] = await self.get(f"session/{session}/permission")
            return asks[0] if asks else None

        return await until("a permission is asked", asked)


async def saw_text(agent: CheckedClient, session: str, words: str) -> None:
    """Wait until these words have come."""
    await agent.wait_for(lambda: words in agent.transcript(session).text())


async def saw_tool(agent: CheckedClient, session: str, status: str) -> None:
    """Wait until a tool has that status."""
    await agent.wait_for(lambda: status in statuses(agent.transcript(session)))


async def saw_notice(agent: CheckedClient, session: str, kind: str) -> None:
    """Wait for a notice of that kind."""
    await agent.wait_for(lambda: kind in notices(agent.transcript(session)))


async def saw_log(agent: AcpClient, words: str) -> None:
    """Wait until the agent's log has these words; a thread of its own writes it."""

    async def told() -> bool:
        return words.encode() in agent.stderr

    await until(f"the log says {words!r}", told)


def notices(transcript: Transcript) -> list[str]:
    """The kinds of the notices, in order."""
    told = [notice["_meta"]["opencode-acp"] for notice in transcript.notices]
    return [one["notice"] for one in told if "notice" in one]


def statuses(transcript: Transcript) -> list[str]:
    """The last status of each tool, in order of appearance."""
    return [tool["status"] for tool in transcript.tools.values()]


def words(count: int, stem: str = "w") -> str:
    """What the action `text` or `think` streams."""
    return "".join(f"{stem}{n} " for n in range(count))


def shell(command: str) -> str:
    """The action of a shell call."""
    return f'tool shell {{"command":"{command}"}}'


@asynccontextmanager
async def fails(code: int) -> AsyncIterator[Callable[[], AcpClientError]]:
    """The block must end in an error answer with that code; calling the result gives it."""
    caught: list[AcpClientError] = []
    with pytest.raises(AcpClientError) as info:
        yield lambda: caught[0]
    caught.append(info.value)
    assert info.value.code == code, str(info.value)


def audit(result: Json) -> Json:
    """`_meta` of a prompt's result."""
    told: Json = result["_meta"]["opencode-acp"]
    return told


async def saw_ask(agent: CheckedClient) -> Json:
    """Wait until a permission is asked for; the params of the newest ask."""

    def asks() -> list[Json]:
        return [
            line.message["params"]
            for line in agent.updates
            if line.message.get("method") == "session/request_permission"
        ]

    await agent.wait_for(lambda: bool(asks()))
    return asks()[-1]


async def unanswered(_: Json) -> str | None:
    """A user who does not answer."""
    await asyncio.Event().wait()
    return None


@asynccontextmanager
async def prompting(
    agent: CheckedClient, session: str, text: str
) -> AsyncIterator[asyncio.Task[Json]]:
    """A prompt in flight."""
    task = asyncio.create_task(agent.prompt(session, text))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])
