"""Questions to the user: shown to a client that shows forms, and never the end of a turn."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

import httpx
import pytest

from stubs.client import choose
from stubs.client.client import FormPolicy, Policy
from stubs.proxy import Rule
from stubs.real_server import Permission
from stubs.waiting import until
from tests.scenarios.stage import (
    ASKS,
    FrontEnd,
    Json,
    Stage,
    notices,
    prompting,
    saw_ask,
    saw_notice,
    saw_text,
    shell,
    statuses,
    unanswered,
    words,
)
from tests.scenarios.test_children import child
from tests.support.checked import CheckedClient

FORMS: Final[Json] = {"elicitation": {"form": {}}}
COLOR: Final = {
    "question": "Which color?",
    "header": "Color",
    "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "b"}],
}
SIZES: Final = {**COLOR, "question": "Which sizes?", "header": "Sizes", "multiple": True}
SECRET: Final = {"question": "What is the password?", "header": "Login", "options": []}
# A field of every kind, as a front end or an MCP server may ask for it.
KINDS: Final[list[Json]] = [
    {"key": "name", "type": "string", "title": "Name", "minLength": 2, "required": True},
    {"key": "mail", "type": "string", "format": "email"},
    {"key": "one", "type": "string", "options": [{"value": "r", "label": "Red"}]},
    {"key": "count", "type": "integer", "minimum": 1, "maximum": 5},
    {"key": "ratio", "type": "number"},
    {"key": "ok", "type": "boolean", "default": False},
    {"key": "many", "type": "multiselect", "options": [{"value": "x", "label": "X"}]},
    {"key": "why", "type": "string", "when": [{"key": "ok", "op": "eq", "value": True}]},
]


def ask(*questions: Json) -> str:
    """The action of the question tool."""
    return "tool question " + json.dumps({"questions": questions})


def accept(**content: Any) -> FormPolicy:
    """A user who fills in that, whatever is asked."""

    async def policy(_: Json) -> Json:
        return {"action": "accept", "content": content}

    return policy


async def no_answer(_: Json) -> Json:
    """A user who does not answer."""
    await asyncio.Event().wait()
    return {}


async def shows_forms(
    stage: Stage, fills_in: FormPolicy, policy: Policy | None = None, **more: Any
) -> CheckedClient:
    """A client that shows forms."""
    agent = await stage.agent(policy, capabilities=FORMS, **more)
    agent.form_policy = fills_in
    return agent


async def saw_form(agent: CheckedClient, count: int = 1) -> Json:
    """Wait until so many forms were shown; the params of the newest."""

    def shown() -> list[Json]:
        return [
            line.message["params"]
            for line in agent.updates
            if line.message.get("method") == "elicitation/create"
        ]

    await agent.wait_for(lambda: len(shown()) >= count)
    return shown()[-1]


def told(agent: CheckedClient, session: str) -> str:
    """What the only tool told the model."""
    (tool,) = agent.transcript(session).tools.values()
    return str(tool["rawOutput"]["output"])


def fates(agent: CheckedClient, session: str) -> list[str]:
    return [form["answer"] for form in agent.transcript(session).forms]


async def open_form(front: FrontEnd, session: str) -> Json:
    """The form that waits."""

    async def there() -> Json | None:
        forms: list[Json] = await front.get(f"session/{session}/form")
        return forms[0] if forms else None

    return await until("a form waits", there)


# --- answered by the client -----------------------------------------------------------------


async def test_a_question_is_shown_and_its_answer_reaches_the_model(stage: Stage) -> None:
    agent = await shows_forms(stage, accept(q0="Blue", q1=["Red"], q1_other="XL", zz=1))
    session = await agent.new_session(stage.project())
    result = await agent.prompt(session, f"@@{ask(COLOR, SIZES)} || text 2@@")
    script = agent.transcript(session)
    assert (result["stopReason"], script.text()) == ("end_turn", words(2))
    assert '"Which color?"="Blue", "Which sizes?"="Red, XL"' in told(agent, session)
    shown = await saw_form(agent)
    (tool,) = script.tools
    assert (shown["sessionId"], shown["toolCallId"]) == (session, tool)
    assert list(shown["requestedSchema"]["properties"]) == ["q0", "q0_other", "q1", "q1_other"]
    assert (fates(agent, session), notices(script)) == (["accept"], [])


@pytest.mark.parametrize(
    "result",
    [{"action": "decline"}, {"action": "cancel"}, {"action": "accept"}, {"action": "_new"}, {},
     {"action": "accept", "content": {"q0": ["Red"], "q0_other": 3}}],
    ids=json.dumps,
)  # fmt: skip
async def test_anything_but_an_answer_lets_the_turn_go_on(stage: Stage, result: Json) -> None:
    async def policy(_: Json) -> Json:
        return result

    agent = await shows_forms(stage, policy)
    session = await agent.new_session(stage.project())
    assert (await agent.prompt(session, f"@@{ask(COLOR)} || text 2@@"))["stopReason"] == "end_turn"
    assert '"Which color?"="Unanswered"' in told(agent, session)
    assert statuses(agent.transcript(session)) == ["completed"]


async def test_every_kind_of_field_is_shown_and_answered(stage: Stage) -> None:
    answer = {
        "name": "Joe", "mail": "j@b.co", "one": "r", "count": 3, "ratio": 1.5, "ok": True,
        "many": ["x"], "why": "so",
    }  # fmt: skip
    agent, front = await shows_forms(stage, accept(**answer)), await stage.front_end()
    session = await agent.new_session(stage.project())
    async with prompting(agent, session, "@@text 200 20@@"):
        await saw_text(agent, session, "w1 ")
        made = await front.http.post(
            f"/api/session/{session}/form", json={"title": "All kinds", "fields": KINDS}
        )
        form_id = made.raise_for_status().json()["data"]["id"]
        shown = await saw_form(agent)
        assert set(shown["requestedSchema"]["properties"]) == set(answer)
        assert shown["requestedSchema"]["required"] == ["name"]

        async def answered() -> Json | None:
            state: Json = (await front.get(f"session/{session}/form/{form_id}"))["state"]
            return state if state["status"] != "pending" else None

        state = await until("the form is answered", answered)
        assert state == {"status": "answered", "answer": answer}
        await agent.cancel(session)


async def test_an_answer_that_the_server_refuses_is_given_up(stage: Stage) -> None:
    agent, front = await shows_forms(stage, accept(mail="nobody")), await stage.front_end()
    session = await agent.new_session(stage.project())
    async with prompting(agent, session, "@@text 200 20@@"):
        await saw_text(agent, session, "w1 ")
        fields = [KINDS[1], {"key": "name", "type": "string"}]
        await front.post(f"session/{session}/form", {"title": "Mail", "fields": fields})
        await saw_notice(agent, session, "form")

        async def over() -> bool:
            return not await front.get(f"session/{session}/form")

        await until("the form is settled", over)
        await agent.cancel(session)


async def test_the_form_of_a_child_is_shown_under_the_root(stage: Stage) -> None:
    agent = await shows_forms(stage, accept(q0="Red"))
    # The server lets no child ask, unless its rules say so.
    session = await agent.new_session(stage.project({"question": "allow"}))
    result = await agent.prompt(session, f"@@{child(f'{ask(COLOR)} || text 2')} || text 1@@")
    assert (result["stopReason"], agent.transcript(session).text()) == ("end_turn", words(1))
    shown = await saw_form(agent)
    assert shown["sessionId"] == session
    assert "toolCallId" not in shown
    assert shown["message"] == "Sub-agent a child: Which color?"


async def test_a_form_of_somebody_elses_turn_is_not_shown(stage: Stage) -> None:
    owner, other = await shows_forms(stage, no_answer), await shows_forms(stage, no_answer)
    project = stage.project()
    session = await owner.new_session(project)
    await other.resume(session, project)
    async with prompting(owner, session, f"@@{ask(COLOR)} || text 2@@"):
        await saw_form(owner)
        async with prompting(other, session, "@@text 1@@"):
            await saw_notice(other, session, "waiting")
            owner.form_policy = accept()
            await owner.cancel(session)
    assert fates(other, session) == []


# --- not shown ------------------------------------------------------------------------------


async def test_a_client_that_shows_no_forms_is_told_of_the_question(stage: Stage) -> None:
    agent = await stage.agent()
    session = await agent.new_session(stage.project())
    result = await agent.prompt(session, f"@@{ask(COLOR)} || text 2@@")
    script = agent.transcript(session)
    assert (result["stopReason"], script.text()) == ("end_turn", words(2))
    assert (statuses(script), notices(script)) == (["completed"], ["form"])


async def test_a_credential_is_never_asked_for(stage: Stage) -> None:
    agent = await shows_forms(stage, accept(q0="hunter2", q1="hunter2"))
    session = await agent.new_session(stage.project())
    result = await agent.prompt(session, f"@@{ask(COLOR, SECRET)} || text 2@@")
    script = agent.transcript(session)
    assert (result["stopReason"], notices(script)) == ("end_turn", ["form"])
    assert fates(agent, session) == []
    assert '"What is the password?"="Unanswered"' in told(agent, session)


@pytest.mark.parametrize("forms", [True, False])
async def test_a_form_that_cannot_stay_unanswered_fails_its_tool_and_not_the_turn(
    stage: Stage, forms: bool
) -> None:
    """Nobody chose a provider of web searches yet, so the tool asks for one."""
    agent = await stage.agent(capabilities=FORMS if forms else None)
    session = await agent.new_session(stage.project())
    result = await agent.prompt(session, '@@tool websearch {"query":"x"} || text 2@@')
    script = agent.transcript(session)
    assert (result["stopReason"], script.text()) == ("end_turn", words(2))
    assert (statuses(script), fates(agent, session)) == (["failed"], ["decline"] * forms)


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
