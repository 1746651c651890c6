"""Several front ends on one session: each gets its own, and is told when another interferes."""

from __future__ import annotations

from pathlib import Path

from stubs.waiting import until
from tests.scenarios.stage import (
    FrontEnd,
    Stage,
    audit,
    fails,
    notices,
    prompting,
    saw_notice,
    saw_text,
    saw_tool,
    shell,
    statuses,
    unanswered,
    words,
)
from tests.support.checked import CheckedClient


async def pair(stage: Stage, project: Path) -> tuple[CheckedClient, CheckedClient, str]:
    """Two adapter processes with the same session open."""
    first, second = await stage.agent(), await stage.agent()
    session = await first.new_session(project)
    await second.resume(session, project)
    return first, second, session


async def test_each_client_sees_its_own_turn(stage: Stage) -> None:
    first, second, session = await pair(stage, stage.project())
    front = await stage.front_end()
    async with prompting(first, session, "@@text 30 25 && length@@") as one:
        await saw_text(first, session, "w1 ")
        async with prompting(second, session, "@@think 2 && text 9@@") as two:
            await front.until_inbox(session, 1)
            one_result, two_result = await one, await two
    assert one_result["stopReason"] == "max_tokens"
    assert two_result["stopReason"] == "end_turn"
    assert first.transcript(session).text() == words(30)
    assert second.transcript(session).text() == words(9)
    assert not audit(one_result)["shared"] and not audit(two_result)["shared"]
    for result in (one_result, two_result):
        assert stage.backend.admissions[audit(result)["messageId"]] == 1


async def test_a_waiting_prompt_says_for_what(stage: Stage) -> None:
    first, second, session = await pair(stage, stage.project())
    async with prompting(first, session, "@@text 130 25@@") as one:
        await saw_text(first, session, "w1 ")
        async with prompting(second, session, "@@text 3@@") as two:
            await saw_notice(second, session, "waiting")
            await one, await two
    assert second.transcript(session).text() == words(3)
    assert notices(second.transcript(session)).count("waiting") == 1


async def test_a_prompt_that_a_cancel_parked_is_woken(stage: Stage) -> None:
    first, second, session = await pair(stage, stage.project())
    front = await stage.front_end()
    async with prompting(first, session, "@@text 300 30@@") as one:
        await saw_text(first, session, "w1 ")
        async with prompting(second, session, "@@text 6@@") as two:
            await front.until_inbox(session, 1)
            await first.cancel(session)
            assert (await one)["stopReason"] == "cancelled"
            result = await two
    assert result["stopReason"] == "end_turn"
    assert second.transcript(session).text() == words(6)
    assert stage.backend.admissions[audit(result)["messageId"]] == 1
    assert await front.inbox(session) == []


async def test_the_asks_of_a_turn_go_to_its_own_client(stage: Stage) -> None:
    first, second, session = await pair(stage, stage.project({"shell": "ask"}))
    await first.prompt(session, f"@@{shell('echo hi')} || text 1@@")
    assert len(first.transcript(session).asks) == 1
    assert second.transcript(session).asks == []
    assert second.transcript(session).tools == {}


async def test_an_ask_that_another_front_end_answers_is_withdrawn(stage: Stage) -> None:
    agent, front = await stage.agent(unanswered), await stage.front_end()
    session = await agent.new_session(stage.project({"shell": "ask"}))
    async with prompting(agent, session, f"@@{shell('echo hi')} || text 2@@") as prompt:
        ask = await front.until_ask(session)
        asked = "session/request_permission"
        await agent.wait_for(lambda: asked in [one.message.get("method") for one in agent.updates])
        reply = f"session/{session}/permission/{ask['id']}/reply"
        await front.post(reply, {"decision": "once"})
        assert (await prompt)["stopReason"] == "end_turn"
    script = agent.transcript(session)
    assert [ask["answer"] for ask in script.asks] == ["withdrawn"]
    assert (statuses(script), script.text()) == (["completed"], words(2))


async def test_a_foreign_steer_in_mid_turn_shares_the_answer(stage: Stage) -> None:
    agent, front = await stage.agent(), await stage.front_end()
    session = await agent.new_session(stage.project())
    async with prompting(agent, session, f"@@{shell('sleep 1')} || text 4@@") as prompt:
        await saw_tool(agent, session, "in_progress")
        await front.post(f"session/{session}/prompt", {"text": "and be quick"})
        result = await prompt
    assert result["stopReason"] == "end_turn"
    assert audit(result)["shared"] is True
    assert agent.transcript(session).text() == words(4)


