"""Cancel in every phase of a turn; what it must leave alone."""

from __future__ import annotations

import asyncio
import json

import pytest

from stubs.proxy import Rule
from stubs.waiting import until
from tests.scenarios.raw import raw_agent
from tests.scenarios.stage import (
    ASKS,
    FrontEnd,
    Stage,
    agent_argv,
    agent_env,
    audit,
    notices,
    prompting,
    saw_ask,
    saw_notice,
    saw_text,
    saw_tool,
    shell,
    statuses,
    unanswered,
    words,
)
from tests.support.checked import CheckedClient

LONG = "@@text 300 30@@"


async def until_delivered(front: FrontEnd, session: str, rows: int = 1) -> None:
    async def delivered() -> bool:
        return len(await front.rows(session, "user")) == rows

    await until("the prompt is delivered", delivered)


async def goes_on(agent: CheckedClient, session: str) -> None:
    """The next prompt of the session gets its own answer and nothing else."""
    before = agent.transcript(session).text()
    assert (await agent.prompt(session, "@@text 7@@"))["stopReason"] == "end_turn"
    assert agent.transcript(session).text() == before + words(7)


async def test_before_the_first_token(stage: Stage) -> None:
    agent, front = await stage.agent(), await stage.front_end()
    session = await agent.new_session(stage.project())
    async with prompting(agent, session, "@@wait 20000 && text 3@@") as prompt:
        await until_delivered(front, session)
        await agent.cancel(session)
        result = await prompt
    assert (result["stopReason"], audit(result)["cancel"]) == ("cancelled", "confirmed")
    assert agent.transcript(session).texts == {}
    await goes_on(agent, session)


async def test_in_mid_text_what_was_written_is_kept(stage: Stage) -> None:
    agent, front = await stage.agent(), await stage.front_end()
    session = await agent.new_session(stage.project())
    async with prompting(agent, session, LONG) as prompt:
        await saw_text(agent, session, "w5 ")
        await agent.cancel(session)
        result = await prompt
    assert (result["stopReason"], audit(result)["cancel"]) == ("cancelled", "confirmed")
    (row,) = await front.rows(session, "assistant")
    assert agent.transcript(session).text() == row["content"][0]["text"]
    assert not await front.is_active(session)
    await goes_on(agent, session)


async def test_while_the_server_waits_to_ask_the_provider_again(stage: Stage) -> None:
    agent, front = await stage.agent(), await stage.front_end()
    session = await agent.new_session(stage.project())
    async with prompting(agent, session, "@@error 500 always@@") as prompt:
        await saw_notice(agent, session, "retry")
        await agent.cancel(session)
        result = await prompt
    assert (result["stopReason"], audit(result)["cancel"]) == ("cancelled", "confirmed")
    # Nothing was used of which anybody knows.
    assert "usage" not in result
    await front.until_idle(session)
    await goes_on(agent, session)


async def test_in_mid_tool(stage: Stage) -> None:
    agent = await stage.agent()
    session = await agent.new_session(stage.project())
    async with prompting(agent, session, f"@@{shell('sleep 30')} || text 2@@") as prompt:
        await saw_tool(agent, session, "in_progress")
        await agent.cancel(session)
        result = await prompt
    assert result["stopReason"] == "cancelled"
    assert statuses(agent.transcript(session)) == ["failed"]
    await goes_on(agent, session)


async def test_during_a_permission(stage: Stage) -> None:
    agent, front = await stage.agent(unanswered), await stage.front_end()
    session = await agent.new_session(stage.project(ASKS))
    async with prompting(agent, session, f"@@{shell('echo hi')} || text 2@@") as prompt:
        await saw_ask(agent)
        await agent.cancel(session)
        result = await prompt
    script = agent.transcript(session)
    assert result["stopReason"] == "cancelled"
    assert statuses(script) == ["failed"]
    assert [ask["answer"] in ("cancelled", "withdrawn") for ask in script.asks] == [True]
    assert await front.get(f"session/{session}/permission") == []
    await goes_on(agent, session)


async def test_while_queued_behind_another_turn(stage: Stage) -> None:
    first, second, front = await stage.agent(), await stage.agent(), await stage.front_end()
    project = stage.project()
    session = await first.new_session(project)
    await second.resume(session, project)
    async with prompting(first, session, "@@text 60 30@@") as running:
        await saw_text(first, session, "w1 ")
        async with prompting(second, session, "@@text 3@@") as queued:
            await front.until_inbox(session, 1)
            await second.cancel(session)
            result = await queued
        assert (result["stopReason"], audit(result)["cancel"]) == ("cancelled", "confirmed")
        assert await front.inbox(session) == []
        assert not running.done()
        assert (await running)["stopReason"] == "end_turn"
    assert first.transcript(session).text() == words(60)
    assert second.transcript(session).texts == {}
    await goes_on(second, session)


