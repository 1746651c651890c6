"""`/compact`, and compactions that others or the server itself make under a turn."""

from __future__ import annotations

from typing import Any, Final

import pytest

from stubs.proxy import Rule
from stubs.waiting import until
from tests.scenarios.stage import (
    FrontEnd,
    Stage,
    audit,
    fails,
    notices,
    prompting,
    saw_text,
    words,
)
from tests.support.checked import CheckedClient

Json = dict[str, Any]

CAN: Final[Json] = {"session": {"compaction": {}, "notices": {}}}
SLOW: Final = "%%wait 3000%%"


def told(agent: CheckedClient, session: str) -> list[Json]:
    """The `compaction_update`s of a session, in order."""
    updates = [
        line.message["params"]
        for line in agent.updates
        if line.message.get("method") == "session/update"
    ]
    return [
        update["update"]
        for update in updates
        if update["sessionId"] == session
        and update["update"]["sessionUpdate"] == "compaction_update"
    ]


def states(agent: CheckedClient, session: str) -> list[str]:
    return [update["status"] for update in told(agent, session)]


async def talked(stage: Stage, text: str = "", url: str | None = None) -> tuple[CheckedClient, str]:
    """A client with a session in which something was said."""
    agent = await stage.agent(url=url, capabilities=CAN)
    session = await agent.new_session(stage.project())
    assert (await agent.prompt(session, f"@@text 2@@ {text}"))["stopReason"] == "end_turn"
    return agent, session


async def compaction(front: FrontEnd, session: str) -> Json:
    """The newest compaction."""
    return (await front.rows(session, "compaction"))[-1]


async def until_compacting(front: FrontEnd, session: str) -> None:
    async def runs() -> bool:
        rows = await front.rows(session, "compaction")
        return bool(rows) and rows[-1]["status"] == "running"

    await until("a compaction runs", runs)


async def test_a_conversation_is_summed_up(stage: Stage) -> None:
    agent, session = await talked(stage)
    front = await stage.front_end()
    result = await agent.prompt(session, "/compact")
    assert result["stopReason"] == "end_turn"
    row = await compaction(front, session)
    assert (row["id"], row["status"]) == (audit(result)["messageId"], "completed")
    assert states(agent, session) == ["in_progress", "completed"]
    assert {update["compactionId"] for update in told(agent, session)} == {row["id"]}
    assert (await agent.prompt(session, "@@text 3@@"))["stopReason"] == "end_turn"
    assert (await agent.prompt(session, "/compact again"))["stopReason"] == "end_turn"
    assert states(agent, session) == ["in_progress", "completed"] * 2


async def test_a_client_that_shows_no_compactions_reads_it_in_meta(stage: Stage) -> None:
    agent = await stage.agent()
    session = await agent.new_session(stage.project())
    await agent.prompt(session, "@@text 2@@")
    assert (await agent.prompt(session, "/compact"))["stopReason"] == "end_turn"
    metas = [notice["_meta"]["opencode-acp"] for notice in agent.transcript(session).notices]
    found = [meta["compaction"]["status"] for meta in metas if "compaction" in meta]
    assert found == ["in_progress", "completed"]


async def test_an_empty_session_has_nothing_to_sum_up(stage: Stage) -> None:
    agent = await stage.agent(capabilities=CAN)
    session = await agent.new_session(stage.project())
    assert (await agent.prompt(session, "/compact"))["stopReason"] == "end_turn"
    assert notices(agent.transcript(session)) == ["nothing_to_compact"]


@pytest.mark.parametrize(
    ("script", "words_of_it"),
    [("%%text 2%%", "required template"), ("%%error 400%%", "scripted error 400")],
)
async def test_a_summary_that_fails_is_an_error(
    stage: Stage, script: str, words_of_it: str
) -> None:
    agent, session = await talked(stage, script)
    async with fails(-32603) as error:
        await agent.prompt(session, "/compact")
    assert words_of_it in str(error())
    assert (error().data["admitted"], error().data["retrySafe"]) == (True, True)
    assert states(agent, session) == ["in_progress", "failed"]
    assert (await agent.prompt(session, "@@text 3@@"))["stopReason"] == "end_turn"


