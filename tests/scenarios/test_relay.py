"""Relays and a daemon under faults: what dies takes nothing along that the server still has."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio

from stubs.client import AgentGone
from tests.scenarios.stage import (
    FrontEnd,
    Stage,
    agent_argv,
    agent_env,
    prompting,
    saw_text,
    words,
)
from tests.support.checked import CheckedClient
from tests.support.daemons import Daemons, LentDaemon, relay_argv

LONG = "@@text 60 30@@"


@pytest_asyncio.fixture(loop_scope="session")
async def daemon(stage: Stage) -> AsyncIterator[LentDaemon]:
    """A daemon in front of the server, of this test alone."""
    daemons = Daemons()
    argv, env = agent_argv(stage.backend.url), agent_env(stage.backend.password)
    async with daemons.lent(argv, env) as daemon:
        yield daemon
    await daemons.aclose()


@asynccontextmanager
async def relayed(stage: Stage, daemon: LentDaemon) -> AsyncIterator[CheckedClient]:
    """A client behind a relay, which may end as it likes."""
    argv = relay_argv(agent_argv(stage.backend.url), daemon.path)
    env = agent_env(stage.backend.password)
    async with CheckedClient.spawn(argv, env=env) as client:
        assert isinstance(client, CheckedClient)
        await client.initialize()
        yield client
        assert client.faults() == []


async def finished(front: FrontEnd, session: str) -> None:
    """Wait until the server has ended what it does there."""
    await front.until_rows(session, "assistant", 1)
    await front.until_idle(session)


async def test_a_daemon_that_is_killed_takes_nothing_along(
    stage: Stage, daemon: LentDaemon
) -> None:
    """O-31: relays say so and end at once; the server goes on, and its text is there again."""
    front, project = await stage.front_end(), stage.project()
    async with relayed(stage, daemon) as agent, relayed(stage, daemon) as idle:
        session = await agent.new_session(project)
        async with prompting(agent, session, LONG) as prompt:
            await saw_text(agent, session, "w3 ")
            daemon.kill()
            with pytest.raises(AgentGone):
                await prompt
        for one in (agent, idle):
            async with asyncio.timeout(30):
                assert await one.process.wait() == 75
            assert one.stderr.decode().count("\n") == 1
            assert "is gone" in one.stderr.decode()
    await finished(front, session)
    again = await stage.agent()
    await again.load(session, project)
    assert again.transcript(session).text() == words(60)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGHUP])
async def test_a_relay_that_dies_is_a_client_that_leaves(
    stage: Stage, daemon: LentDaemon, number: signal.Signals
) -> None:
    front, project = await stage.front_end(), stage.project()
    async with relayed(stage, daemon) as leaving, relayed(stage, daemon) as staying:
        mine, theirs = await leaving.new_session(project), await staying.new_session(project)
        async with (
            prompting(staying, theirs, LONG) as other,
            prompting(leaving, mine, "@@text 300 30@@"),
        ):
            await saw_text(leaving, mine, "w1 ")
            leaving.process.send_signal(number)
            await front.until_idle(mine)
            assert (await other)["stopReason"] == "end_turn"
    assert staying.transcript(theirs).text() == words(60)
