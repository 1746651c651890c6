"""A client that leaves its turn running: what it was asked holds up nothing on the server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from stubs.proxy import Rule
from tests.scenarios.questions import COLOR, FORMS, ask, no_answer, saw_form
from tests.scenarios.stage import (
    ASKS,
    Stage,
    agent_argv,
    agent_env,
    checked_agent,
    prompting,
    saw_ask,
    shell,
    unanswered,
)
from tests.scenarios.test_mcp import ALL, call, stdio
from tests.support.checked import CheckedClient

# The server demands the choice of a provider, so that leaving it unanswered is refused.
SEARCH = 'tool websearch {"query": "x"}'


@asynccontextmanager
async def detaching(stage: Stage, url: str = "") -> AsyncIterator[CheckedClient]:
    """An agent of an operator who lets turns go on, and a user who does not answer."""
    env = agent_env(stage.backend.password)
    env |= {"OPENCODE_ACP_ON_CLIENT_EXIT": "detach", "OPENCODE_ACP_MCP": "register"}
    argv = agent_argv(url or stage.backend.url)
    async with checked_agent(argv, env, unanswered, capabilities=FORMS) as agent:
        agent.form_policy = no_answer
        yield agent


@pytest.mark.parametrize("asking", [ask(COLOR), SEARCH], ids=["optional", "demanded"])
async def test_a_question_is_left_unanswered_and_the_turn_goes_on(
    stage: Stage, asking: str
) -> None:
    front = await stage.front_end()
    async with detaching(stage) as agent:
        session = await agent.new_session(stage.project(ALL))
        async with prompting(agent, session, f"@@{asking} || text 2@@"):
            await saw_form(agent)
            assert await agent.hang_up() == 0
    await front.until_idle(session)
    assert (await front.rows(session, "assistant"))[-1]["finish"] == "stop"


async def test_a_question_of_an_mcp_server_is_dismissed_and_the_turn_goes_on(stage: Stage) -> None:
    front = await stage.front_end()
    async with detaching(stage) as agent:
        session = await agent.new_session(stage.project(ALL), mcpServers=[stdio("e", "ok")])
        async with prompting(agent, session, call(session, "e", "ask")):
            await saw_form(agent)
            assert await agent.hang_up() == 0
    await front.until_idle(session)
    assert (await front.rows(session, "assistant"))[-1]["finish"] == "stop"


@pytest.mark.parametrize("slow", [False, True])
async def test_a_permission_is_refused_and_the_turn_goes_on(stage: Stage, slow: bool) -> None:
    proxy, front = await stage.proxy(), await stage.front_end()
    if slow:
        proxy.add(Rule(r"/permission/\w+/reply$", "POST", delay=0.5))
    async with detaching(stage, proxy.url) as agent:
        session = await agent.new_session(stage.project(ASKS))
        async with prompting(agent, session, f"@@{shell('echo hi')} || text 2@@"):
            await saw_ask(agent)
            assert await agent.hang_up() == 0
    await front.until_idle(session)
    (first, last) = await front.rows(session, "assistant")
    assert first["content"][0]["state"]["status"] == "error"
    assert last["finish"] == "stop"
