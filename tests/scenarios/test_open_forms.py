"""Forms that are open: settled by others, cancelled, beside permissions, in a gap, nobody's."""

from __future__ import annotations

import asyncio
import json

import httpx
import pytest

from stubs.client import choose
from stubs.proxy import Rule
from stubs.real_server import Permission
from stubs.waiting import until
from tests.scenarios.questions import (
    COLOR,
    accept,
    ask,
    fates,
    no_answer,
    open_form,
    saw_form,
    shows_forms,
    told,
)
from tests.scenarios.stage import (
    ASKS,
    Json,
    Stage,
    prompting,
    saw_ask,
    shell,
    statuses,
    unanswered,
)
from tests.scenarios.test_children import child
from tests.support.checked import CheckedClient

# --- withdrawn ------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["answer", "dismissal"])
async def test_a_form_that_another_front_end_settles_is_withdrawn(stage: Stage, how: str) -> None:
    agent, front = await shows_forms(stage, no_answer), await stage.front_end()
    session = await agent.new_session(stage.project())
    async with prompting(agent, session, f"@@{ask(COLOR)} || text 2@@") as prompt:
        await saw_form(agent)
        path = f"session/{session}/form/{(await open_form(front, session))['id']}"
        if how == "answer":
            await front.post(f"{path}/reply", {"answer": {"q0": "Red"}})
            assert (await prompt)["stopReason"] == "end_turn"
        else:
            await front.delete(path)
            await agent.wait_for(lambda: fates(agent, session) == ["withdrawn"])
            await asyncio.wait([prompt])
    assert fates(agent, session) == ["withdrawn"]


async def test_a_cancel_withdraws_the_form_and_ends_the_turn(stage: Stage) -> None:
    agent, front = await shows_forms(stage, no_answer), await stage.front_end()
    session = await agent.new_session(stage.project())
    async with prompting(agent, session, f"@@{ask(COLOR)} || text 2@@") as prompt:
        await saw_form(agent)
        await agent.notify("session/cancel", {"sessionId": session})
        result = await prompt
    assert result["stopReason"] == "cancelled"
    assert result["_meta"]["opencode-acp"]["cancel"] == "confirmed"
    assert fates(agent, session) == ["withdrawn"]
    await front.until_idle(session)
    assert await front.get(f"session/{session}/form") == []
    assert (await agent.prompt(session, "@@text 4@@"))["stopReason"] == "end_turn"


@pytest.mark.parametrize("beside", [ask(COLOR), shell("sleep 30"), child(shell("sleep 30"))])
async def test_a_cancel_ends_what_stands_beside_an_ask(stage: Stage, beside: str) -> None:
    """A rejection alone would wait for it, and the server with it."""
    rules: Permission = {"shell": {"*": "ask", "sleep 30": "allow"}, "edit": "ask"}
    agent = await shows_forms(stage, no_answer, unanswered)
    front = await stage.front_end()
    session = await agent.new_session(stage.project(rules))
    async with prompting(agent, session, f"@@{beside} && {shell('echo hi')} || text 2@@") as prompt:
        await saw_ask(agent)
        await agent.wait_for(
            lambda: statuses(agent.transcript(session)) == ["in_progress", "in_progress"]
        )
        await agent.cancel(session)
        result = await prompt
    assert result["_meta"]["opencode-acp"]["cancel"] == "confirmed"
    await front.until_idle(session)


async def test_a_close_withdraws_the_form(stage: Stage) -> None:
    agent, front = await shows_forms(stage, no_answer), await stage.front_end()
    session = await agent.new_session(stage.project())
    async with prompting(agent, session, f"@@{ask(COLOR)} || text 2@@") as prompt:
        await saw_form(agent)
        await agent.close_session(session)
        await asyncio.wait([prompt])
    assert fates(agent, session) == ["withdrawn"]
    await front.until_idle(session)


# --- beside permissions ---------------------------------------------------------------------


