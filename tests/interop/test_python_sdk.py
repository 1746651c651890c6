"""The client of the Python SDK 0.12.1. What it cannot use it logs, which fails a test here."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

import acp
import pytest

from tests.interop.script import ASKING, ENDLESS, QUESTION, WHOLE
from tests.interop.sdk import Host, connected
from tests.scenarios.backends import Backend
from tests.scenarios.stage import ASKS, words
from tests.scenarios.test_content import PIXEL


@pytest.fixture(autouse=True)
def nothing_is_complained_of(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield
    complaints = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert [record.getMessage() for record in complaints] == []


def choices(options: list[Any] | None) -> dict[str, str]:
    """The current value of each option."""
    return {option.id: option.current_value for option in options or ()}


async def test_a_conversation_with_choices_thoughts_and_a_tool(backend: Backend) -> None:
    project = backend.project(ASKS)
    async with connected(backend) as (agent, host):
        session = await agent.new_session(str(project))
        assert session.modes is not None
        assert session.modes.current_mode_id == "build"
        before = {"model": "fake/fake-1", "effort": "default", "mode": "build"}
        assert choices(session.config_options) == before
        ident = session.session_id
        await agent.set_session_mode(session_id=ident, mode_id="reviewer")
        await agent.set_config_option("model", ident, "fake/fake-2")
        changed = await agent.set_config_option("effort", ident, "high")
        after = {"model": "fake/fake-2", "effort": "high", "mode": "reviewer"}
        assert choices(changed.config_options) == after
        answer = await agent.prompt(ident, [acp.text_block(WHOLE)])
        assert answer.stop_reason == "end_turn"
        assert host.text("agent_thought_chunk") == words(2, "think")
        assert host.text() == words(3) + words(2)
        assert [ask.kind for ask in host.asks] == ["execute"]
        (started,) = host.of("tool_call")
        assert host.asks[0].tool_call_id == started.tool_call_id
        last = host.of("tool_call_update")[-1]
        assert (last.tool_call_id, last.status) == (started.tool_call_id, "completed")
        assert last.content[0].content.text == "hi\n"
        assert answer.usage is not None
        assert answer.usage.total_tokens == 2100
        # A directory that boots may name its commands only after a short turn.
        await host.saw("available_commands_update")
        (commands,) = host.of("available_commands_update")
        assert "compact" in {command.name for command in commands.available_commands}
        assert {update.size for update in host.of("usage_update")} == {200_000}


async def test_a_refused_tool_does_not_end_the_turn(backend: Backend) -> None:
    project = backend.project(ASKS)
    async with connected(backend, Host("reject_once")) as (agent, host):
        session = await agent.new_session(str(project))
        answer = await agent.prompt(session.session_id, [acp.text_block(ASKING)])
        assert (answer.stop_reason, host.text()) == ("end_turn", words(4))
        assert host.of("tool_call_update")[-1].status == "failed"


async def test_a_question_is_a_form(backend: Backend) -> None:
    project = backend.project()
    async with connected(backend) as (agent, host):
        session = await agent.new_session(str(project))
        answer = await agent.prompt(session.session_id, [acp.text_block(QUESTION)])
        assert answer.stop_reason == "end_turn"
        (form,) = host.forms
        (tool,) = host.of("tool_call")
        assert (form.session_id, form.tool_call_id) == (session.session_id, tool.tool_call_id)
        last = host.of("tool_call_update")[-1]
        assert (last.status, "Red" in last.content[0].content.text) == ("completed", True)


async def test_whatever_the_sdk_makes_of_content_is_taken(backend: Backend) -> None:
    project = backend.project()
    async with connected(backend) as (agent, host):
        session = await agent.new_session(str(project))
        page = acp.embedded_text_resource("file:///elsewhere/open.txt", "not saved yet")
        answer = await agent.prompt(
            session.session_id,
            [
                acp.text_block("look @@text 2@@"),
                acp.image_block(PIXEL, "image/png"),
                acp.resource_link_block("a page", "https://example.org/x"),
                acp.resource_block(page),
            ],
        )
        assert (answer.stop_reason, host.text()) == ("end_turn", words(2))


async def test_a_cancelled_prompt(backend: Backend) -> None:
    project = backend.project()
    async with connected(backend) as (agent, host):
        session = await agent.new_session(str(project))
        running = asyncio.create_task(agent.prompt(session.session_id, [acp.text_block(ENDLESS)]))
        await host.saw_text("w1 ")
        await agent.cancel(session.session_id)
        assert (await running).stop_reason == "cancelled"


async def test_a_failed_prompt_is_an_error_with_the_cause(backend: Backend) -> None:
    project = backend.project()
    async with connected(backend) as (agent, _):
        session = await agent.new_session(str(project))
        with pytest.raises(acp.RequestError, match="scripted error 400"):
            await agent.prompt(session.session_id, [acp.text_block("@@error 400 always@@")])


async def test_a_conversation_is_loaded_by_another_process(backend: Backend) -> None:
    project = backend.project()
    async with connected(backend) as (agent, host):
        session = await agent.new_session(str(project))
        await agent.prompt(session.session_id, [acp.text_block(WHOLE)])
        (tool,) = host.of("tool_call")
    async with connected(backend) as (agent, host):
        await agent.load_session(str(project), session.session_id)
        await host.saw_text(words(3) + words(2))
        assert host.text("user_message_chunk") == WHOLE
        assert host.text("agent_thought_chunk") == words(2, "think")
        shown = [*host.of("tool_call"), *host.of("tool_call_update")]
        assert {update.tool_call_id for update in shown} == {tool.tool_call_id}
        assert shown[-1].status == "completed"
        host.updates.clear()
        await agent.prompt(session.session_id, [acp.text_block("@@text 5@@")])
        assert host.text() == words(5)
        assert host.of("user_message_chunk") == []


async def test_a_fork_is_listed_beside_its_origin_and_goes_its_own_way(backend: Backend) -> None:
    project = backend.project()
    async with connected(backend) as (agent, host):
        session = await agent.new_session(str(project))
        await agent.prompt(session.session_id, [acp.text_block("@@text 2@@")])
        fork = await agent.fork_session(session.session_id, str(project))
        listed = await agent.list_sessions(cwd=str(project))
        assert {one.session_id for one in listed.sessions} == {session.session_id, fork.session_id}
        assert {one.cwd for one in listed.sessions} == {str(project)}
        host.updates.clear()
        await agent.prompt(fork.session_id, [acp.text_block("@@text 5@@")])
        assert host.text() == words(5)
        host.updates.clear()
        await agent.load_session(str(project), session.session_id)
        await host.saw_text(words(2))
        assert host.text() == words(2)


async def test_a_session_that_was_closed_is_resumed_by_another_process(backend: Backend) -> None:
    project = backend.project()
    async with connected(backend) as (agent, host):
        session = await agent.new_session(str(project))
        await agent.set_config_option("effort", session.session_id, "low")
        await agent.prompt(session.session_id, [acp.text_block("@@text 2@@")])
        await agent.close_session(session.session_id)
        with pytest.raises(acp.RequestError, match="not open"):
            await agent.prompt(session.session_id, [acp.text_block("@@text 2@@")])
    async with connected(backend) as (agent, host):
        resumed = await agent.resume_session(session.session_id, str(project))
        assert choices(resumed.config_options)["effort"] == "low"
        await agent.prompt(session.session_id, [acp.text_block("@@text 5@@")])
        assert host.text() == words(5)
