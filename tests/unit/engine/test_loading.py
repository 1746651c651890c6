"""session/load on one connection: the whole conversation, then what goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from contract.errors import Code
from stubs.server import Rule
from stubs.waiting import until
from tests.unit.engine.front import ALLOW, ASK, SHELL, AnswerError, Front, Stage, stage, words

Json = dict[str, Any]


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Stage]:
    async with stage(tmp_path, ASK) as scene:
        yield scene


async def load(front: Front, scene: Stage, session: str) -> Json:
    return await front.call("session/load", sessionId=session, cwd=str(scene.root), mcpServers=[])


def shown(front: Front, session: str) -> list[Json]:
    """The updates of a session, in order."""
    return [
        line["params"]["update"]
        for line in front.lines
        if line.get("method") == "session/update" and line["params"]["sessionId"] == session
    ]


def replayed(front: Front, session: str) -> list[Json]:
    def is_replay(update: Json) -> bool:
        told: Json = update.get("_meta", {}).get("opencode-acp", {})
        return told.get("origin") == "replay"

    return [update for update in shown(front, session) if is_replay(update)]


def since_replay(front: Front, session: str) -> list[Json]:
    """Everything that a client has of a session that it loaded."""
    updates = shown(front, session)
    return updates[updates.index(replayed(front, session)[0]) :]


def said(updates: list[Json]) -> str:
    return "".join(
        update["content"]["text"]
        for update in updates
        if update["sessionUpdate"] == "agent_message_chunk"
    )


def outline(updates: list[Json]) -> list[tuple[str, str]]:
    """(variant, text or title) of each."""
    return [
        (update["sessionUpdate"], update.get("title") or update["content"]["text"])
        for update in updates
        if update["sessionUpdate"] != "session_info_update"
    ]


async def test_the_whole_conversation_precedes_the_answer(scene: Stage) -> None:
    first, second = await scene.front(), await scene.front()
    session = await first.new(scene.root)
    ident = first.prompt(session, f"One @@think 2 && text 3 && {SHELL} || text 2@@")
    first.reply(await first.ask(), ALLOW)
    await first.answer(ident)
    await first.answer(first.prompt(session, "Two @@text 1@@"))
    result = await load(second, scene, session)
    assert [option["id"] for option in result["configOptions"]] == ["model", "effort", "mode"]
    assert outline(replayed(second, session)) == [
        ("user_message_chunk", f"One @@think 2 && text 3 && {SHELL} || text 2@@"),
        ("agent_thought_chunk", "think0 think1 "),
        ("agent_message_chunk", words(3)),
        ("tool_call", "echo hi"),
        ("agent_message_chunk", words(2)),
        ("user_message_chunk", "Two @@text 1@@"),
        ("agent_message_chunk", words(1)),
    ]
    (tool,) = [u for u in replayed(second, session) if u["sessionUpdate"] == "tool_call"]
    assert (tool["status"], tool["rawInput"]) == ("completed", {"command": "echo hi"})
    assert "hi" in str(tool["content"])
    answered = next(n for n, line in enumerate(second.lines) if "result" in line)
    before = second.lines[:answered]
    assert len([line for line in before if "params" in line]) == len(replayed(second, session))
    # The session is open here now.
    await second.answer(second.prompt(session, "@@text 1@@"))


async def test_a_running_turn_goes_on_after_the_load(scene: Stage) -> None:
    front = await scene.front()
    session = await front.new(scene.root)
    text = f'@@say "First." && {SHELL} || text 200 5@@'
    running = front.prompt(session, text)
    front.reply(await front.ask(), ALLOW)
    await front.until_text(session, "w20 ")
    await load(front, scene, session)
    assert (await front.answer(running))["stopReason"] == "end_turn"
    # What is complete is in the replay; the part that was open follows in whole, once.
    assert said(since_replay(front, session)) == "First." + words(200)
    assert said(replayed(front, session)) == "First."
    tools = [u for u in since_replay(front, session) if "toolCallId" in u]
    assert [(u["sessionUpdate"], u["status"]) for u in tools] == [("tool_call", "completed")]


async def test_what_happens_during_a_load_follows_it(scene: Stage) -> None:
    """The rows are read while the turn streams; nothing is lost, repeated or early."""
    front = await scene.front()
    session = await front.new(scene.root)
    await front.answer(front.prompt(session, "@@text 2@@"))
    running = front.prompt(session, f"@@text 40 5 && {SHELL} || text 30 5@@")
    await front.until_text(session, "w20 ")
    scene.stub.faults.add(Rule("delay", "/message", times=1, seconds=1.0))
    loading = front.send("session/load", sessionId=session, cwd=str(scene.root), mcpServers=[])
    front.reply(await front.ask(), ALLOW)
    await front.answer(loading)
    assert (await front.answer(running))["stopReason"] == "end_turn"
    replay = replayed(front, session)
    assert since_replay(front, session)[: len(replay)] == replay
    assert said(since_replay(front, session)) == words(2) + words(40) + words(30)


async def test_only_the_newest_messages_are_shown(tmp_path: Path) -> None:
    async with stage(tmp_path, replay_messages=5) as scene:
        front = await scene.front()
        session = await front.new(scene.root)
        for number in range(4):
            await front.answer(front.prompt(session, f"P{number} @@text 1@@"))
        loading = await scene.front()
        await load(loading, scene, session)
        updates = replayed(loading, session)
        assert updates[0]["_meta"]["opencode-acp"]["notice"] == "replay_cut"
        users = [text for kind, text in outline(updates) if kind == "user_message_chunk"]
        assert users[-1] == "P3 @@text 1@@"
        assert "P0 @@text 1@@" not in users


async def test_a_load_that_fails_leaves_the_session_as_it_was(scene: Stage) -> None:
    front, other = await scene.front(), await scene.front()
    session = await front.new(scene.root)
    await front.answer(front.prompt(session, "@@text 1@@"))
    scene.stub.faults.add(Rule("status", "/message", times=100))
    for one in (front, other):
        with pytest.raises(AnswerError) as caught:
            await load(one, scene, session)
        assert caught.value.code == Code.INTERNAL
    scene.stub.faults.clear()
    with pytest.raises(AnswerError):
        await other.answer(other.prompt(session, "@@text 1@@"))
    await front.answer(front.prompt(session, "@@text 2@@"))
    assert front.text(session).endswith(words(2))


async def test_a_close_ends_a_load_and_nothing_follows(scene: Stage) -> None:
    front = await scene.front()
    session = await front.new(scene.root)
    await front.answer(front.prompt(session, "@@text 1@@"))
    scene.stub.faults.add(Rule("delay", "/message", times=1, seconds=1.0))
    loading = front.send("session/load", sessionId=session, cwd=str(scene.root), mcpServers=[])
    await scene.until_asked("GET", "/message")
    before = len(shown(front, session))
    await front.call("session/close", sessionId=session)
    scene.stub.faults.clear()
    with pytest.raises(AnswerError) as caught:
        await front.answer(loading)
    assert caught.value.code == Code.INTERNAL
    assert len(shown(front, session)) == before


async def test_two_loads_at_once_show_the_conversation_once_each(scene: Stage) -> None:
    front = await scene.front()
    session = await front.new(scene.root)
    await front.answer(front.prompt(session, "@@text 3@@"))
    loads = [
        front.send("session/load", sessionId=session, cwd=str(scene.root), mcpServers=[])
        for _ in range(2)
    ]
    answers = await asyncio.gather(*map(front.answer, loads), return_exceptions=True)
    assert isinstance(answers[1], dict)
    await front.answer(front.prompt(session, "@@text 1@@"))

    async def told() -> bool:
        return bool(front.updates(session, "available_commands_update"))

    await until("what was held back", told)


async def test_a_load_that_is_cancelled_holds_nothing_back(scene: Stage) -> None:
    front = await scene.front()
    session = await front.new(scene.root)
    await front.answer(front.prompt(session, "@@text 1@@"))
    scene.stub.faults.add(Rule("delay", "/message", times=1, seconds=30.0))
    loading = front.send("session/load", sessionId=session, cwd=str(scene.root), mcpServers=[])
    await scene.until_asked("GET", "/message")
    front.notify("$/cancel_request", requestId=loading)
    with pytest.raises(AnswerError) as caught:
        await front.answer(loading)
    assert caught.value.code == Code.REQUEST_CANCELLED
    async with asyncio.timeout(10):
        await front.answer(front.prompt(session, "@@text 2@@"))
    assert front.text(session).endswith(words(2))


async def test_a_long_turn_of_ones_own_is_shown_once_over_several_pages(scene: Stage) -> None:
    front = await scene.front()
    session = await front.new(scene.root)
    steps = " || ".join(f'say "{number}." && tool glob {{"pattern":"*"}}' for number in range(210))
    running = front.prompt(session, f"@@{steps} || text 60 20@@")
    await front.until_text(session, "w5 ")
    assert len(scene.asked("GET", "/message")) == 0
    await load(front, scene, session)
    assert (await front.answer(running))["stopReason"] == "end_turn"
    numbers = "".join(f"{number}." for number in range(210))
    assert said(since_replay(front, session)) == numbers + words(60)
    assert len([u for u in since_replay(front, session) if u.get("kind")]) == 210