async def test_a_rejection_leaves_an_open_form_to_its_user(stage: Stage) -> None:
    agent = await shows_forms(stage, no_answer, choose("reject_once"))
    front = await stage.front_end()
    session = await agent.new_session(stage.project(ASKS))
    script = f"@@{ask(COLOR)} && {shell('echo hi')} || text 2@@"
    async with prompting(agent, session, script) as prompt:
        await agent.wait_for(lambda: "failed" in statuses(agent.transcript(session)))
        path = f"session/{session}/form/{(await open_form(front, session))['id']}"
        assert fates(agent, session) == []
        await front.post(f"{path}/reply", {"answer": {"q0": "Red"}})
        assert (await prompt)["stopReason"] == "end_turn"
    assert statuses(agent.transcript(session)) == ["completed", "failed"]


# --- faults ---------------------------------------------------------------------------------


async def test_a_form_is_not_asked_twice_after_a_gap(stage: Stage) -> None:
    proxy = await stage.proxy()
    gate = asyncio.Event()

    async def policy(_: Json) -> Json:
        await gate.wait()
        return {"action": "accept", "content": {"q0": "Red"}}

    agent = await shows_forms(stage, policy, url=proxy.url)
    session = await agent.new_session(stage.project())
    async with prompting(agent, session, f"@@{ask(COLOR)} || text 2@@") as prompt:
        await saw_form(agent)
        reads = Rule(r"/api/form$", "GET", times=None)
        proxy.add(reads)
        proxy.cut_feed(clean=False)

        async def read() -> bool:
            return reads.used > 0

        await until("the forms are read", read)
        gate.set()
        result = await prompt
    assert (result["stopReason"], result["_meta"]["opencode-acp"]["gaps"]) == ("end_turn", 1)
    assert '"Which color?"="Red"' in told(agent, session)
    assert fates(agent, session) == ["accept"]


@pytest.mark.parametrize("fault", ["refuse", "swallow"])
async def test_an_answer_that_is_lost_is_sent_again(stage: Stage, fault: str) -> None:
    proxy = await stage.proxy()
    lost = Rule(r"/form/\w+/reply$", "POST", times=4)
    setattr(lost, fault, True)
    proxy.add(lost)
    agent = await shows_forms(stage, accept(q0="Red"), impatient=True, url=proxy.url)
    session = await agent.new_session(stage.project())
    result = await agent.prompt(session, f"@@{ask(COLOR)} || text 2@@")
    assert (result["stopReason"], lost.used > 0) == ("end_turn", True)
    assert '"Which color?"="Red"' in told(agent, session)


async def test_a_question_that_nobody_waits_for_is_left_unanswered_after_its_time(
    stage: Stage,
) -> None:
    agent = await shows_forms(stage, accept(q0="Red"), impatient=True)
    front = await stage.front_end()
    session = await agent.new_session(stage.project({"question": "allow"}))
    given = {
        "agent": "general",
        "description": "d",
        "prompt": f"@@wait 400 && {ask(COLOR)} || text 2@@",
        "background": True,
    }
    call = "tool subagent " + json.dumps(given).replace("@@", r"\u0040@")
    assert (await agent.prompt(session, f"@@{call} || text 2@@"))["stopReason"] == "end_turn"
    (kid,) = await front.get("session", parentID=session)

    async def went_on() -> bool:
        rows = await front.rows(kid["id"], "assistant")
        return len(rows) == 2 and not await front.is_active(kid["id"])

    await until("the child goes on", went_on)
    assert fates(agent, session) == []


async def test_a_prompt_behind_an_open_question_is_told_what_it_waits_for(stage: Stage) -> None:
    agent, front = await shows_forms(stage, accept()), await stage.front_end()
    session = await agent.new_session(stage.project())
    await front.post(f"session/{session}/prompt", {"text": f"@@{ask(COLOR)} || text 1@@"})
    form = await open_form(front, session)
    async with prompting(agent, session, "@@text 2@@") as prompt:
        await saw_waiting(agent, session, "a question")
        path = f"session/{session}/form/{form['id']}/reply"
        with pytest.raises(httpx.HTTPStatusError):
            await front.post(path, {"answer": {"q9": "x"}})
        await front.post(path, {"answer": {"q0": "Red"}})
        assert (await prompt)["stopReason"] == "end_turn"
    assert fates(agent, session) == []


async def saw_waiting(agent: CheckedClient, session: str, what: str) -> None:
    def waits() -> bool:
        return any(
            what in notice["_meta"]["opencode-acp"]["text"]
            for notice in agent.transcript(session).notices
        )

    await agent.wait_for(waits)
