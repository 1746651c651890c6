"""The notice after a resume: what became of the session's last prompt of ours."""

from __future__ import annotations

import pytest

from tests.scenarios.stage import FrontEnd, Json, Stage, fails, prompting, saw_notice, saw_text
from tests.support.checked import CheckedClient


def told(agent: CheckedClient, session: str) -> list[Json]:
    """What the notices of this kind say."""
    kept = [notice["_meta"]["opencode-acp"] for notice in agent.transcript(session).notices]
    return [notice for notice in kept if notice.get("notice") == "resumed"]


async def resumed(stage: Stage, session: str, cwd: object) -> Json:
    """The notice that a new process gets."""
    agent = await stage.agent()
    await agent.resume(session, str(cwd))
    await saw_notice(agent, session, "resumed")
    (notice,) = told(agent, session)
    return notice


async def newest(front: FrontEnd, session: str) -> str:
    return str((await front.rows(session, "user"))[-1]["id"])


@pytest.mark.parametrize(
    ("script", "stop"),
    [("text 2", "end_turn"), ("text 2 && length", "max_tokens"), ("text 2 && filter", "refusal")],
)
async def test_a_finished_prompt(stage: Stage, script: str, stop: str) -> None:
    agent, front = await stage.agent(), await stage.front_end()
    project = stage.project()
    session = await agent.new_session(project)
    await agent.prompt(session, f"@@{script}@@")
    notice = await resumed(stage, session, project)
    expected = (await newest(front, session), "finished", stop)
    assert (notice["messageId"], notice["state"], notice["stopReason"]) == expected


async def test_a_running_prompt_of_another_client(stage: Stage) -> None:
    agent = await stage.agent()
    project = stage.project()
    session = await agent.new_session(project)
    async with prompting(agent, session, "@@text 300 30@@") as prompt:
        await saw_text(agent, session, "w1 ")
        notice = await resumed(stage, session, project)
        assert notice["state"] == "running"
        # On the connection whose prompt it is, there is nothing to tell.
        await agent.resume(session, project)
        await agent.cancel(session)
        assert (await prompt)["stopReason"] == "cancelled"
    assert told(agent, session) == []


async def test_a_prompt_that_waits_for_another(stage: Stage) -> None:
    first, second, front = await stage.agent(), await stage.agent(), await stage.front_end()
    project = stage.project()
    session = await first.new_session(project)
    await second.resume(session, project)
    async with prompting(first, session, "@@text 300 30@@") as one:
        await saw_text(first, session, "w1 ")
        async with prompting(second, session, "@@text 2@@") as two:
            (item,) = await front.until_inbox(session, 1)
            notice = await resumed(stage, session, project)
            assert (notice["state"], notice["messageId"]) == ("waiting", item)
            await second.cancel(session)
            await two
        await first.cancel(session)
        await one


async def test_a_prompt_that_was_stopped(stage: Stage) -> None:
    agent = await stage.agent()
    project = stage.project()
    session = await agent.new_session(project)
    async with prompting(agent, session, "@@text 300 30@@") as prompt:
        await saw_text(agent, session, "w1 ")
        await agent.cancel(session)
        await prompt
    notice = await resumed(stage, session, project)
    assert notice["state"] == "stopped"


async def test_a_prompt_that_failed(stage: Stage) -> None:
    agent = await stage.agent()
    project = stage.project()
    session = await agent.new_session(project)
    async with fails(-32603):
        await agent.prompt(session, "@@error 400 always@@")
    notice = await resumed(stage, session, project)
    assert notice["state"] == "failed"
    assert notice["text"].startswith("The last prompt of this session failed: ")


async def test_a_prompt_that_waits_while_nothing_runs_goes_with_the_next(stage: Stage) -> None:
    agent, front = await stage.agent(), await stage.front_end()
    project = stage.project()
    session = await agent.new_session(project)
    parked = f"msg_acp_parked{session[-20:]}"
    body = {"id": parked, "text": "@@text 2@@", "delivery": "queue", "resume": False}
    await front.post(f"session/{session}/prompt", body)
    second = await stage.agent()
    await second.resume(session, project)
    await saw_notice(second, session, "resumed")
    (notice,) = told(second, session)
    assert (notice["state"], notice["messageId"]) == ("parked", parked)
    # A resume executes nothing.
    assert not await front.is_active(session)
    await second.prompt(session, "@@text 3@@")
    rows = await front.rows(session, "user")
    assert rows[0]["id"] == parked


async def test_without_a_prompt_of_ours_nothing_is_said(stage: Stage) -> None:
    agent, front = await stage.agent(), await stage.front_end()
    project = stage.project()
    session = await agent.new_session(project)
    await front.post(f"session/{session}/prompt", {"text": "@@text 1@@"})
    await front.until_answered(session, 1)
    second = await stage.agent()
    await second.resume(session, project)
    await second.prompt(session, "@@text 1@@")
    assert told(second, session) == []


async def test_a_prompt_that_died_with_the_server_is_lost(own_stage: Stage) -> None:
    agent = await own_stage.agent()
    project = own_stage.project()
    session = await agent.new_session(project)
    async with prompting(agent, session, "@@text 300 30@@"):
        await saw_text(agent, session, "w1 ")
        await own_stage.backend.crash()
        await agent.kill()
    notice = await resumed(own_stage, session, project)
    assert notice["state"] == "lost"


async def test_after_a_load_only_what_is_not_finished_is_told(stage: Stage) -> None:
    first, second, third = [await stage.agent() for _ in range(3)]
    project = stage.project()
    session = await first.new_session(project)
    async with prompting(first, session, "@@text 300 30@@") as prompt:
        await saw_text(first, session, "w1 ")
        await second.load(session, project)
        await saw_notice(second, session, "resumed")
        await first.cancel(session)
        await prompt
    assert [notice["state"] for notice in told(second, session)] == ["running"]
    await first.prompt(session, "@@text 1@@")
    await third.load(session, project)
    await third.prompt(session, "@@text 1@@")
    assert told(third, session) == []
