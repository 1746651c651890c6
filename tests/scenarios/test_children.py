"""Sub-agents of a turn, their permissions, and questions to the user."""

from __future__ import annotations

import json

import pytest

from stubs.client import choose
from stubs.waiting import until
from tests.scenarios.questions import COLOR, accept, ask, saw_form, shows_forms
from tests.scenarios.stage import (
    ASKS,
    TEXT,
    THOUGHT,
    FrontEnd,
    Json,
    Stage,
    prompting,
    saw_ask,
    shell,
    statuses,
    unanswered,
    words,
)
from tests.support.checked import CheckedClient

WANTS_CHILDREN = {"_meta": {"opencode-acp": {"childUpdates": True}}}


def child(script: str, **more: object) -> str:
    """The action of a sub-agent with a script of its own, at any depth.

    Its marks are written as escapes: the script around it ends at the first mark.
    """
    given: Json = {"agent": "general", "description": "a child", "prompt": f"@@{script}@@"}
    given |= more
    return "tool subagent " + json.dumps(given).replace("@@", r"\u0040@")


def lines(agent: CheckedClient) -> list[list[str]]:
    """The lines of sub-agents, each time that they were told."""
    bare = {"sessionUpdate", "toolCallId", "content"}
    told = [update for update in updates_of(agent) if set(update) == bare]
    return [update["content"][0]["content"]["text"].splitlines() for update in told]


def updates_of(agent: CheckedClient) -> list[Json]:
    """Every update of a session, in order."""
    lines = [line.message for line in agent.updates]
    return [line["params"]["update"] for line in lines if line.get("method") == "session/update"]


def marked(agent: CheckedClient) -> list[tuple[Json, Json]]:
    """Every update with what its `_meta` says of ours."""
    found = [(one, (one.get("_meta") or {}).get("opencode-acp")) for one in updates_of(agent)]
    return [(one, meta) for one, meta in found if meta]


async def move_to_background(agent: CheckedClient, front: FrontEnd, session: str) -> None:
    """Ask for it until the call that blocks the turn is over: before it works nothing moves."""

    async def moved() -> bool:
        await front.post(f"session/{session}/background")
        return statuses(agent.transcript(session)) == ["completed"]

    await until("the call is over", moved)


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
    # It is heard of, and not found by the look at a turn that is silent for 15 s.
    result = await agent.prompt(session, f"@@{inner} || text 1@@", timeout=14)
    script = agent.transcript(session)
    assert result["stopReason"] == "end_turn"
    assert [ask["answer"] for ask in script.asks] == ["allow_once"]
    assert script.text() == words(1)


async def test_the_ask_of_a_child_says_which_child_asks(stage: Stage) -> None:
    agent = await stage.agent()
    session = await agent.new_session(stage.project(ASKS))
    await agent.prompt(session, f"@@{child(shell('echo hi') + ' || text 2')} || text 1@@")
    asked = await saw_ask(agent)
    assert asked["toolCall"]["title"] == "a child: echo hi"
    front = await stage.front_end()
    (kid,) = await front.get("session", parentID=session)
    (root_call,) = agent.transcript(session).tools
    of_kid = {"sessionId": kid["id"], "parentSessionId": session, "toolCallId": root_call}
    assert asked["_meta"] == {"opencode-acp": {"child": of_kid}}


async def test_the_form_of_a_child_says_which_child_asks(stage: Stage) -> None:
    agent = await shows_forms(stage, accept(q0="Red"))
    session = await agent.new_session(stage.project({"question": "allow"}))
    await agent.prompt(session, f"@@{child(ask(COLOR) + ' || text 2')} || text 1@@")
    told = (await saw_form(agent))["_meta"]["opencode-acp"]["child"]
    (root_call,) = agent.transcript(session).tools
    assert (told["parentSessionId"], told["toolCallId"]) == (session, root_call)


async def test_what_a_background_child_asked_is_refused_after_the_end_of_its_turn(
    stage: Stage,
) -> None:
    agent = await stage.agent(unanswered, impatient=True)
    front = await stage.front_end()
    session = await agent.new_session(stage.project(ASKS))
    inner = child(f"{shell('echo hi')} || text 2", background=True)
    async with prompting(agent, session, f"@@{inner} || wait 1500 && text 2@@") as prompt:
        await saw_ask(agent)
        assert not prompt.done()
        assert (await prompt)["stopReason"] == "end_turn"
    (kid,) = await front.get("session", parentID=session)
    await front.until_idle(kid["id"])
    (first, last) = await front.rows(kid["id"], "assistant")
    assert (first["content"][0]["state"]["status"], last["finish"]) == ("error", "stop")


async def test_the_tools_of_a_child_are_lines_of_its_call(stage: Stage) -> None:
    agent = await stage.agent()
    session = await agent.new_session(stage.project())
    inner = f"{shell('echo hi')} || {shell('echo ho')} || text 3"
    await agent.prompt(session, f"@@{child(inner)} || text 2@@")
    assert lines(agent) == [
        ["- shell: echo hi (running)"],
        ["- shell: echo hi (done)"],
        ["- shell: echo hi (done)", "- shell: echo ho (running)"],
        ["- shell: echo hi (done)", "- shell: echo ho (done)"],
    ]
    # Nothing else of the child, and the call ends with its own result.
    script = agent.transcript(session)
    (tool,) = script.tools.values()
    assert words(3).strip() in tool["content"][0]["content"]["text"]
    assert script.text() == words(2)


