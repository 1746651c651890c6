"""The notice after a resume when the last prompt called something by its `/name`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest

from stubs.waiting import until
from tests.scenarios.stage import FrontEnd, Stage, audit, fails, prompting, saw_text
from tests.scenarios.test_commands import LONG, project, until_child
from tests.scenarios.test_compaction import SLOW, until_compacting
from tests.scenarios.test_resumed import resumed, told
from tests.support.checked import CheckedClient

CALLS: Final = ("/say @@text 2@@", "/helper @@text 2@@", "/greet @@text 2@@", "/compact")


async def talked(stage: Stage, text: str = "") -> tuple[CheckedClient, str, Path]:
    """A client with a session whose first prompt was answered."""
    agent, made = await stage.agent(), project(stage)
    session = await agent.new_session(made)
    await agent.prompt(session, f"@@text 1@@ {text}")
    return agent, session, made


def ended(notice: dict[str, Any]) -> tuple[object, ...]:
    return notice["messageId"], notice["state"], notice.get("stopReason")


@pytest.mark.parametrize("call", CALLS)
async def test_it_is_the_prompt_whose_result_told_that_id(stage: Stage, call: str) -> None:
    agent, session, made = await talked(stage)
    result = await agent.prompt(session, call)
    notice = await resumed(stage, session, made)
    assert ended(notice) == (audit(result)["messageId"], "finished", "end_turn")


@pytest.mark.parametrize("call", CALLS)
async def test_nothing_but_the_call_was_ever_sent(stage: Stage, call: str) -> None:
    agent, made = await stage.agent(), project(stage)
    session = await agent.new_session(made)
    result = await agent.prompt(session, call)
    notice = await resumed(stage, session, made)
    assert ended(notice) == (audit(result)["messageId"], "finished", "end_turn")


async def test_a_failure_before_a_compaction_is_no_news(stage: Stage) -> None:
    agent, session, made = await talked(stage)
    async with fails(-32603):
        await agent.prompt(session, "@@error 400 always@@")
    result = await agent.prompt(session, "/compact")
    notice = await resumed(stage, session, made)
    assert ended(notice) == (audit(result)["messageId"], "finished", "end_turn")
    assert "failed" not in notice["text"]


async def test_a_compaction_that_failed(stage: Stage) -> None:
    agent, session, made = await talked(stage, "%%text 2%%")
    async with fails(-32603) as error:
        await agent.prompt(session, "/compact")
    notice = await resumed(stage, session, made)
    assert ended(notice) == (error().data["messageId"], "failed", None)
    assert "required template" in notice["text"]


async def _runs(front: FrontEnd, agent: CheckedClient, session: str, call: str) -> None:
    """Wait until the call is carried out."""
    match call.partition(" ")[0]:
        case "/compact":
            await until_compacting(front, session)
        case "/helper":
            child = await until_child(front, session)
            await until("the helper works", lambda: front.is_active(child))
        case _:
            await saw_text(agent, session, "w1 ")


@pytest.mark.parametrize("call", [f"/say {LONG}", f"/helper {LONG}", "/compact"])
async def test_one_that_runs_and_is_stopped_then(stage: Stage, call: str) -> None:
    agent, session, made = await talked(stage, SLOW)
    front = await stage.front_end()
    async with prompting(agent, session, call) as prompt:
        await _runs(front, agent, session, call)
        assert (await resumed(stage, session, made))["state"] == "running"
        # On the connection whose prompt it is, there is nothing to tell.
        await agent.resume(session, made)
        await agent.cancel(session)
        result = await prompt
    assert result["stopReason"] == "cancelled"
    await front.until_idle(session)
    notice = await resumed(stage, session, made)
    assert ended(notice) == (audit(result)["messageId"], "stopped", None)
    assert told(agent, session) == []


async def test_a_compaction_that_waits_for_a_turn(stage: Stage) -> None:
    first, session, made = await talked(stage)
    second, front = await stage.agent(), await stage.front_end()
    await second.resume(session, made)
    async with prompting(first, session, LONG) as one:
        await saw_text(first, session, "w3 ")
        async with prompting(second, session, "/compact") as two:
            (item,) = await front.until_inbox(session, 1)
            notice = await resumed(stage, session, made)
            assert ended(notice) == (item, "waiting", None)
            await second.cancel(session)
            await two
        await first.cancel(session)
        await one


@pytest.mark.parametrize("call", [f"/helper {LONG}", "/compact"])
async def test_one_that_died_with_the_server_is_lost(own_stage: Stage, call: str) -> None:
    agent, session, made = await talked(own_stage, SLOW)
    front = await own_stage.front_end()
    async with prompting(agent, session, call):
        await _runs(front, agent, session, call)
        await own_stage.backend.crash()
        await agent.kill()
    assert (await resumed(own_stage, session, made))["state"] == "lost"


async def test_the_end_of_a_child_that_no_command_made_is_no_prompt(stage: Stage) -> None:
    """A sub-agent in the background tells of its end by an item of the same kind."""
    agent, session, made = await talked(stage)
    front = await stage.front_end()
    child = {"agent": "general", "description": "d", "prompt": "text", "background": True}
    result = await agent.prompt(session, f"@@tool subagent {json.dumps(child)} || text 1@@")
    await front.until_rows(session, "synthetic", 1)
    await front.until_idle(session)
    notice = await resumed(stage, session, made)
    assert ended(notice) == (audit(result)["messageId"], "finished", "end_turn")
