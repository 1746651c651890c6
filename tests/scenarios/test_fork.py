"""session/fork: a copy of a conversation, open as a session of its own."""

from __future__ import annotations

import pytest

from tests.scenarios.stage import Json, Stage, fails, prompting, saw_text, words
from tests.scenarios.test_sessions import choices
from tests.support.checked import CheckedClient


async def fork(agent: CheckedClient, session: str, cwd: object, **ours: object) -> Json:
    params = {"sessionId": session, "cwd": str(cwd), "mcpServers": []}
    return await agent.request("session/fork", params | {"_meta": {"opencode-acp": ours}})


async def test_a_fork_goes_on_by_itself(stage: Stage) -> None:
    agent, front = await stage.agent(), await stage.front_end()
    project = stage.project()
    session = await agent.new_session(project)
    await agent.set_config_option(session, "model", "fake/fake-2")
    await agent.set_mode(session, "reviewer")
    await agent.prompt(session, "@@text 2@@")
    answer = await fork(agent, session, project)
    copy = answer["sessionId"]
    assert copy != session
    assert choices(answer) == {"model": "fake/fake-2", "effort": "default", "mode": "reviewer"}
    await agent.prompt(copy, "@@text 3@@")
    assert (agent.transcript(session).text(), agent.transcript(copy).text()) == (words(2), words(3))
    assert len(await front.rows(session, "user")) == 1
    assert len(await front.rows(copy, "user")) == 2
    listed = await agent.request("session/list", {"cwd": str(project)})
    # A fork is no child.
    assert [one["sessionId"] for one in listed["sessions"]] == [copy, session]
    assert "parentSessionId" not in listed["sessions"][0]["_meta"]["opencode-acp"]


async def test_a_fork_before_a_message_leaves_the_rest_out(stage: Stage) -> None:
    agent, front = await stage.agent(), await stage.front_end()
    project = stage.project()
    session = await agent.new_session(project)
    for count in (1, 2):
        await agent.prompt(session, f"@@text {count}@@")
    second = (await front.rows(session, "user"))[-1]["id"]
    copy = (await fork(agent, session, project, before=second))["sessionId"]
    answers = [row["content"][0]["text"] for row in await front.rows(copy, "assistant")]
    assert answers == [words(1)]


async def test_a_running_session_can_be_forked(stage: Stage) -> None:
    agent = await stage.agent()
    project = stage.project()
    session = await agent.new_session(project)
    async with prompting(agent, session, "@@text 30 30@@") as prompt:
        await saw_text(agent, session, "w1 ")
        copy = (await fork(agent, session, project))["sessionId"]
        await agent.prompt(copy, "@@text 4@@")
        assert not prompt.done()
        assert (await prompt)["stopReason"] == "end_turn"
    assert (agent.transcript(session).text(), agent.transcript(copy).text()) == (
        words(30),
        words(4),
    )


async def test_what_cannot_be_forked_is_said(stage: Stage) -> None:
    agent = await stage.agent()
    project = stage.project()
    session = await agent.new_session(project)
    async with fails(-32602) as error:
        await fork(agent, session, project)
    assert "no messages" in error().message
    await agent.prompt(session, "@@text 1@@")
    strange: list[object] = ["msg_nobody", "nonsense", "", 7, {}]
    for before in strange:
        async with fails(-32602) as error:
            await fork(agent, session, project, before=before)
        assert error().message.startswith('_meta["opencode-acp"].before ')
    async with fails(-32052):
        await fork(agent, session, stage.project())
    async with fails(-32602):
        await fork(agent, session, "relative")
    listed = await agent.request("session/list", {"cwd": str(project)})
    assert [one["sessionId"] for one in listed["sessions"]] == [session]


@pytest.mark.parametrize("session", ["ses_000000000000nobodyhasthis", "nonsense"])
async def test_a_fork_of_nothing_is_not_found(stage: Stage, session: str) -> None:
    agent = await stage.agent()
    async with fails(-32002):
        await fork(agent, session, stage.project())