async def test_the_tools_of_a_grandchild_are_lines_of_the_call_of_the_root(stage: Stage) -> None:
    agent = await stage.agent()
    project = stage.project({"subagent": "allow"}, experimental={"subagent_depth": 2})
    session = await agent.new_session(project)
    inner = child(f"{child(shell('echo hi') + ' || text 2')} || text 3")
    await agent.prompt(session, f"@@{inner} || text 1@@")
    assert lines(agent)[-1] == ["- subagent: a child (done)", "  - shell: echo hi (done)"]
    assert next(iter(agent.transcript(session).tools.values()))["status"] == "completed"


async def test_a_client_that_wants_them_gets_the_updates_of_children(stage: Stage) -> None:
    agent = await stage.agent(capabilities=WANTS_CHILDREN)
    front = await stage.front_end()
    project = stage.project({"subagent": "allow"}, experimental={"subagent_depth": 2})
    session = await agent.new_session(project)
    inner = child(f"{child('think 2 && text 2')} || text 3")
    await agent.prompt(session, f"@@{inner} || text 1@@")
    (kid,) = await front.get("session", parentID=session)
    (grandkid,) = await front.get("session", parentID=kid["id"])
    told = [(u["sessionUpdate"], meta["child"]) for u, meta in marked(agent) if "child" in meta]
    root_call, kid_call = agent.transcript(session).tools
    of_kid = {"sessionId": kid["id"], "parentSessionId": session, "toolCallId": root_call}
    of_grandkid = {
        "sessionId": grandkid["id"],
        "parentSessionId": kid["id"],
        "toolCallId": kid_call,
    }
    assert {kind for kind, whose in told if whose == of_grandkid} == {TEXT, THOUGHT}
    assert {kind for kind, whose in told if whose == of_kid} == {
        "tool_call",
        "tool_call_update",
        TEXT,
    }
    assert len(told) == len([1 for _, whose in told if whose in (of_kid, of_grandkid)])
    texts = agent.transcript(session).texts.values()
    assert [text for text in texts if text.startswith("w")] == [words(2), words(3), words(1)]


async def test_the_answer_of_a_child_in_the_background_is_no_part_of_the_next_turn(
    stage: Stage,
) -> None:
    agent = await stage.agent(capabilities=WANTS_CHILDREN)
    front = await stage.front_end()
    session = await agent.new_session(stage.project())
    inner = child("text 4 100", background=True)
    result = await agent.prompt(session, f"@@{inner} || text 1@@")
    assert result["stopReason"] == "end_turn"
    async with prompting(agent, session, "@@text 9@@") as prompt:
        assert (await prompt)["stopReason"] == "end_turn"
    await front.until_rows(session, "synthetic", 1)
    await front.until_idle(session)
    assert (await agent.prompt(session, "@@text 6@@"))["stopReason"] == "end_turn"
    own = [text for text in agent.transcript(session).texts.values()]
    assert own == [words(1), words(9), words(6)]


@pytest.mark.parametrize("work", [shell("sleep 2; echo done"), child("text 4 400")])
async def test_work_that_is_moved_to_the_background_is_no_part_of_the_next_turn(
    stage: Stage, work: str
) -> None:
    agent, front = await stage.agent(), await stage.front_end()
    session = await agent.new_session(stage.project())
    async with prompting(agent, session, f"@@{work} || text 2@@") as prompt:
        await move_to_background(agent, front, session)
        assert (await prompt)["stopReason"] == "end_turn"
    assert (await agent.prompt(session, "@@text 7@@"))["stopReason"] == "end_turn"
    # One row says that it was moved, one that it is done.
    (_, told) = await front.until_rows(session, "synthetic", 2)
    assert told["metadata"]["state"] == "completed"
    await front.until_idle(session)
    assert (await agent.prompt(session, "@@text 9@@"))["stopReason"] == "end_turn"
    assert list(agent.transcript(session).texts.values()) == [words(2), words(7), words(9)]


async def test_a_child_in_the_background_that_asks_without_a_turn_is_refused_in_the_end(
    stage: Stage,
) -> None:
    """Rule 16: nobody of ours is asked; other front ends have their time; then it goes on."""
    agent, front = await stage.agent(impatient=True), await stage.front_end()
    session = await agent.new_session(stage.project(ASKS))
    inner = child(f"wait 500 && {shell('echo hi')} || text 2", background=True)
    await agent.prompt(session, f"@@{inner} || text 1@@")
    (kid,) = await front.get("session", parentID=session)
    await front.until_ask(kid["id"])
    await front.until_rows(session, "synthetic", 1)
    await front.until_idle(session)
    script = agent.transcript(session)
    assert script.asks == []
    assert script.text() == words(1)
    (answer,) = [row for row in await front.rows(kid["id"], "assistant") if row["finish"] == "stop"]
    assert answer["content"][0]["text"] == words(2)


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