async def test_a_foreign_turn_is_not_shown_as_ours(stage: Stage) -> None:
    agent, front = await stage.agent(), await stage.front_end()
    session = await agent.new_session(stage.project())
    await agent.prompt(session, "@@text 2@@")
    await front.post(f"session/{session}/prompt", {"text": "@@text 30 20@@"})
    result = await agent.prompt(session, "@@text 5@@")
    assert result["stopReason"] == "end_turn"
    assert agent.transcript(session).text() == words(2) + words(5)


async def test_a_failing_foreign_turn_ahead_changes_nothing(stage: Stage) -> None:
    agent, front = await stage.agent(), await stage.front_end()
    session = await agent.new_session(stage.project())
    await front.post(
        f"session/{session}/prompt", {"text": "@@error 400 always@@", "delivery": "queue"}
    )
    result = await agent.prompt(session, "please @@text 5@@")
    assert result["stopReason"] == "end_turn"
    assert agent.transcript(session).text() == words(5)


async def test_a_foreign_interrupt_is_told(stage: Stage) -> None:
    agent, front = await stage.agent(), await stage.front_end()
    session = await agent.new_session(stage.project())
    async with fails(-32055) as error, prompting(agent, session, "@@text 300 30@@") as prompt:
        await saw_text(agent, session, "w1 ")
        await front.post(f"session/{session}/interrupt")
        await prompt
    assert error().data["retrySafe"] is False
    (row,) = await front.rows(session, "assistant")
    assert agent.transcript(session).text() == row["content"][0]["text"]
    assert (await agent.prompt(session, "@@text 1@@"))["stopReason"] == "end_turn"


async def test_a_deleted_session_settles_the_running_and_the_queued(stage: Stage) -> None:
    first, second, session = await pair(stage, stage.project())
    front = await stage.front_end()
    async with prompting(first, session, "@@text 300 30@@") as one:
        await saw_text(first, session, "w1 ")
        async with prompting(second, session, "@@text 6@@") as two:
            await front.until_inbox(session, 1)
            await front.delete(f"session/{session}")
            for prompt in (one, two):
                async with fails(-32055):
                    await prompt
    async with fails(-32002) as error:
        await first.prompt(session, "@@text 1@@")
    assert error().message.startswith("Session not found")


async def withdraw(front: FrontEnd, session: str) -> None:
    (item,) = await front.until_inbox(session, 1)
    await front.delete(f"session/{session}/inbox/{item}")


async def test_a_withdrawn_prompt_is_told(stage: Stage) -> None:
    first, second, session = await pair(stage, stage.project())
    front = await stage.front_end()
    async with prompting(first, session, "@@text 40 25@@") as one:
        await saw_text(first, session, "w1 ")
        async with fails(-32055), prompting(second, session, "@@text 6@@") as two:
            await withdraw(front, session)
            await two
        assert (await one)["stopReason"] == "end_turn"
    assert first.transcript(session).text() == words(40)
    assert (await second.prompt(session, "@@text 3@@"))["stopReason"] == "end_turn"
    assert second.transcript(session).text() == words(3)


async def test_what_nobody_prompted_is_not_attributed(stage: Stage) -> None:
    """A background child wakes its parent when it is done; the next turn is another one."""
    agent, front = await stage.agent(), await stage.front_end()
    session = await agent.new_session(stage.project())
    child = r"\u0040@wait 600 && text 3@\u0040"
    call = (
        f'tool subagent {{"agent":"general","description":"d","prompt":"{child}",'
        '"background":true}'
    )
    assert (await agent.prompt(session, f"@@{call} || text 2@@"))["stopReason"] == "end_turn"
    assert agent.transcript(session).text() == words(2)

    async def woke() -> bool:
        rows = await front.rows(session, "assistant")
        return len(rows) == 3 and not await front.is_active(session)

    await until("the parent ran by itself", woke)
    assert agent.transcript(session).text() == words(2)
    assert (await agent.prompt(session, "@@text 5@@"))["stopReason"] == "end_turn"
    assert agent.transcript(session).text() == words(2) + words(5)
