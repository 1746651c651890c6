"""The way to the server breaks: nothing is lost, sent twice or invented."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

from stubs.client import choose
from stubs.proxy import Proxy, Rule
from stubs.waiting import until
from tests.scenarios.backends import StubBackend
from tests.scenarios.stage import (
    ASKS,
    FrontEnd,
    Stage,
    audit,
    fails,
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

PROMPT = r"/prompt$"


async def through_proxy(
    stage: Stage, *, impatient: bool = False, **more: Any
) -> tuple[CheckedClient, Proxy, str]:
    """An adapter behind a proxy, with a session whose tools ask."""
    proxy = await stage.proxy()
    agent = await stage.agent(url=proxy.url, impatient=impatient, **more)
    return agent, proxy, await agent.new_session(stage.project(ASKS))


# The feed is cut.


@pytest.mark.parametrize("clean", [True, False])
async def test_cut_in_mid_text(stage: Stage, clean: bool) -> None:
    agent, proxy, session = await through_proxy(stage)
    async with prompting(agent, session, "@@think 3 && text 40 25@@") as prompt:
        await saw_text(agent, session, "w3 ")
        proxy.cut_feed(clean=clean)
        result = await prompt
    assert (result["stopReason"], audit(result)["gaps"]) == ("end_turn", 1)
    assert audit(result)["recoveredChars"] > 0
    assert agent.transcript(session).text() == words(40)
    assert agent.transcript(session).text("agent_thought_chunk") == words(3, "think")


async def test_cut_in_mid_tool(stage: Stage) -> None:
    agent, proxy, session = await through_proxy(stage)
    script = f"@@text 2 && {shell('sleep 1; echo out')} || text 5@@"
    async with prompting(agent, session, script) as prompt:
        await agent.wait_for(lambda: bool(agent.transcript(session).asks))
        await saw_tool(agent, session, "in_progress")
        proxy.cut_feed()
        assert (await prompt)["stopReason"] == "end_turn"
    script_of = agent.transcript(session)
    (tool,) = script_of.tools.values()
    assert (tool["status"], "out" in tool["rawOutput"]["output"]) == ("completed", True)
    assert [ask["answer"] for ask in script_of.asks] == ["allow_once"]
    assert script_of.text() == words(2) + words(5)


async def test_cut_during_a_permission(stage: Stage) -> None:
    agent, proxy, session = await through_proxy(stage, policy=unanswered)
    front = await stage.front_end()
    async with prompting(agent, session, f"@@{shell('echo hi')} || text 5@@") as prompt:
        await saw_ask(agent)
        feeds = feeds_opened(proxy)
        proxy.cut_feed()
        await until_reconnected(proxy, feeds)
        ask = await front.until_ask(session)
        reply = f"session/{session}/permission/{ask['id']}/reply"
        await front.post(reply, {"decision": "once"})
        assert (await prompt)["stopReason"] == "end_turn"
    script = agent.transcript(session)
    assert [ask["answer"] for ask in script.asks] == ["withdrawn"]
    assert (statuses(script), script.text()) == (["completed"], words(5))


async def test_an_ask_of_a_gap_is_asked(stage: Stage) -> None:
    agent, proxy, session = await through_proxy(stage)
    proxy.cut_feed(after=1, containing="session.tool.called")
    result = await agent.prompt(session, f"@@{shell('echo hi')} || text 5@@")
    script = agent.transcript(session)
    assert (result["stopReason"], audit(result)["gaps"]) == ("end_turn", 1)
    assert [ask["answer"] for ask in script.asks] == ["allow_once"]
    assert (statuses(script), script.text()) == (["completed"], words(5))


@pytest.mark.parametrize(
    "event", ["session.step.ended", "session.text.ended", "session.inbox.delivered"]
)
async def test_cut_between_steps_and_at_the_end(stage: Stage, event: str) -> None:
    agent, proxy, session = await through_proxy(stage)
    for _ in range(2):
        proxy.cut_feed(after=1, containing=event)
    result = await agent.prompt(session, f"@@text 3 20 && {shell('echo hi')} || text 8 20@@")
    assert result["stopReason"] == "end_turn"
    assert audit(result)["gaps"] >= 1
    assert statuses(agent.transcript(session)) == ["completed"]
    assert agent.transcript(session).text() == words(3) + words(8)


def feeds_opened(proxy: Proxy) -> int:
    return list(proxy.requests).count("GET /api/event")


async def until_reconnected(proxy: Proxy, feeds: int) -> None:
    async def again() -> bool:
        return feeds_opened(proxy) > feeds and proxy.feeds > 0

    await until("the feed is connected again", again)


async def test_the_server_is_out_of_reach_for_a_while(stage: Stage) -> None:
    agent, proxy, session = await through_proxy(stage)
    front = await stage.front_end()
    async with prompting(agent, session, "@@text 30 30@@") as prompt:
        await saw_text(agent, session, "w3 ")
        await proxy.refuse()
        await front.until_idle(session)
        assert not prompt.done()
        await proxy.accept()
        assert (await prompt)["stopReason"] == "end_turn"
    assert agent.transcript(session).text() == words(30)


async def test_a_client_that_waits_is_told_that_the_server_is_away(stage: Stage) -> None:
    agent, proxy, session = await through_proxy(stage, impatient=True)
    async with prompting(agent, session, "@@text 30 30@@") as prompt:
        await saw_text(agent, session, "w3 ")
        await proxy.refuse()
        await saw_notice(agent, session, "reconnecting")
        assert not prompt.done()
        await proxy.accept()
        assert (await prompt)["stopReason"] == "end_turn"
    assert notices(agent.transcript(session)) == ["reconnecting"]
    assert agent.transcript(session).text() == words(30)


async def test_a_silent_feed_is_given_up(stage: Stage) -> None:
    agent, proxy, session = await through_proxy(stage, impatient=True)
    front = await stage.front_end()
    async with prompting(agent, session, "@@text 30 30@@") as prompt:
        await saw_text(agent, session, "w3 ")
        feeds = feeds_opened(proxy)
        proxy.hold()
        await front.until_idle(session)
        await until("the feed is given up", lambda: more_feeds(proxy, feeds))
        proxy.release()
        result = await prompt
    assert (result["stopReason"], audit(result)["gaps"] >= 1) == ("end_turn", True)
    assert agent.transcript(session).text() == words(30)


async def more_feeds(proxy: Proxy, feeds: int) -> bool:
    return feeds_opened(proxy) > feeds


async def test_a_gap_that_does_not_end_is_an_unknown_outcome(stage: Stage) -> None:
    agent, proxy, session = await through_proxy(stage, impatient=True)
    async with prompting(agent, session, "@@text 300 30@@") as prompt:
        await saw_text(agent, session, "w3 ")
        await proxy.refuse()
        async with fails(-32050) as error:
            await prompt
    assert error().data["retrySafe"] is False
    await proxy.accept()


async def test_what_a_turn_in_doubt_asked_is_refused_though_its_client_leaves(stage: Stage) -> None:
    agent, proxy, session = await through_proxy(stage, impatient=True, policy=unanswered)
    front = await stage.front_end()
    async with prompting(agent, session, f"@@{shell('echo hi')} || text 2@@") as prompt:
        await saw_ask(agent)
        await proxy.refuse()
        async with fails(-32050):
            await prompt
    await proxy.accept()
    assert await agent.hang_up() == 0
    await front.until_idle(session)
    (first, last) = await front.rows(session, "assistant")
    assert (first["content"][0]["state"]["status"], last["finish"]) == ("error", "stop")


# The prompt's own request is broken.


@pytest.mark.parametrize(
    "rule",
    [
        Rule(PROMPT, "POST", swallow=True),
        Rule(PROMPT, "POST", swallow=True, times=3),
        Rule(PROMPT, "POST", refuse=True),
        Rule(PROMPT, "POST", refuse=True, times=2),
        Rule(PROMPT, "POST", status=503),
        Rule(PROMPT, "POST", status=500, times=2),
    ],
    ids=["reply-lost", "reply-lost-thrice", "lost", "lost-twice", "503", "500-twice"],
)
async def test_a_prompt_without_an_answer_is_admitted_once(stage: Stage, rule: Rule) -> None:
    agent, proxy, session = await through_proxy(stage)
    used = proxy.add(replace(rule))
    result = await agent.prompt(session, "@@text 5@@")
    assert result["stopReason"] == "end_turn"
    # The event of its delivery may settle the doubt before the retries do.
    assert used.used == rule.times or (rule.swallow and used.used > 0)
    assert agent.transcript(session).text() == words(5)
    assert stage.backend.admissions[audit(result)["messageId"]] == 1
    front = await stage.front_end()
    assert len(await front.rows(session, "user")) == 1
    # A second idle row is what the server writes when a duplicate wakes it for nothing.
    assert len(await front.rows(session, "idle")) == 1


async def test_a_reply_that_is_lost_together_with_the_feed(stage: Stage) -> None:
    agent, proxy, session = await through_proxy(stage)
    proxy.add(Rule(PROMPT, "POST", swallow=True))
    proxy.cut_feed(after=1, containing="session.inbox.enqueued")
    result = await agent.prompt(session, "@@text 5 20@@")
    assert result["stopReason"] == "end_turn"
    assert agent.transcript(session).text() == words(5)
    assert stage.backend.admissions[audit(result)["messageId"]] == 1


async def test_a_refused_connection_is_proven_not_admitted(stage: Stage) -> None:
    agent, proxy, session = await through_proxy(stage)
    proxy.add(Rule(PROMPT, "POST", status=400))
    async with fails(-32603) as error:
        await agent.prompt(session, "@@text 5@@")
    assert (error().data["admitted"], error().data["retrySafe"]) == (False, True)
    assert (await agent.prompt(session, "@@text 3@@"))["stopReason"] == "end_turn"
    assert agent.transcript(session).text() == words(3)


async def test_the_answer_of_a_permission_is_lost(stage: Stage) -> None:
    agent, proxy, session = await through_proxy(stage)
    proxy.add(Rule(r"/reply$", "POST", swallow=True))
    result = await agent.prompt(session, f"@@{shell('echo hi')} || text 5@@")
    assert result["stopReason"] == "end_turn"
    assert statuses(agent.transcript(session)) == ["completed"]


async def test_a_permission_answer_that_never_arrived_is_sent_again(stage: Stage) -> None:
    agent, proxy, session = await through_proxy(stage, policy=choose("allow_once"))
    proxy.add(Rule(r"/reply$", "POST", refuse=True))
    result = await agent.prompt(session, f"@@{shell('echo hi')} || text 5@@")
    assert result["stopReason"] == "end_turn"
    assert statuses(agent.transcript(session)) == ["completed"]


# Cancel while the way is broken.


async def test_a_cancel_that_the_server_cannot_hear_is_made_up_for(stage: Stage) -> None:
    agent, proxy, session = await through_proxy(stage)
    front = await stage.front_end()
    async with prompting(agent, session, "@@text 1000 30@@") as prompt:
        await saw_text(agent, session, "w3 ")
        await proxy.refuse()
        began = time.monotonic()
        await agent.cancel(session)
        result = await prompt
    assert (result["stopReason"], audit(result)["cancel"]) == ("cancelled", "unconfirmed")
    assert time.monotonic() - began < 3
    assert "cancel_unconfirmed" in notices(agent.transcript(session))
    assert await front.is_active(session)
    await proxy.accept()
    await front.until_idle(session)
    before = agent.transcript(session).text()
    assert (await agent.prompt(session, "@@text 4@@"))["stopReason"] == "end_turn"
    assert agent.transcript(session).text() == before + words(4)


async def test_a_cancel_in_a_gap(stage: Stage) -> None:
    agent, proxy, session = await through_proxy(stage)
    async with prompting(agent, session, "@@text 300 30@@") as prompt:
        await saw_text(agent, session, "w3 ")
        proxy.cut_feed()
        await agent.cancel(session)
        result = await prompt
    assert result["stopReason"] == "cancelled"
    await (await stage.front_end()).until_idle(session)


# The server ends and comes back.


@pytest.mark.parametrize(
    "script",
    ["@@text 300 30@@", f"@@{shell('sleep 20')} || text 2@@", "@@wait 20000 && text 2@@"],
    ids=["text", "tool", "silence"],
)
async def test_a_turn_that_dies_with_the_server_is_unknown(own_stage: Stage, script: str) -> None:
    agent, front = await own_stage.agent(), await own_stage.front_end()
    session = await agent.new_session(own_stage.project())
    async with prompting(agent, session, script) as prompt:
        await until_delivered(front, session)
        await own_stage.backend.crash()
        async with fails(-32050) as error:
            await prompt
    assert error().data["admitted"] is True
    assert error().data["retrySafe"] is False
    before = agent.transcript(session).text()
    assert (await agent.prompt(session, "@@text 4@@"))["stopReason"] == "end_turn"
    assert agent.transcript(session).text() == before + words(4)


async def until_delivered(front: FrontEnd, session: str) -> None:
    async def delivered() -> bool:
        return bool(await front.rows(session, "user"))

    await until("the prompt is delivered", delivered)


async def test_a_queued_prompt_outlives_the_server(own_stage: Stage) -> None:
    first, second = await own_stage.agent(), await own_stage.agent()
    front = await own_stage.front_end()
    project = own_stage.project()
    session = await first.new_session(project)
    await second.resume(session, project)
    async with prompting(first, session, "@@text 300 30@@") as one:
        await saw_text(first, session, "w3 ")
        async with prompting(second, session, "@@text 6@@") as two:
            await front.until_inbox(session, 1)
            await own_stage.backend.crash()
            async with fails(-32050):
                await one
            assert (await two)["stopReason"] == "end_turn"
    assert second.transcript(session).text() == words(6)


async def test_a_turn_that_ended_while_nobody_listened_is_whole(own_stage: Stage) -> None:
    """The stub finishes the turn while it is down; the real one while it cannot be reached."""
    agent, proxy, session = await through_proxy(own_stage)
    front = await own_stage.front_end()
    async with prompting(agent, session, "@@text 40 20@@") as prompt:
        await saw_text(agent, session, "w3 ")
        if isinstance(own_stage.backend, StubBackend):
            await own_stage.backend.stub.restart("finished")
        else:
            await proxy.refuse()
            await front.until_idle(session)
            await proxy.accept()
        result = await prompt
    assert (result["stopReason"], audit(result)["gaps"]) == ("end_turn", 1)
    assert agent.transcript(session).text() == words(40)


# Asks that nobody waits for.


async def test_an_unattended_ask_is_rejected_after_its_time(stage: Stage) -> None:
    agent, front = await stage.agent(impatient=True), await stage.front_end()
    session = await agent.new_session(stage.project(ASKS))
    inner = rf"\u0040@wait 400 && {shell('echo hi')} || text 2@\u0040".replace('"', r"\"")
    call = (
        f'tool subagent {{"agent":"general","description":"d","prompt":"{inner}",'
        '"background":true}'
    )
    assert (await agent.prompt(session, f"@@{call} || text 2@@"))["stopReason"] == "end_turn"
    (child,) = await front.get("session", parentID=session)
    await front.until_ask(child["id"])

    async def went_on() -> bool:
        rows = await front.rows(child["id"], "assistant")
        return len(rows) == 2 and not await front.is_active(child["id"])

    await until("the child goes on", went_on)
    assert agent.transcript(session).asks == []
