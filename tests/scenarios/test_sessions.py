"""Opening and resuming sessions, choices, and the errors of both."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from stubs.proxy import Rule
from stubs.waiting import until
from tests.scenarios.stage import (
    Json,
    Stage,
    fails,
    prompting,
    saw_text,
    words,
)
from tests.support.checked import CheckedClient


def choices(answer: Json) -> dict[str, str]:
    """The current values by option."""
    return {option["id"]: option["currentValue"] for option in answer["configOptions"]}


async def test_a_new_session_shows_what_would_be_used(stage: Stage) -> None:
    agent = await stage.agent()
    session = await agent.new_session(stage.project())
    answer = agent.sessions[session]
    assert choices(answer) == {"model": "fake/fake-1", "effort": "default", "mode": "build"}
    modes = {mode["id"] for mode in answer["modes"]["availableModes"]}
    assert modes == {"build", "plan", "reviewer", "short"}
    models = [option for option in answer["configOptions"] if option["id"] == "model"]
    assert [value["value"] for value in models[0]["options"]] == ["fake/fake-1", "fake/fake-2"]


async def test_choices_hold_and_every_answer_lists_all(stage: Stage) -> None:
    agent = await stage.agent()
    session = await agent.new_session(stage.project())
    answer = await agent.set_config_option(session, "model", "fake/fake-2")
    assert choices(answer)["model"] == "fake/fake-2"
    answer = await agent.set_config_option(session, "effort", "high")
    assert choices(answer) == {"model": "fake/fake-2", "effort": "high", "mode": "build"}
    assert await agent.set_mode(session, "reviewer") == {}
    answer = await agent.set_config_option(session, "mode", "reviewer")
    assert choices(answer) == {"model": "fake/fake-2", "effort": "high", "mode": "reviewer"}
    front = await stage.front_end()
    kept = await front.get(f"session/{session}")
    assert (kept["agent"], kept["model"]["id"], kept["model"]["variant"]) == (
        "reviewer",
        "fake-2",
        "high",
    )
    await agent.prompt(session, "@@text 2@@")
    (row,) = await front.rows(session, "assistant")
    assert (row["agent"], row["model"]["id"]) == ("reviewer", "fake-2")
    assert agent.transcript(session).latest["usage_update"]["size"] == 200_000


@pytest.mark.parametrize(
    ("option", "value"),
    [("model", "fake/none"), ("effort", "huge"), ("mode", "nobody"), ("nothing", "x")],
)
async def test_unknown_choices_are_refused(stage: Stage, option: str, value: str) -> None:
    agent = await stage.agent()
    session = await agent.new_session(stage.project())
    async with fails(-32602):
        await agent.set_config_option(session, option, value)
    async with fails(-32602):
        await agent.set_mode(session, "nobody")
    assert (await agent.prompt(session, "@@text 1@@"))["stopReason"] == "end_turn"


async def replay_choices(agent: CheckedClient, session: str) -> Json:
    """What acpx does after each resume."""
    await agent.set_config_option(session, "model", "fake/fake-2")
    await agent.set_config_option(session, "effort", "high")
    await agent.set_config_option(session, "mode", "reviewer")
    return await agent.set_config_option(session, "timeout", "60")


async def test_resume_after_the_agent_was_killed_in_mid_turn(stage: Stage) -> None:
    first, front = await stage.agent(), await stage.front_end()
    project = stage.project()
    session = await first.new_session(project)
    wanted = {"model": "fake/fake-2", "effort": "high", "mode": "reviewer"}
    assert choices(await replay_choices(first, session)) == wanted
    async with prompting(first, session, "@@text 40 40@@"):
        await saw_text(first, session, "w3 ")
        await first.kill()
    rows = len(await front.rows(session, "model-switched"))
    second = await stage.agent()
    assert choices(await second.resume(session, project)) == wanted
    assert choices(await replay_choices(second, session)) == wanted
    assert len(await front.rows(session, "model-switched")) == rows
    assert second.transcript(session).texts == {}
    assert (await second.prompt(session, "@@text 5@@"))["stopReason"] == "end_turn"
    assert second.transcript(session).text() == words(5)
    answers = [row["content"][0]["text"] for row in await front.rows(session, "assistant")]
    assert answers == [words(40), words(5)]


async def test_an_unknown_session_is_not_found(stage: Stage) -> None:
    agent = await stage.agent()
    project = stage.project()
    for session in ("ses_000000000000nobodyhasthis", "nonsense"):
        async with fails(-32002) as error:
            await agent.resume(session, project)
        assert error().message.startswith("Session not found")


async def test_a_session_stays_in_its_directory(stage: Stage, tmp_path: Path) -> None:
    agent = await stage.agent()
    project = stage.project()
    session = await agent.new_session(project)
    async with fails(-32052) as error:
        await agent.resume(session, stage.project())
    assert str(project) in error().message
    alias = tmp_path / "alias"
    os.symlink(project, alias)
    await agent.resume(session, alias)
    assert (await agent.prompt(session, "@@text 1@@"))["stopReason"] == "end_turn"


async def test_a_directory_that_the_server_has_not_is_refused(stage: Stage, tmp_path: Path) -> None:
    agent, front = await stage.agent(), await stage.front_end()
    missing, file = tmp_path / "missing", tmp_path / "file"
    file.touch()
    for cwd in (missing, file):
        async with fails(-32602) as error:
            await agent.new_session(cwd)
        assert f"no directory {cwd}" in error().message
        assert (await front.get("session", directory=str(cwd))) == []
    await front.post("session", {"id": "ses_lost", "location": {"directory": str(missing)}})
    async with fails(-32603) as error:
        await agent.resume("ses_lost", missing)
    assert f"no directory {missing}" in error().message


async def test_one_prompt_of_a_connection_at_a_time(stage: Stage) -> None:
    agent = await stage.agent()
    session = await agent.new_session(stage.project())
    async with prompting(agent, session, "@@text 30 30@@") as first:
        await saw_text(agent, session, "w1 ")
        async with fails(-32051) as error:
            await agent.prompt(session, "@@text 3@@")
        assert error().data["admitted"] is False
        assert (await first)["stopReason"] == "end_turn"
    assert agent.transcript(session).text() == words(30)


async def test_two_sessions_of_one_connection_run_side_by_side(stage: Stage) -> None:
    agent = await stage.agent()
    project = stage.project()
    one, two = await agent.new_session(project), await agent.new_session(project)
    async with prompting(agent, one, "@@text 30 30@@") as slow:
        await saw_text(agent, one, "w1 ")
        await agent.prompt(two, "@@text 5@@")
        assert not slow.done()
        await slow
    assert agent.transcript(one).text() == words(30)
    assert agent.transcript(two).text() == words(5)


async def test_an_agent_that_does_not_exist_leaves_nothing_behind(stage: Stage) -> None:
    agent, front = await stage.agent(), await stage.front_end()
    session = await agent.new_session(stage.project())
    await front.post(f"session/{session}/agent", {"agent": "nobody"})
    async with fails(-32603) as error:
        await agent.prompt(session, "@@text 1@@")
    assert "nobody" in error().message
    assert error().data["retrySafe"] is True
    assert await front.inbox(session) == []
    await agent.set_mode(session, "build")
    assert (await agent.prompt(session, "@@text 4@@"))["stopReason"] == "end_turn"
    assert agent.transcript(session).text() == words(4)


async def test_a_wrong_password_is_an_authentication_error(stage: Stage) -> None:
    agent = await stage.agent(password="wrong")
    async with fails(-32000) as error:
        await agent.new_session(stage.project())
    assert "authentication required" in error().message


@pytest.mark.parametrize("method", ["session/resume", "session/load"])
async def test_a_prompt_before_an_opening_that_fails_is_answered(stage: Stage, method: str) -> None:
    """It is refused: of an opening that fails nothing may be left, no turn of it either."""
    first = await stage.agent()
    project = stage.project()
    session = await first.new_session(project)
    proxy = await stage.proxy()
    agent = await stage.agent(url=proxy.url)
    catalogue = proxy.add(Rule(r"/api/(agent|model)", "GET", times=None, delay=1.0, status=500))
    params = {"sessionId": session, "cwd": str(project), "mcpServers": []}
    opening = asyncio.create_task(agent.request(method, params))

    async def asked() -> bool:
        return catalogue.used > 0

    await until("the catalogue is asked for", asked)
    async with fails(-32603) as error:
        await agent.prompt(session, "@@text 2@@")
    assert error().data["code"] == "not_open"
    async with fails(-32603):
        await opening
    proxy.rules.clear()
    await agent.resume(session, project)
    assert (await agent.prompt(session, "@@text 2@@"))["stopReason"] == "end_turn"