async def test_a_running_compaction_can_be_cancelled(stage: Stage) -> None:
    agent, session = await talked(stage, SLOW)
    front = await stage.front_end()
    async with prompting(agent, session, "/compact") as prompt:
        await until_compacting(front, session)
        await agent.cancel(session)
        result = await prompt
    assert (result["stopReason"], audit(result)["cancel"]) == ("cancelled", "confirmed")
    assert states(agent, session) == ["in_progress", "cancelled"]
    await front.until_idle(session)


async def test_a_compaction_waits_behind_a_turn_and_the_next_prompt_behind_it(
    stage: Stage,
) -> None:
    project = stage.project()
    first, second = await stage.agent(), await stage.agent(capabilities=CAN)
    third, front = await stage.agent(), await stage.front_end()
    session = await first.new_session(project)
    await second.resume(session, project)
    await third.resume(session, project)
    async with prompting(first, session, "@@text 40 25@@") as one:
        await saw_text(first, session, "w1 ")
        async with prompting(second, session, "/compact") as two:
            await front.until_inbox(session, 1)
            async with prompting(third, session, "@@text 3@@") as three:
                await front.until_inbox(session, 2)
                results = [await one, await two, await three]
    assert [result["stopReason"] for result in results] == ["end_turn"] * 3
    assert not any(audit(result)["shared"] for result in results)
    assert first.transcript(session).text() == words(40)
    assert second.transcript(session).text() == ""
    assert third.transcript(session).text() == words(3)


async def test_a_waiting_compaction_can_be_cancelled(stage: Stage) -> None:
    project = stage.project()
    first, second = await stage.agent(), await stage.agent()
    front = await stage.front_end()
    session = await first.new_session(project)
    await second.resume(session, project)
    async with prompting(first, session, "@@text 400 25@@") as one:
        await saw_text(first, session, "w1 ")
        async with prompting(second, session, "/compact") as two:
            await front.until_inbox(session, 1)
            await second.cancel(session)
            assert (await two)["stopReason"] == "cancelled"
        assert await front.inbox(session) == []
        await first.cancel(session)
        await one


async def test_a_parked_compaction_is_woken(stage: Stage) -> None:
    project = stage.project()
    first, second = await stage.agent(), await stage.agent()
    front = await stage.front_end()
    session = await first.new_session(project)
    await second.resume(session, project)
    async with prompting(first, session, "@@text 400 25@@") as one:
        await saw_text(first, session, "w1 ")
        async with prompting(second, session, "/compact") as two:
            await front.until_inbox(session, 1)
            await first.cancel(session)
            assert (await one)["stopReason"] == "cancelled"
            assert (await two)["stopReason"] == "end_turn"
    assert (await compaction(front, session))["status"] == "completed"


async def test_one_that_somebody_else_asked_for_is_followed(stage: Stage) -> None:
    """The server takes one compaction at a time into the inbox and drops the id of the second."""
    agent, session = await talked(stage)
    project_agent = await stage.agent()
    front = await stage.front_end()
    where = (await front.get(f"session/{session}"))["location"]["directory"]
    await project_agent.resume(session, where)
    async with prompting(project_agent, session, "@@text 40 25@@") as one:
        await saw_text(project_agent, session, "w1 ")
        await front.post(f"session/{session}/compact", {"id": "msg_theirs", "delivery": "queue"})
        result = await agent.prompt(session, "/compact")
        assert (await one)["stopReason"] == "end_turn"
    assert (result["stopReason"], audit(result)["messageId"]) == ("end_turn", "msg_theirs")
    assert len(await front.rows(session, "compaction")) == 1


async def test_a_cancel_leaves_the_compaction_of_somebody_else_alone(stage: Stage) -> None:
    agent, session = await talked(stage, SLOW)
    front = await stage.front_end()
    where = (await front.get(f"session/{session}"))["location"]["directory"]
    other = await stage.agent()
    await other.resume(session, where)
    async with prompting(other, session, "@@text 40 50@@") as one:
        await saw_text(other, session, "w1 ")
        await front.post(f"session/{session}/compact", {"id": "msg_other", "delivery": "queue"})
        async with prompting(agent, session, "/compact") as two:
            await agent.wait_for(lambda: "waiting" in notices(agent.transcript(session)))
            await agent.cancel(session)
            assert (await two)["stopReason"] == "cancelled"
        assert await front.inbox(session) == ["msg_other"]
        await other.cancel(session)
        await one
    assert notices(agent.transcript(session))[-1] == "compaction_goes_on"


