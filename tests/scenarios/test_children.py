"""Sub-agents of a turn, their permissions, and questions to the user."""

from __future__ import annotations

import json

import pytest

from stubs.client import choose
from tests.scenarios.stage import (
    ASKS,
    Stage,
    prompting,
    saw_ask,
    shell,
    statuses,
    unanswered,
    words,
)


def child(script: str) -> str:
    """The action of a sub-agent with a script of its own, at any depth.

    Its marks are written as escapes: the script around it ends at the first mark.
    """
    given = {"agent": "general", "description": "a child", "prompt": f"@@{script}@@"}
    return "tool subagent " + json.dumps(given).replace("@@", r"\u0040@")


async def test_a_child_reports_to_its_parent(stage: Stage) -> None:
    agent = await stage.agent()
    session = await agent.new_session(stage.project())
    await agent.prompt(session, f"@@{child('text 3')} || text 2@@")
    script = agent.transcript(session)
    assert (statuses(script), script.text()) == (["completed"], words(2))
    (tool,) = script.tools.values()
    assert words(3).strip() in tool["rawOutput"]["output"]


@pytest.mark.parametrize("answer", ["allow_once", "reject_once"])
async def test_the_permission_of_a_child_is_asked_under_the_root(stage: Stage, answer: str) -> None:
    agent = await stage.agent(choose(answer))
    session = await agent.new_session(stage.project(ASKS))
    inner = f"{shell('echo hi')} || text 2"
    result = await agent.prompt(session, f"@@{child(inner)} || text 1@@")
    script = agent.transcript(session)
    assert result["stopReason"] == "end_turn"
    assert [ask["answer"] for ask in script.asks] == [answer]
    assert (await saw_ask(agent))["sessionId"] == session
    assert (statuses(script), script.text()) == (["completed"], words(1))


async def test_the_permission_of_a_grandchild_too(stage: Stage) -> None:
    agent = await stage.agent()
    # Without these the server lets no child have children.
    rules = {**ASKS, "subagent": "allow"}
    project = stage.project(rules, experimental={"subagent_depth": 2})
    session = await agent.new_session(project)
    inner = child(f"{child(shell('echo hi') + ' || text 2')} || text 3")
    result = await agent.prompt(session, f"@@{inner} || text 1@@")
    script = agent.transcript(session)
    assert result["stopReason"] == "end_turn"
    assert [ask["answer"] for ask in script.asks] == ["allow_once"]
    assert script.text() == words(1)


async def test_a_cancel_reaches_the_child(stage: Stage) -> None:
    agent, front = await stage.agent(unanswered), await stage.front_end()
    session = await agent.new_session(stage.project(ASKS))
    async with prompting(agent, session, f"@@{child(shell('echo hi'))} || text 1@@") as prompt:
        await saw_ask(agent)
        await agent.cancel(session)
        assert (await prompt)["stopReason"] == "cancelled"
    children = await front.get("session", parentID=session)
    for one in [session, *(found["id"] for found in children)]:
        await front.until_idle(one)
    assert (await agent.prompt(session, "@@text 4@@"))["stopReason"] == "end_turn"
    assert agent.transcript(session).text() == words(4)


async def test_a_question_does_not_hang_the_turn(stage: Stage) -> None:
    agent = await stage.agent()
    session = await agent.new_session(stage.project())
    question = {
        "question": "Which color?",
        "header": "Color",
        "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "b"}],
    }
    call = "tool question " + json.dumps({"questions": [question]})
    result = await agent.prompt(session, f"@@{call} || text 2@@")
    script = agent.transcript(session)
    assert result["stopReason"] == "end_turn"
    assert (statuses(script), script.text()) == (["completed"], words(2))
