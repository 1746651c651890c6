"""The notice after a resume: read beside it, told behind it, and never in its way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import respx

from adapter.core import values as v
from adapter.core.session import SessionCore
from adapter.engine.past import PROMPTS, READINGS, Past
from adapter.upstream.client import Server
from stubs.server import Rule
from stubs.waiting import until
from tests.unit.engine.front import Front, Json, Stage, stage, words
from tests.unit.engine.rig import API, SESSION, URL, Time, Told, listed, no_pause


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Stage]:
    async with stage(tmp_path) as scene:
        yield scene


async def never(_: httpx.Request) -> httpx.Response:
    await asyncio.Event().wait()
    raise AssertionError


async def finished(scene: Stage) -> str:
    """A session whose one prompt was answered, on a connection that has left it."""
    front = await scene.front()
    session = await front.new(scene.root)
    await front.answer(front.prompt(session, "@@text 2@@"))
    return session


def told(front: Front, session: str) -> list[Json]:
    kept = [update["_meta"] for update in front.updates(session, "session_info_update")
            if "_meta" in update]  # fmt: skip
    return [
        meta["opencode-acp"] for meta in kept if meta["opencode-acp"].get("notice") == "resumed"
    ]


async def test_the_notice_follows_the_answer(scene: Stage) -> None:
    session = await finished(scene)
    front = await scene.front()
    ident = front.send("session/resume", sessionId=session, cwd=str(scene.root))
    await front.answer(ident)

    async def come() -> bool:
        return bool(told(front, session))

    await until("the notice", come)
    (notice,) = told(front, session)
    assert (notice["state"], notice["stopReason"]) == ("finished", "end_turn")
    answered = next(n for n, line in enumerate(front.lines) if line.get("id") == ident)
    said = next(n for n, line in enumerate(front.lines) if "resumed" in str(line))
    assert said > answered


@pytest.mark.parametrize("path", ["/inbox", "/active", "/message"])
async def test_a_read_that_fails_costs_the_notice_alone(scene: Stage, path: str) -> None:
    session = await finished(scene)
    front = await scene.front()
    before = len(scene.asked("GET", path))
    scene.stub.faults.add(Rule("status", f"{path}$", times=1000, status=400))
    result = await front.call("session/resume", sessionId=session, cwd=str(scene.root))
    assert result["configOptions"]
    await scene.until_asked("GET", path, before + 1)
    scene.stub.faults.clear()
    await front.answer(front.prompt(session, "@@text 3@@"))
    assert front.text(session) == words(3)
    assert told(front, session) == []


async def test_a_prompt_that_is_sent_meanwhile_is_not_taken_for_the_last(scene: Stage) -> None:
    session = await finished(scene)
    (last,) = (body["id"] for body in scene.asked("POST", "/prompt"))
    front = await scene.front()
    scene.stub.faults.add(Rule("delay", "/inbox$", times=1, seconds=0.5))
    await front.call("session/resume", sessionId=session, cwd=str(scene.root))
    await front.answer(front.prompt(session, "@@text 1@@"))

    async def come() -> bool:
        return bool(told(front, session))

    await until("the notice", come)
    assert [notice["messageId"] for notice in told(front, session)] == [last]


async def test_a_prompt_of_the_same_client_that_ends_meanwhile_is_told_by_its_answer(
    scene: Stage,
) -> None:
    front, other = await scene.front(), await scene.front()
    session = await front.new(scene.root)
    prompt = front.prompt(session, "@@text 200 20@@")
    await front.until_text(session, "w1 ")
    scene.stub.faults.add(Rule("delay", "/active$", times=2, seconds=0.5))
    await front.call("session/resume", sessionId=session, cwd=str(scene.root))
    await other.call("session/resume", sessionId=session, cwd=str(scene.root))
    front.notify("session/cancel", sessionId=session)
    await front.answer(prompt)

    async def come() -> bool:
        return bool(told(other, session))

    await until("the notice to the other, whose reading began later", come)
    assert told(front, session) == []


async def test_reads_that_do_not_come_hold_up_nothing(scene: Stage) -> None:
    session = await finished(scene)
    front = await scene.front()
    scene.stub.faults.add(Rule("delay", "/inbox$", times=1, seconds=60))
    await front.call("session/resume", sessionId=session, cwd=str(scene.root))
    assert told(front, session) == []
    # Nor the end of the session.
    await front.call("session/close", sessionId=session)


@respx.mock
async def test_what_no_row_proves_is_read_twice() -> None:
    """Between the inbox and the rows a prompt may have been delivered, or have ended."""
    prompt = {"id": "msg_acp_x", "type": "user"}
    open_answer = {"id": "msg_a", "type": "assistant"}
    respx.get(f"{SESSION}/inbox").mock(listed())
    respx.get(f"{API}/session/active").mock(httpx.Response(200, json={"data": {}}))
    respx.get(f"{API}/session").mock(side_effect=lambda _: listed())
    respx.get(f"{SESSION}/message").mock(
        side_effect=[
            listed(open_answer, prompt),
            listed({**open_answer, "finish": "stop"}, prompt),
        ]
    )
    time, said = Time(), list[v.Notice]()
    async with Server(URL, sleep=no_pause) as server:
        services = Told().services(server, time=time)
        past = Past(services, SessionCore("ses_a", services.offsets), said.append)
        past.tell(7, past.read())

        async def come() -> bool:
            return bool(said)

        await until("the notice", come)
    (notice,) = said
    assert (notice.owner, notice.kind) == (7, "resumed")
    expected = {"messageId": "msg_acp_x", "state": "finished", "stopReason": "end_turn"}
    assert notice.data == expected
    assert time.pauses == [services.settings.waits.lost_first]
    assert past.tasks == frozenset()


@respx.mock
async def test_one_reading_too_many_takes_the_place_of_the_oldest() -> None:
    """The server answers none of them; a client opens the session again and again."""
    respx.get(f"{SESSION}/inbox").mock(side_effect=never)
    async with Server(URL, sleep=no_pause) as server:
        services = Told().services(server)
        past = Past(services, SessionCore("ses_a", services.offsets), lambda _: None)
        readings = [past.read() for _ in range(READINGS + 2)]
        await asyncio.wait(readings[:2], timeout=10)
        assert [one.cancelled() for one in readings[:2]] == [True, True]
        assert past.tasks == frozenset(readings[2:])
        for reading in readings[2:]:
            reading.cancel()
        await asyncio.wait(readings)


@respx.mock
async def test_prompts_beside_a_reading_are_remembered_within_a_bound() -> None:
    """The oldest goes, and is taken for the past again."""
    rows = [{"id": f"msg_acp_{number}", "type": "user"} for number in range(PROMPTS + 1)]
    respx.get(f"{SESSION}/inbox").mock(listed())
    respx.get(f"{API}/session/active").mock(httpx.Response(200, json={"data": {}}))
    respx.get(f"{API}/session").mock(side_effect=lambda _: listed())
    respx.get(f"{SESSION}/message").mock(listed(*reversed(rows)))
    said = list[v.Notice]()
    async with Server(URL, sleep=no_pause) as server:
        services = Told().services(server, time=Time())
        past = Past(services, SessionCore("ses_a", services.offsets), said.append)
        reading = past.read()
        for row in rows:
            past.prompted(row["id"])
        past.tell(7, reading)
        await reading

        async def come() -> bool:
            return bool(said)

        await until("the notice", come)
    assert said[0].data["messageId"] == "msg_acp_0"
