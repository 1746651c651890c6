"""Prompts that begin with `/name`: commands of the project, its skills, and everything else."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from stubs.proxy import Proxy, Rule
from stubs.waiting import until
from tests.scenarios.stage import (
    ASKS,
    FrontEnd,
    Stage,
    audit,
    fails,
    prompting,
    saw_text,
    words,
)

COMMANDS: Final[dict[str, Any]] = {
    "say": {"template": "say $ARGUMENTS", "description": "Says it"},
    "two": {"template": "first $1 then $2 @@text 3@@"},
    "plain": {"template": "without a place"},
    "agent": {"template": "as another $ARGUMENTS", "agent": "reviewer"},
    "broken": {"template": "never", "agent": "nobody"},
    "slow": {"template": "after !`sleep 30` this"},
    "helper": {"template": "$ARGUMENTS", "subtask": True},
}
SKILL: Final = "---\nname: greet\ndescription: Greets\n---\nSay hello.\n"
LONG: Final = "@@text 400 25@@"


def project(stage: Stage, **permission: str) -> Path:
    """A project with commands and a skill."""
    made = stage.project(permission, command=COMMANDS)
    skill = made / ".opencode" / "skill" / "greet"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text(SKILL, encoding="utf-8")
    return made


async def texts(front: FrontEnd, session: str) -> list[str]:
    return [row["text"] for row in await front.rows(session, "user")]


async def children(front: FrontEnd, session: str) -> list[str]:
    return [child["id"] for child in await front.get("session", parentID=session)]


async def until_child(front: FrontEnd, session: str) -> str:
    async def made() -> str | None:
        return next(iter(await children(front, session)), None)

    return await until("a child was made", made)


@pytest.mark.parametrize(
    ("prompt", "stored", "answer"),
    [
        ("/say @@text 5@@", "say @@text 5@@", words(5)),
        ('/two one "and two" more', "first one then and two more @@text 3@@", words(3)),
        ("/plain @@text 2@@", "without a place\n\n@@text 2@@", words(2)),
    ],
)
async def test_a_command_is_expanded_and_answered(
    stage: Stage, prompt: str, stored: str, answer: str
) -> None:
    agent, front = await stage.agent(), await stage.front_end()
    session = await agent.new_session(project(stage))
    result = await agent.prompt(session, prompt)
    assert result["stopReason"] == "end_turn"
    assert agent.transcript(session).text() == answer
    assert await texts(front, session) == [stored]
    (row,) = await front.rows(session, "user")
    assert audit(result)["messageId"] == row["id"]
    assert stage.backend.admissions[row["id"]] == 1


@pytest.mark.parametrize("text", ["/unknown x @@text 2@@", " /say @@text 2@@", "/ @@text 2@@"])
async def test_anything_else_is_plain_text(stage: Stage, text: str) -> None:
    agent, front = await stage.agent(), await stage.front_end()
    session = await agent.new_session(project(stage))
    assert (await agent.prompt(session, text))["stopReason"] == "end_turn"
    assert await texts(front, session) == [text]


async def test_a_skill_goes_along_with_the_prompt(stage: Stage) -> None:
    agent, front = await stage.agent(), await stage.front_end()
    session = await agent.new_session(project(stage))
    result = await agent.prompt(session, "/greet @@text 4@@")
    (row,) = await front.rows(session, "user")
    assert (row["id"], row["text"]) == (audit(result)["messageId"], "@@text 4@@")
    assert [skill["id"] for skill in row["skills"]] == ["greet"]
    assert agent.transcript(session).text() == words(4)


async def test_files_go_along_with_a_command(stage: Stage) -> None:
    agent, front = await stage.agent(), await stage.front_end()
    session = await agent.new_session(project(stage))
    await agent.prompt(
        session,
        [
            {"type": "text", "text": "/say @@text 1@@"},
            {"type": "resource", "resource": {"uri": "file:///notes.txt", "text": "hello"}},
        ],
    )
    (row,) = await front.rows(session, "user")
    assert [file["name"] for file in row["files"]] == ["notes.txt"]


async def test_a_command_whose_definition_is_broken_was_not_taken(stage: Stage) -> None:
    agent, front = await stage.agent(), await stage.front_end()
    session = await agent.new_session(project(stage))
    async with fails(-32603) as error:
        await agent.prompt(session, "/broken")
    assert error().data["admitted"] is False
    assert "nobody" in str(error())
    assert await texts(front, session) == []


async def test_an_agent_that_a_command_chooses_is_told(stage: Stage) -> None:
    agent = await stage.agent()
    session = await agent.new_session(project(stage))
    await agent.prompt(session, "/agent @@text 2@@")
    await agent.wait_for(
        lambda: (
            agent.transcript(session).latest.get("current_mode_update", {}).get("currentModeId")
            == "reviewer"
        )
    )


async def test_a_command_waits_behind_a_running_turn(stage: Stage) -> None:
    first, second = await stage.agent(), await stage.agent()
    front = await stage.front_end()
    made = project(stage)
    session = await first.new_session(made)
    await second.resume(session, made)
    async with prompting(first, session, "@@text 40 25@@") as one:
        await saw_text(first, session, "w1 ")
        async with prompting(second, session, "/say @@text 3@@") as two:
            await front.until_inbox(session, 1)
            assert (await one)["stopReason"] == "end_turn"
            result = await two
    assert not audit(result)["shared"]
    assert second.transcript(session).text() == words(3)
    assert first.transcript(session).text() == words(40)


async def test_a_command_that_waits_can_be_cancelled(stage: Stage) -> None:
    first, second = await stage.agent(), await stage.agent()
    front = await stage.front_end()
    made = project(stage)
    session = await first.new_session(made)
    await second.resume(session, made)
    async with prompting(first, session, LONG) as one:
        await saw_text(first, session, "w1 ")
        async with prompting(second, session, "/say @@text 3@@") as two:
            await front.until_inbox(session, 1)
            await second.cancel(session)
            result = await two
        assert (result["stopReason"], audit(result)["cancel"]) == ("cancelled", "confirmed")
        assert await front.inbox(session) == []
        assert await front.is_active(session)
        await first.cancel(session)
        await one


async def test_a_command_that_runs_can_be_cancelled(stage: Stage) -> None:
    agent, front = await stage.agent(), await stage.front_end()
    session = await agent.new_session(project(stage))
    async with prompting(agent, session, f"/say {LONG}") as prompt:
        await saw_text(agent, session, "w1 ")
        await agent.cancel(session)
        result = await prompt
    assert (result["stopReason"], audit(result)["cancel"]) == ("cancelled", "confirmed")
    await front.until_idle(session)


async def test_a_cancel_ends_a_template_that_is_still_expanded(stage: Stage) -> None:
    proxy, front = await stage.proxy(), await stage.front_end()
    agent = await stage.agent(url=proxy.url)
    session = await agent.new_session(project(stage))
    async with prompting(agent, session, "/slow") as prompt:
        await until("it is sent", lambda: _posted(proxy, session))
        await agent.cancel(session)
        assert (await prompt)["stopReason"] == "cancelled"
    assert (await agent.prompt(session, "@@text 2@@"))["stopReason"] == "end_turn"
    assert await texts(front, session) == ["@@text 2@@"]


async def test_a_lost_answer_is_looked_up_and_the_command_runs_once(stage: Stage) -> None:
    proxy, front = await stage.proxy(), await stage.front_end()
    agent = await stage.agent(url=proxy.url)
    session = await agent.new_session(project(stage))
    rule = proxy.add(Rule(r"/command$", "POST", swallow=True))
    result = await agent.prompt(session, "/say @@text 5 50@@")
    assert rule.used == 1
    assert result["stopReason"] == "end_turn"
    assert agent.transcript(session).text() == words(5)
    assert len(await texts(front, session)) == 1


async def test_a_lost_answer_without_events_is_looked_up_too(stage: Stage) -> None:
    proxy, front = await stage.proxy(), await stage.front_end()
    agent = await stage.agent(url=proxy.url)
    session = await agent.new_session(project(stage))
    proxy.add(Rule(r"/command$", "POST", swallow=True))
    cut = proxy.cut_feed(after=1, containing="session.inbox.enqueued")
    proxy.add(Rule(r"/api/event$", "GET", delay=1.0))
    result = await agent.prompt(session, "/say @@text 5 100@@")
    assert cut.done.is_set()
    assert result["stopReason"] == "end_turn"
    assert agent.transcript(session).text() == words(5)
    assert len(await texts(front, session)) == 1


async def test_a_command_that_never_arrived_was_not_taken(stage: Stage) -> None:
    proxy, front = await stage.proxy(), await stage.front_end()
    agent = await stage.agent(url=proxy.url)
    session = await agent.new_session(project(stage))
    rule = proxy.add(Rule(r"/command$", "POST", refuse=True))
    async with fails(-32603) as error:
        await agent.prompt(session, "/say @@text 5@@")
    assert (rule.used, error().data["admitted"]) == (1, False)
    assert await texts(front, session) == []


@pytest.mark.parametrize("event", ["inbox.enqueued", "inbox.delivered", "step.started"])
async def test_a_gap_in_a_command_changes_nothing(stage: Stage, event: str) -> None:
    proxy = await stage.proxy()
    agent = await stage.agent(url=proxy.url)
    session = await agent.new_session(project(stage))
    cut = proxy.cut_feed(after=1, containing=f"session.{event}")
    result = await agent.prompt(session, "/say @@text 8 50@@")
    assert cut.done.is_set()
    assert (result["stopReason"], audit(result)["gaps"]) == ("end_turn", 1)
    assert agent.transcript(session).text() == words(8)


async def _posted(proxy: Proxy, session: str) -> bool:
    return f"POST /api/session/{session}/command" in proxy.requests


# A command that a sub-agent carries out


async def test_the_turn_of_a_helper_is_the_answer_about_it(stage: Stage) -> None:
    agent, front = await stage.agent(), await stage.front_end()
    session = await agent.new_session(project(stage))
    result = await agent.prompt(session, "/helper @@text 6@@")
    assert result["stopReason"] == "end_turn"
    assert agent.transcript(session).text() == "ok "
    (row,) = await front.rows(session, "synthetic")
    assert audit(result)["messageId"] == row["id"]


async def test_a_helper_asks_the_client_whose_command_it_carries_out(stage: Stage) -> None:
    agent = await stage.agent()
    session = await agent.new_session(project(stage, **ASKS))
    call = '@@tool shell {"command":"echo hi"} || text 1@@'
    result = await agent.prompt(session, f"/helper {call}")
    assert result["stopReason"] == "end_turn"
    assert [ask["answer"] for ask in agent.transcript(session).asks] == ["allow_once"]


async def test_a_cancel_stops_the_helper_and_what_would_be_said_about_it(stage: Stage) -> None:
    agent, front = await stage.agent(), await stage.front_end()
    session = await agent.new_session(project(stage))
    async with prompting(agent, session, f"/helper {LONG}") as prompt:
        child = await until_child(front, session)
        await until("the helper works", lambda: front.is_active(child))
        await agent.cancel(session)
        result = await prompt
    # A server that is quicker than the second stop has said its word about the helper.
    assert result["stopReason"] in ("cancelled", "end_turn")
    await front.until_idle(child)
    await front.until_idle(session)
    helped = await front.rows(child, "assistant")
    assert [row for row in helped if row.get("finish") == "stop"] == []
    assert (await agent.prompt(session, "@@text 3@@"))["stopReason"] == "end_turn"
    assert agent.transcript(session).text().endswith(words(3))


@pytest.mark.parametrize("later", [1, 4])
async def test_a_gap_while_a_helper_works_changes_nothing(stage: Stage, later: int) -> None:
    proxy = await stage.proxy()
    agent = await stage.agent(url=proxy.url)
    session = await agent.new_session(project(stage))
    cut = proxy.cut_feed(after=later, containing="session.")
    result = await agent.prompt(session, "/helper @@text 20 50@@")
    assert cut.done.is_set()
    assert result["stopReason"] == "end_turn"
    assert agent.transcript(session).text() == "ok "


async def test_a_client_that_leaves_stops_its_command_and_its_helper(stage: Stage) -> None:
    front = await stage.front_end()
    for text in (f"/say {LONG}", f"/helper {LONG}"):
        agent = await stage.agent()
        session = await agent.new_session(project(stage))
        async with prompting(agent, session, text):

            async def works(session: str = session) -> bool:
                at_work = [session, *await children(front, session)]
                return any([await front.is_active(one) for one in at_work])

            await until("it works", works)
            assert await agent.hang_up() == 0
        helpers = await children(front, session)
        for one in [session, *helpers]:
            await front.until_idle(one)
        # Behind a helper that was stopped the server may say a last word, if it is slower than a
        # client that left is waited for.
        answers = [
            row for one in helpers or [session] for row in await front.rows(one, "assistant")
        ]
        assert all(row.get("finish") != "stop" for row in answers)
