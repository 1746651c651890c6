"""Requests of the adapter that fail while the feed lives: each is made good for."""

from __future__ import annotations

import asyncio
import signal

import pytest

from stubs.client import choose
from stubs.proxy import Rule
from stubs.waiting import until
from tests.scenarios.stage import (
    ASKS,
    Stage,
    audit,
    notices,
    prompting,
    saw_ask,
    saw_text,
    shell,
    statuses,
    words,
)

LONG = "@@text 400 50@@"
REPLY = r"/permission/.*/reply$"
INTERRUPT = r"/interrupt$"


@pytest.mark.parametrize(
    ("choice", "status"), [("allow_once", "completed"), ("reject_once", "failed")]
)
async def test_an_answer_to_an_ask_is_sent_until_it_arrives(
    stage: Stage, choice: str, status: str
) -> None:
    proxy = await stage.proxy()
    agent = await stage.agent(policy=choose(choice), url=proxy.url)
    session = await agent.new_session(stage.project(ASKS))
    # More failures than one request's own attempts.
    rule = proxy.add(Rule(REPLY, "POST", times=9, status=503))
    result = await agent.prompt(session, f"@@{shell('echo hi')} || text 5@@")
    assert rule.used == 9
    assert result["stopReason"] == "end_turn"
    transcript = agent.transcript(session)
    assert (transcript.text(), statuses(transcript)) == (words(5), [status])
    assert len(transcript.asks) == 1


async def test_an_interrupt_that_failed_is_sent_again_and_said_so(stage: Stage) -> None:
    proxy, front = await stage.proxy(), await stage.front_end()
    agent = await stage.agent(url=proxy.url)
    session = await agent.new_session(stage.project())
    rule = proxy.add(Rule(INTERRUPT, "POST", times=1, status=503))
    async with prompting(agent, session, LONG) as prompt:
        await saw_text(agent, session, "w1 ")
        await agent.cancel(session)
        result = await prompt
    assert (result["stopReason"], audit(result)["cancel"]) == ("cancelled", "unconfirmed")
    assert "cancel_unconfirmed" in notices(agent.transcript(session))
    await front.until_idle(session)
    assert rule.used == 1
    assert (await agent.prompt(session, "@@text 3@@"))["stopReason"] == "end_turn"


async def test_a_session_that_is_closed_in_an_outage_is_stopped_when_it_is_over(
    stage: Stage,
) -> None:
    proxy, front = await stage.proxy(), await stage.front_end()
    agent = await stage.agent(url=proxy.url)
    session = await agent.new_session(stage.project())
    async with prompting(agent, session, LONG) as prompt:
        await saw_text(agent, session, "w1 ")
        await proxy.refuse()
        await agent.close_session(session)
        assert audit(await prompt)["cancel"] == "unconfirmed"
    assert await front.is_active(session)
    await proxy.accept()
    await front.until_idle(session)


async def test_reads_that_fail_hold_up_no_text(stage: Stage) -> None:
    proxy = await stage.proxy()
    first = await stage.agent()
    second = await stage.agent(url=proxy.url)
    project = stage.project()
    session = await first.new_session(project)
    await second.resume(session, project)
    proxy.add(Rule(r"/api/(form|permission/request)$", "GET", times=None, status=500))
    async with prompting(first, session, "@@text 60 50@@") as running:
        await saw_text(first, session, "w1 ")
        result = await second.prompt(session, "@@text 7@@")
        assert (await running)["stopReason"] == "end_turn"
    assert result["stopReason"] == "end_turn"
    assert second.transcript(session).text() == words(7)


async def test_choices_that_are_set_at_once_are_both_set(stage: Stage) -> None:
    agent = await stage.agent()
    session = await agent.new_session(stage.project())
    _, last = await asyncio.gather(
        agent.set_config_option(session, "model", "fake/fake-2"),
        agent.set_config_option(session, "effort", "high"),
    )
    chosen = {option["id"]: option["currentValue"] for option in last["configOptions"]}
    assert (chosen["model"], chosen["effort"]) == ("fake/fake-2", "high")
    front = await stage.front_end()
    told = (await front.get(f"session/{session}"))["model"]
    assert (told["id"], told["variant"]) == ("fake-2", "high")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_a_signal_stops_the_turn_as_a_client_that_leaves_does(
    stage: Stage, number: signal.Signals
) -> None:
    agent, front = await stage.agent(), await stage.front_end()
    session = await agent.new_session(stage.project())
    async with prompting(agent, session, LONG):
        await saw_text(agent, session, "w1 ")
        agent.process.send_signal(number)
        assert await asyncio.wait_for(agent.process.wait(), 5) == 0
    await front.until_idle(session)


async def test_a_post_on_its_way_at_the_end_is_withdrawn_although_a_signal_follows(
    stage: Stage,
) -> None:
    proxy, front = await stage.proxy(), await stage.front_end()
    agent = await stage.agent(url=proxy.url)
    session = await agent.new_session(stage.project())
    rule = proxy.add(Rule(r"/prompt$", "POST", delay=0.5))
    async with prompting(agent, session, LONG):

        async def on_its_way() -> bool:
            return rule.used == 1

        await until("the prompt is on its way", on_its_way)
        assert agent.process.stdin is not None
        agent.process.stdin.close()
        await asyncio.sleep(0.1)  # as acpx does
        agent.process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(agent.process.wait(), 5) == 0
    await front.until_idle(session)
    assert await front.inbox(session) == []


async def test_an_idle_adapter_answers_no_ask_of_somebody_elses_turn(stage: Stage) -> None:
    owner = await stage.agent(policy=_slow)
    idle = await stage.agent(impatient=True)
    project = stage.project(ASKS)
    session = await owner.new_session(project)
    await idle.resume(session, project)
    result = await owner.prompt(session, f"@@{shell('echo hi')} || text 5@@")
    assert result["stopReason"] == "end_turn"
    assert statuses(owner.transcript(session)) == ["completed"]
    await saw_ask(owner)


async def _slow(_: object) -> str | None:
    """A user who thinks for longer than an ask without an owner is left."""
    await asyncio.sleep(2.5)
    return "allow_once"


async def test_a_client_that_leaves_before_the_delivery_was_heard_stops_its_turn(
    stage: Stage,
) -> None:
    proxy, front = await stage.proxy(), await stage.front_end()
    agent = await stage.agent(url=proxy.url)
    session = await agent.new_session(stage.project())
    proxy.hold()
    async with prompting(agent, session, LONG):

        async def delivered() -> bool:
            return bool(await front.rows(session, "user"))

        await until("the prompt is delivered", delivered)
        assert await agent.hang_up() == 0
    await front.until_idle(session)


async def test_a_client_that_leaves_in_a_gap_stops_nobody_elses_turn(stage: Stage) -> None:
    proxy, front = await stage.proxy(), await stage.front_end()
    agent = await stage.agent(url=proxy.url)
    session = await agent.new_session(stage.project())
    async with prompting(agent, session, "@@text 10 50@@"):
        await saw_text(agent, session, "w1 ")
        proxy.add(Rule(r"/api/event$", "GET", times=None, refuse=True))
        cut = proxy.cut_feed()
        await cut.done.wait()
        await front.post(f"session/{session}/prompt", {"text": "@@text 60 50@@"})

        async def taken_over() -> bool:
            return len(await front.rows(session, "user")) == 2

        await until("the other prompt runs", taken_over)
        await front.until_answered(session, 1)
        assert await agent.hang_up() == 0
    await front.until_idle(session)
    (_, other) = await front.rows(session, "assistant")
    assert (other["finish"], other["content"][0]["text"]) == ("stop", words(60))
