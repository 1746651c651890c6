"""Questions to the user: shown to a client that shows forms, and never the end of a turn."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

import pytest

from stubs.waiting import until
from tests.scenarios.questions import (
    COLOR,
    FORMS,
    accept,
    ask,
    fates,
    no_answer,
    saw_form,
    shows_forms,
    told,
)
from tests.scenarios.stage import (
    Json,
    Stage,
    agent_argv,
    agent_env,
    checked_agent,
    notices,
    prompting,
    saw_log,
    saw_notice,
    saw_text,
    statuses,
    words,
)
from tests.scenarios.test_children import child

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


@pytest.mark.parametrize(
    ("number", "kept"),
    [(2**53 + 1, False), (10**400, False), (-(10**400), False), (2**64, True), (1e300, True),
     (-(2**53), True)],
    ids=["rounded", "too large", "too small", "over 64 bits", "1e300", "-2^53"],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["integer", "number"])
async def test_a_number_is_answered_as_it_is_or_not_at_all(
    stage: Stage, kind: str, number: float, kept: bool
) -> None:
    """The server keeps doubles: it rounds what is between them and refuses what is beyond."""
    agent, front = await shows_forms(stage, accept(count=number)), await stage.front_end()
    session = await agent.new_session(stage.project())
    async with prompting(agent, session, "@@text 200 20@@"):
        await saw_text(agent, session, "w1 ")
        fields = [{"key": "count", "type": kind}]
        made = await front.http.post(
            f"/api/session/{session}/form", json={"title": "Number", "fields": fields}
        )
        form_id = made.raise_for_status().json()["data"]["id"]

        async def answered() -> Json | None:
            state: Json = (await front.get(f"session/{session}/form/{form_id}"))["state"]
            return state if state["status"] != "pending" else None

        state = await until("the form is answered", answered)
        assert state["status"] == "answered"
        told = {key: float(value) for key, value in state["answer"].items()}
        assert told == ({"count": float(number)} if kept else {})
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


async def test_an_answer_is_in_no_log_and_in_no_meta(stage: Stage) -> None:
    argv = [*agent_argv(stage.backend.url), "--log-level", "debug"]
    canary = "cAnary-of-a-form-3Zk"
    async with checked_agent(argv, agent_env(stage.backend.password), None, FORMS) as agent:
        agent.form_policy = accept(q0_other=canary)
        session = await agent.new_session(stage.project())
        await agent.prompt(session, f"@@{ask(COLOR)} || text 2@@")
        assert canary in told(agent, session)
        assert await agent.hang_up() == 0
        await saw_log(agent, "httpcore")
        assert canary.encode() not in agent.stderr
        assert canary not in json.dumps([list(metas(line.message)) for line in agent.updates])


def metas(value: object) -> Iterator[object]:
    """Every `_meta` in a message."""
    if isinstance(value, dict):
        yield value.get("_meta")
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for one in inner:
        yield from metas(one)


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
