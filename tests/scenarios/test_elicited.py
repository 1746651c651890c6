"""What an MCP server asks the user: shown to the client whose turn calls it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from stubs.client.client import FormPolicy
from stubs.waiting import until
from tests.scenarios.questions import FORMS, accept, fates, no_answer, saw_form, told
from tests.scenarios.stage import (
    FrontEnd,
    Json,
    Stage,
    agent_argv,
    agent_env,
    checked_agent,
    notices,
    prompting,
)
from tests.scenarios.test_mcp import ALL, call, stdio
from tests.support.checked import CheckedClient


@asynccontextmanager
async def asking(
    stage: Stage, fills_in: FormPolicy, capabilities: Json | None = None
) -> AsyncIterator[tuple[CheckedClient, str, FrontEnd]]:
    """A client with a session whose MCP server asks the user, and another front end."""
    env = agent_env(stage.backend.password) | {"OPENCODE_ACP_MCP": "register"}
    can = FORMS if capabilities is None else capabilities
    async with checked_agent(agent_argv(stage.backend.url), env, capabilities=can) as agent:
        agent.form_policy = fills_in
        project = stage.project(ALL)
        session = await agent.new_session(project, mcpServers=[stdio("e", "ok")])
        yield agent, session, await stage.front_end()


async def open_forms(front: FrontEnd, agent: CheckedClient, session: str) -> list[Json]:
    """The forms that are open in the session's directory."""
    info = await front.get(f"session/{session}")
    query: dict[str, Any] = {"location[directory]": info["location"]["directory"]}
    forms: list[Json] = await front.get("form", **query)
    return forms


async def test_it_is_shown_and_the_answer_reaches_the_server(stage: Stage) -> None:
    async with asking(stage, accept(name="Joe", size="M", other=1)) as (agent, session, _):
        result = await agent.prompt(session, call(session, "e", "ask"))
        assert result["stopReason"] == "end_turn"
        answer = {"action": "accept", "content": {"name": "Joe", "size": "M"}}
        assert json.loads(told(agent, session)) == answer
        shown = await saw_form(agent)
        assert (shown["sessionId"], shown["message"]) == (session, "Tell me")
        assert shown["requestedSchema"]["required"] == ["name"]


@pytest.mark.parametrize("forms", [True, False])
async def test_without_an_answer_the_server_is_told_that_there_is_none(
    stage: Stage, forms: bool
) -> None:
    async def policy(_: Json) -> Json:
        return {"action": "decline"}

    async with asking(stage, policy, None if forms else {}) as (agent, session, front):
        result = await agent.prompt(session, call(session, "e", "ask"))
        assert result["stopReason"] == "end_turn"
        assert json.loads(told(agent, session)) == {"action": "cancel"}
        assert fates(agent, session) == ["decline"] * forms
        assert notices(agent.transcript(session)) == ["form"] * (not forms)
        assert await open_forms(front, agent, session) == []


async def test_a_cancel_takes_it_away(stage: Stage) -> None:
    async with asking(stage, no_answer) as (agent, session, front):
        async with prompting(agent, session, call(session, "e", "ask")) as prompt:
            await saw_form(agent)
            await agent.notify("session/cancel", {"sessionId": session})
            assert (await prompt)["stopReason"] == "cancelled"

        async def none_open() -> bool:
            return await open_forms(front, agent, session) == []

        await until("no form is open", none_open)
        assert fates(agent, session) == ["withdrawn"]
