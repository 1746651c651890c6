"""session/load: the conversation as the server has it, whoever had it and whatever runs."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path
from typing import Any

import pytest

from stubs.longsession import answer_text, long_session
from stubs.proxy import Rule
from stubs.waiting import until
from tests.scenarios.stage import (
    ASKS,
    THOUGHT,
    FrontEnd,
    Stage,
    fails,
    prompting,
    saw_text,
    shell,
    words,
)
from tests.support.checked import CheckedClient

Json = dict[str, Any]
USER = "user_message_chunk"


def marks(agent: CheckedClient, session: str) -> list[Json]:
    """What `_meta` says of each update of a session."""
    return [
        line.message["params"]["update"].get("_meta", {}).get("opencode-acp", {})
        for line in agent.updates
        if line.message.get("method") == "session/update"
        and line.message["params"]["sessionId"] == session
    ]


async def load_by_another(stage: Stage, session: str, directory: Path) -> CheckedClient:
    other = await stage.agent()
    await other.load(session, directory)
    return other


async def test_a_conversation_comes_back_as_it_was(stage: Stage) -> None:
    project = stage.project(ASKS)
    first = await stage.agent()
    session = await first.new_session(project)
    prompts = [
        f"Look @@think 3 && text 4 && {shell('echo hi')} || text 2@@",
        'And @@tool write {"path":"new.txt","content":"one\\n"} || text 1@@',
        'Fail @@tool read {"path":"missing.txt"} || text 1@@',
    ]
    for prompt in prompts:
        await first.prompt(session, prompt)
    live = first.transcript(session)
    other = await load_by_another(stage, session, project)
    seen = other.transcript(session)
    assert list(seen.texts) == [*seen.texts]
    assert [text for (_, kind), text in seen.texts.items() if kind == USER] == prompts
    assert (seen.text(), seen.text(THOUGHT)) == (live.text(), live.text(THOUGHT))
    assert list(seen.tools) == list(live.tools)
    for ident, tool in live.tools.items():
        again = seen.tools[ident]
        for field in ("status", "title", "kind", "name", "rawInput", "rawOutput", "content"):
            assert again.get(field) == tool.get(field), (ident, field)
    assert {mark.get("origin") for mark in marks(other, session) if "notice" not in mark} <= {
        "replay",
        None,
    }
    # It is open there, and goes on.
    assert (await other.prompt(session, "@@text 2@@"))["stopReason"] == "end_turn"
    assert other.transcript(session).text() == live.text() + words(2)


async def test_a_turn_of_somebody_else_runs_on_during_a_load(stage: Stage) -> None:
    project = stage.project()
    first, other = await stage.agent(), await stage.agent()
    session = await first.new_session(project)
    await first.prompt(session, "@@text 3@@")
    async with prompting(first, session, "@@text 60 20@@") as running:
        await saw_text(first, session, words(10))
        await other.load(session, project)
        assert other.transcript(session).text() == words(3)
        assert (await running)["stopReason"] == "end_turn"
    assert first.transcript(session).text() == words(3) + words(60)


async def test_ones_own_turn_runs_on_during_a_load(stage: Stage) -> None:
    project = stage.project()
    agent = await stage.agent()
    session = await agent.new_session(project)
    await agent.prompt(session, "@@text 3@@")
    text = f'@@say "Begin. " && {shell("true")} || text 60 20@@'
    async with prompting(agent, session, text) as running:
        await saw_text(agent, session, words(10))
        await agent.load(session, project)
        assert (await running)["stopReason"] == "end_turn"
    assert agent.transcript(session).text() == words(3) + "Begin. " + words(60)


async def test_a_load_in_a_gap_waits_for_its_end(stage: Stage) -> None:
    project = stage.project()
    proxy = await stage.proxy()
    agent = await stage.agent(url=proxy.url)
    session = await agent.new_session(project)
    async with prompting(agent, session, "@@text 60 20@@") as running:
        await saw_text(agent, session, words(10))
        proxy.cut_feed()
        await agent.load(session, project)
        assert (await running)["stopReason"] == "end_turn"
    assert agent.transcript(session).text() == words(60)


async def test_a_turn_that_was_stopped_is_shown_so(stage: Stage) -> None:
    project = stage.project()
    first = await stage.agent()
    session = await first.new_session(project)
    async with prompting(first, session, f"@@{shell('sleep 20')} || text 1@@") as running:
        await first.wait_for(
            lambda: (
                [t["status"] for t in first.transcript(session).tools.values()] == ["in_progress"]
            )
        )
        await first.cancel(session)
        assert (await running)["stopReason"] == "cancelled"
    other = await load_by_another(stage, session, project)
    (tool,) = other.transcript(session).tools.values()
    assert tool["status"] == "failed"


async def imported(front: FrontEnd, directory: Path, turns: int, **more: int) -> str:
    """A session with so many turns of one prompt and one answer each."""
    session = f"ses_{uuid.uuid4().hex}"
    body = long_session(session, str(directory), turns, **more)
    await front.post("experimental/session/import", body)
    return session


@pytest.mark.parametrize("turns", [1, 100, 101, 500, 650])
async def test_the_newest_thousand_messages_come_in_order(stage: Stage, turns: int) -> None:
    project = stage.project()
    front = await stage.front_end()
    session = await imported(front, project, turns)
    agent = await load_by_another(stage, session, project)
    shown = min(turns, 500)
    expected = "".join(map(answer_text, range(turns - shown, turns)))
    assert agent.transcript(session).text() == expected
    notices = [mark["notice"] for mark in marks(agent, session) if "notice" in mark]
    assert notices == (["replay_cut"] if turns > shown else [])


async def test_more_than_a_client_can_be_owed_is_sent_as_it_reads(stage: Stage) -> None:
    """Two loads at once, of pages that are together larger than all that may be queued."""
    project, front, agent = stage.project(), await stage.front_end(), await stage.agent()
    sessions = [await imported(front, project, 90, tools=2, size=50_000) for _ in range(2)]
    await asyncio.gather(*(agent.load(session, project) for session in sessions))
    for session in sessions:
        assert agent.transcript(session).text() == "".join(map(answer_text, range(90)))
        assert len(agent.transcript(session).tools) == 180


async def test_a_long_load_holds_up_no_other_session(stage: Stage) -> None:
    project, front, proxy = stage.project(), await stage.front_end(), await stage.proxy()
    agent = await stage.agent(url=proxy.url)
    long = await imported(front, project, 250)
    short = await agent.new_session(project)
    pages = proxy.add(Rule(f"{long}/message", "GET", times=None, delay=0.4))
    loading = asyncio.create_task(agent.load(long, project))

    async def half_way() -> bool:
        return pages.used > 1

    await until("the load is at a later page", half_way)
    assert (await agent.prompt(short, "@@text 2@@"))["stopReason"] == "end_turn"
    assert not loading.done()
    proxy.rules.clear()
    await loading
    assert agent.transcript(long).text() == "".join(map(answer_text, range(250)))
    assert agent.transcript(short).text() == words(2)


async def test_a_session_that_cannot_be_loaded_is_an_error(stage: Stage) -> None:
    project, elsewhere = stage.project(), stage.project()
    agent = await stage.agent()
    session = await agent.new_session(project)
    for unknown in ("ses_none", "nonsense", "ses_../x"):
        async with fails(-32002):
            await agent.load(unknown, project)
    async with fails(-32052):
        await agent.load(session, elsewhere)
    await agent.load(session, project)


async def test_a_load_and_a_prompt_at_once(stage: Stage) -> None:
    project = stage.project()
    agent = await stage.agent()
    session = await agent.new_session(project)
    await agent.prompt(session, "@@text 2@@")
    prompt, _ = await asyncio.gather(
        agent.prompt(session, "@@text 30 10@@"), agent.load(session, project)
    )
    assert prompt["stopReason"] == "end_turn"
    assert agent.transcript(session).text() == words(2) + words(30)


async def test_attachments_are_shown(stage: Stage) -> None:
    project = stage.project()
    (project / "a.txt").write_text("in a file\n", encoding="utf-8")
    agent = await stage.agent()
    session = await agent.new_session(project)
    await agent.prompt(
        session,
        [
            {"type": "text", "text": "See @@text 1@@"},
            {"type": "resource_link", "uri": (project / "a.txt").as_uri(), "name": "a.txt"},
            {
                "type": "resource",
                "resource": {"uri": "file:///x/b.txt", "text": "inline", "mimeType": "text/plain"},
            },
        ],
    )
    other = await load_by_another(stage, session, project)
    blocks = [
        line.message["params"]["update"]["content"]
        for line in other.updates
        if line.message.get("params", {}).get("update", {}).get("sessionUpdate") == USER
    ]
    mention = f"[a.txt]({(project / 'a.txt').as_uri()})"
    assert blocks[0] == {"type": "text", "text": f"See @@text 1@@\n{mention}"}
    assert (blocks[1]["type"], blocks[1]["uri"]) == (
        "resource_link",
        (project / "a.txt").as_uri(),
    )
    assert blocks[2]["type"] == "text"
    assert "b.txt" in blocks[2]["text"]


async def test_what_others_do_after_a_load_is_not_shown(stage: Stage) -> None:
    """A load promises the replay alone; live work of others is opt-in (S3-38)."""
    project = stage.project()
    first = await stage.agent()
    session = await first.new_session(project)
    await first.prompt(session, "@@text 2@@")
    other = await load_by_another(stage, session, project)
    await first.prompt(session, "@@text 9@@")
    front = await stage.front_end()
    await front.until_answered(session, 2)
    assert other.transcript(session).text() == words(2)