@pytest.mark.parametrize("cancel", [False, True])
async def test_two_clients_that_ask_at_once_get_one(stage: Stage, cancel: bool) -> None:
    project = stage.project()
    first, second, third = [await stage.agent() for _ in range(3)]
    front = await stage.front_end()
    session = await first.new_session(project)
    await second.resume(session, project)
    await third.resume(session, project)
    async with prompting(third, session, "@@text 60 50@@") as running:
        await saw_text(third, session, "w1 ")
        async with prompting(first, session, "/compact") as one:
            await front.until_inbox(session, 1)
            async with prompting(second, session, "/compact") as two:
                await second.wait_for(lambda: "waiting" in notices(second.transcript(session)))
                if cancel:
                    await second.cancel(session)
                    assert (await two)["stopReason"] == "cancelled"
                assert len(await front.inbox(session)) == 1
                await running
                assert (await one)["stopReason"] == "end_turn"
                if not cancel:
                    assert (await two)["stopReason"] == "end_turn"
    assert len(await front.rows(session, "compaction")) == 1


async def test_a_lost_answer_is_asked_for_again(stage: Stage) -> None:
    proxy, front = await stage.proxy(), await stage.front_end()
    agent, session = await talked(stage, url=proxy.url)
    rule = proxy.add(Rule(r"/compact$", "POST", swallow=True))
    assert (await agent.prompt(session, "/compact"))["stopReason"] == "end_turn"
    assert rule.used == 1
    assert len(await front.rows(session, "compaction")) == 1


@pytest.mark.parametrize(
    "event", ["inbox.enqueued", "inbox.delivered", "compaction.started", "compaction.ended"]
)
async def test_a_gap_in_a_compaction_changes_nothing(stage: Stage, event: str) -> None:
    proxy = await stage.proxy()
    agent, session = await talked(stage, "%%wait 400%%", proxy.url)
    cut = proxy.cut_feed(after=1, containing=f"session.{event}")
    result = await agent.prompt(session, "/compact")
    assert cut.done.is_set()
    assert result["stopReason"] == "end_turn"
    assert states(agent, session)[-1] == "completed"
    assert states(agent, session).count("in_progress") <= 1


async def test_a_restart_under_a_compaction_leaves_it_unknown(own_stage: Stage) -> None:
    agent, session = await talked(own_stage, SLOW)
    front = await own_stage.front_end()
    async with fails(-32050), prompting(agent, session, "/compact") as prompt:
        await until_compacting(front, session)
        await agent.wait_for(lambda: states(agent, session) == ["in_progress"])
        await own_stage.backend.crash()
        await prompt
    assert states(agent, session) == ["in_progress", "failed"]


# Compactions under a turn


async def test_the_server_compacts_by_itself_and_the_turn_goes_on(stage: Stage) -> None:
    agent = await stage.agent(capabilities=CAN)
    session = await agent.new_session(stage.project())
    await agent.prompt(session, "@@text 2 && usage 98000@@")
    result = await agent.prompt(session, "@@text 3@@")
    assert result["stopReason"] == "end_turn"
    assert agent.transcript(session).text() == words(2) + words(3)
    assert states(agent, session) == ["in_progress", "completed"]
    assert {update["_meta"]["opencode-acp"]["reason"] for update in told(agent, session)} == {
        "auto"
    }


async def test_one_that_the_server_cannot_make_fails_the_turn(stage: Stage) -> None:
    agent = await stage.agent(capabilities=CAN)
    session = await agent.new_session(stage.project())
    await agent.prompt(session, "@@text 2 && usage 98000@@ %%text 2%%")
    async with fails(-32603) as error:
        await agent.prompt(session, "@@text 3@@")
    assert "required template" in str(error())
    assert states(agent, session) == ["in_progress", "failed"]
