"""What an operator finds in the log of what was counted."""

from __future__ import annotations

import pytest

from tests.scenarios.stage import (
    Stage,
    agent_argv,
    agent_env,
    checked_agent,
    prompting,
    saw_log,
    saw_text,
)


@pytest.mark.parametrize("level", ["info", "warning"])
async def test_the_counts_are_told_at_the_exit(stage: Stage, level: str) -> None:
    argv = [*agent_argv(stage.backend.url), "--log-level", level]
    async with checked_agent(argv, agent_env(stage.backend.password)) as agent:
        session = await agent.new_session(stage.project())
        await agent.prompt(session, "@@text 2@@")
        assert await agent.hang_up() == 0
        if level == "info":
            await saw_log(agent, "feed.connections")
        told = [line for line in agent.stderr.decode().splitlines() if "counted: " in line]
    assert len(told) == (level == "info")
    assert all("feed.connections 1" in line for line in told)


async def test_a_client_that_leaves_in_its_turn_hits_no_limit(stage: Stage) -> None:
    front = await stage.front_end()
    argv = agent_argv(stage.backend.url)
    async with checked_agent(argv, agent_env(stage.backend.password)) as agent:
        session = await agent.new_session(stage.project())
        async with prompting(agent, session, "@@text 3 && wait 60000@@"):
            await saw_text(agent, session, "w2 ")
            assert await agent.hang_up() == 0
        assert agent.stderr == b""
    await front.until_idle(session)
