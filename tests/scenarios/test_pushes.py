"""What changes beside a turn and is told: choices, modes, commands and titles."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.scenarios.stage import FrontEnd, Stage, prompting, saw_text
from tests.support.checked import CheckedClient

Json = dict[str, Any]


def pushes(agent: CheckedClient, session: str, kind: str) -> list[Json]:
    """The updates of one kind, in order."""
    return [
        line.message["params"]["update"]
        for line in agent.updates
        if line.message.get("method") == "session/update"
        and line.message["params"]["sessionId"] == session
        and line.message["params"]["update"]["sessionUpdate"] == kind
    ]


def current(update: Json) -> dict[str, str]:
    return {option["id"]: option["currentValue"] for option in update["configOptions"]}


async def pushed(agent: CheckedClient, session: str, kind: str, number: int = 1) -> Json:
    """The update of that kind and number, once it has come."""
    await agent.wait_for(lambda: len(pushes(agent, session, kind)) >= number)
    return pushes(agent, session, kind)[number - 1]


def names(update: Json) -> list[str]:
    return [command["name"] for command in update["availableCommands"]]


async def test_commands_are_told_after_each_opening(stage: Stage) -> None:
    project = stage.project(command={"greet": {"template": "Hi", "description": "Says hi"}})
    agent = await stage.agent()
    session = await agent.new_session(project)
    told = await pushed(agent, session, "available_commands_update")
    assert {"compact", "init", "review", "greet"} <= set(names(told))
    (greet,) = [one for one in told["availableCommands"] if one["name"] == "greet"]
    assert greet == {"name": "greet", "description": "Says hi", "input": {"hint": "arguments"}}
    other = await stage.agent()
    await other.resume(session, project)
    assert await pushed(other, session, "available_commands_update") == told
    await other.load(session, project)
    await pushed(other, session, "available_commands_update", 2)


async def test_a_choice_of_another_front_end_is_told(stage: Stage) -> None:
    project = stage.project()
    agent, front = await stage.agent(), await stage.front_end()
    session = await agent.new_session(project)
    await front.post(f"session/{session}/agent", {"agent": "plan"})
    assert (await pushed(agent, session, "current_mode_update"))["currentModeId"] == "plan"
    assert current(await pushed(agent, session, "config_option_update"))["mode"] == "plan"
    model = {"id": "fake-2", "providerID": "fake", "variant": "high"}
    await front.post(f"session/{session}/model", {"model": model})
    told = current(await pushed(agent, session, "config_option_update", 2))
    assert told == {"model": "fake/fake-2", "effort": "high", "mode": "plan"}
    # The turn that follows is made with what was told.
    await agent.prompt(session, "@@text 1@@")
    rows = await front.rows(session, "assistant")
    assert {(row["agent"], row["model"]["id"]) for row in rows} == {("plan", "fake-2")}


async def test_ones_own_choice_is_told_to_the_others(stage: Stage) -> None:
    project = stage.project()
    one, other = await stage.agent(), await stage.agent()
    session = await one.new_session(project)
    await other.resume(session, project)
    answer = await one.set_config_option(session, "model", "fake/fake-2")
    assert current(answer)["model"] == "fake/fake-2"
    told = await pushed(other, session, "config_option_update")
    assert current(told)["model"] == "fake/fake-2"
    await one.set_mode(session, "plan")
    assert (await pushed(other, session, "current_mode_update"))["currentModeId"] == "plan"
    # Whoever sets a mode has no list in the answer; whoever sets an option has one.
    assert current(await pushed(one, session, "config_option_update"))["mode"] == "plan"
    assert len(pushes(one, session, "config_option_update")) == 1


async def test_modes_and_options_stay_in_step(stage: Stage) -> None:
    project = stage.project()
    agent = await stage.agent()
    session = await agent.new_session(project)
    await agent.set_config_option(session, "mode", "plan")
    assert (await pushed(agent, session, "current_mode_update"))["currentModeId"] == "plan"
    # The same choice again says nothing, to the server or to the client.
    await agent.set_config_option(session, "mode", "plan")
    await agent.set_mode(session, "plan")
    await agent.set_mode(session, "build")
    await pushed(agent, session, "config_option_update")
    assert len(pushes(agent, session, "current_mode_update")) == 1
    assert len(pushes(agent, session, "config_option_update")) == 1


async def rename(front: FrontEnd, session: str, title: str) -> None:
    answer = await front.http.patch(f"/api/session/{session}", json={"title": title})
    answer.raise_for_status()


def change(project: Path, **more: Any) -> None:
    """Edit the project's configuration."""
    file = project / "opencode.json"
    config = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps(config | more), encoding="utf-8")