async def test_idle_leaves_no_trace(stage: Stage) -> None:
    agent = await stage.agent()
    session = await agent.new_session(stage.project())
    await agent.cancel(session)
    await goes_on(agent, session)
    await agent.cancel(session)
    await goes_on(agent, session)
    assert notices(agent.transcript(session)) == []


async def test_a_late_cancel_does_not_stop_the_next_turn(stage: Stage) -> None:
    proxy = await stage.proxy()
    agent = await stage.agent(url=proxy.url)
    session = await agent.new_session(stage.project())
    await agent.prompt(session, "@@text 2@@")
    # A stop that was sent all the same would come in the midst of the next turn.
    stop = proxy.add(Rule("/interrupt$", "POST", delay=0.2))
    await agent.cancel(session)
    result = await agent.prompt(session, "@@text 10 50@@")
    assert (result["stopReason"], stop.used) == ("end_turn", 0)
    assert agent.transcript(session).text() == words(2) + words(10)


@pytest.mark.parametrize("script", [LONG, "@@wait 20000@@", f"@@{shell('sleep 30')}@@"])
async def test_the_next_prompt_may_follow_at_once(stage: Stage, script: str) -> None:
    agent, front = await stage.agent(), await stage.front_end()
    session = await agent.new_session(stage.project())
    async with prompting(agent, session, script) as prompt:
        await until_delivered(front, session)
        await agent.cancel(session)
        assert (await prompt)["stopReason"] == "cancelled"
        before = agent.transcript(session).text()
        assert (await agent.prompt(session, "@@text 4@@"))["stopReason"] == "end_turn"
    assert agent.transcript(session).text() == before + words(4)


async def test_by_cancel_request(stage: Stage) -> None:
    agent = await stage.agent()
    session = await agent.new_session(stage.project())
    async with prompting(agent, session, LONG) as prompt:
        await saw_text(agent, session, "w1 ")
        await agent.cancel_request(agent.last_request_id)
        assert (await prompt)["stopReason"] == "cancelled"
    await goes_on(agent, session)


async def test_closing_the_session_cancels_its_turn(stage: Stage) -> None:
    agent, front = await stage.agent(), await stage.front_end()
    project = stage.project()
    session = await agent.new_session(project)
    async with prompting(agent, session, LONG) as prompt:
        await saw_text(agent, session, "w1 ")
        assert await agent.close_session(session) == {}
        assert (await prompt)["stopReason"] == "cancelled"
    await front.until_idle(session)
    await agent.resume(session, project)
    await goes_on(agent, session)


async def test_a_client_that_leaves_stops_its_turn(stage: Stage) -> None:
    agent, front = await stage.agent(), await stage.front_end()
    session = await agent.new_session(stage.project())
    async with prompting(agent, session, LONG):
        await saw_text(agent, session, "w1 ")
        assert await agent.hang_up() == 0
    await front.until_idle(session)
    (row,) = await front.rows(session, "assistant")
    assert row["error"]["type"] == "aborted"


@pytest.mark.parametrize("pipes", [(1,), (0, 1)], ids=["it listens no more", "it is killed"])
async def test_a_client_whose_pipes_are_gone_ends_its_agent(
    stage: Stage, pipes: tuple[int, ...]
) -> None:
    front = await stage.front_end()
    argv, env = agent_argv(stage.backend.url), agent_env(stage.backend.password)
    async with raw_agent(argv, env) as agent:
        await agent.request(0, "initialize", {"protocolVersion": 1})
        opening = {"cwd": str(stage.project()), "mcpServers": []}
        session = (await agent.request(1, "session/new", opening))["result"]["sessionId"]
        prompt = {"sessionId": session, "prompt": [{"type": "text", "text": LONG}]}
        message = {"jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": prompt}
        await agent.say(json.dumps(message).encode() + b"\n")
        while "w1 " not in json.dumps(await agent.line()):
            pass
        agent.close(*pipes)
        async with asyncio.timeout(5):
            await agent.process.wait()
    await front.until_idle(session)
    (row,) = await front.rows(session, "assistant")
    assert row["error"]["type"] == "aborted"