async def test_a_reload_of_the_configuration_is_told(stage: Stage) -> None:
    project = stage.project()
    agent = await stage.agent()
    session = await agent.new_session(project)
    await pushed(agent, session, "available_commands_update")
    async with prompting(agent, session, "@@text 40 20@@") as running:
        await saw_text(agent, session, "w5 ")
        change(
            project,
            agent={"poet": {"mode": "primary", "description": "Rhymes", "prompt": "Rhyme."}},
            command={"sing": {"template": "Sing $ARGUMENTS"}},
        )
        await agent.wait_for(
            lambda: any(
                "poet" in json.dumps(update)
                for update in pushes(agent, session, "config_option_update")
            )
        )
        await agent.wait_for(
            lambda: any(
                "sing" in names(update)
                for update in pushes(agent, session, "available_commands_update")
            )
        )
        assert (await running)["stopReason"] == "end_turn"
    # What is new can be chosen.
    answer = await agent.set_config_option(session, "mode", "poet")
    assert current(answer)["mode"] == "poet"


async def test_a_command_that_is_added_is_told(stage: Stage) -> None:
    project = stage.project()
    folder = project / ".opencode" / "command"
    folder.mkdir(parents=True)
    (folder / "first.md").write_text("---\ndescription: One\n---\nDo one\n", encoding="utf-8")
    agent = await stage.agent()
    session = await agent.new_session(project)
    await agent.wait_for(
        lambda: any(
            "first" in names(update)
            for update in pushes(agent, session, "available_commands_update")
        )
    )
    (folder / "second.md").write_text("---\ndescription: Two\n---\nDo two\n", encoding="utf-8")
    await agent.wait_for(
        lambda: "second" in names(pushes(agent, session, "available_commands_update")[-1])
    )


async def test_a_title_is_told_when_there_is_one(stage: Stage) -> None:
    project = stage.project()
    agent, front = await stage.agent(), await stage.front_end()
    session = await agent.new_session(project)
    await agent.prompt(session, "@@text 1@@")

    def titles() -> list[str]:
        told = pushes(agent, session, "session_info_update")
        return [update["title"] for update in told if "title" in update]

    await agent.wait_for(lambda: bool(titles()))
    before = titles()
    # The same title again is no change.
    for title in ("By hand", "By hand", "Last"):
        await rename(front, session, title)
    await agent.wait_for(lambda: titles() == [*before, "By hand", "Last"])


@pytest.mark.parametrize(
    ("option", "value"),
    [("model", "fake/none"), ("effort", "none"), ("mode", "none"), ("other", "x"), ("mode", "")],
)
async def test_an_unknown_choice_is_refused_and_nothing_changes(
    stage: Stage, option: str, value: str
) -> None:
    agent = await stage.agent()
    session = await agent.new_session(stage.project())
    with pytest.raises(Exception, match="-32602"):
        await agent.set_config_option(session, option, value)
    assert pushes(agent, session, "config_option_update") == []


async def test_what_a_gap_hid_is_told_after_it(stage: Stage) -> None:
    proxy, front = await stage.proxy(), await stage.front_end()
    agent = await stage.agent(url=proxy.url)
    session = await agent.new_session(stage.project())
    await agent.prompt(session, "@@text 1@@")
    await proxy.refuse()
    await front.post(f"session/{session}/agent", {"agent": "plan"})
    await rename(front, session, "Meanwhile")
    await proxy.accept()
    assert (await pushed(agent, session, "current_mode_update"))["currentModeId"] == "plan"

    def titles() -> list[Any]:
        return [u.get("title") for u in pushes(agent, session, "session_info_update")]

    await agent.wait_for(lambda: titles()[-1] == "Meanwhile")
