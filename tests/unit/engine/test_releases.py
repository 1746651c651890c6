"""Sessions that are let go of: by a close, a deletion, an opening that fails, or an exit.

Whichever way it goes, each prompt is answered and nothing stays behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from adapter.acp.prompts import PromptContent
from adapter.core import values as v
from adapter.engine.client import Attachment
from adapter.engine.engine import Engine
from adapter.engine.hub import Hub
from adapter.limits import Bound, Limits
from contract.errors import Code
from stubs.server import Rule
from stubs.waiting import until
from tests.unit.engine.front import AnswerError, Front, Stage, stage, words
from tests.unit.engine.test_hub import Listener

Json = dict[str, Any]
TURN = "msg_acp_left"
CATALOGUE = "/api/(agent|model)$"


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Stage]:
    async with stage(tmp_path) as scene:
        yield scene


async def refused(front: Front, ident: int, code: str = "not_open") -> None:
    with pytest.raises(AnswerError) as caught:
        async with asyncio.timeout(10):
            await front.answer(ident)
    assert caught.value.data["code"] == code
    assert caught.value.data["retrySafe"] is True


async def opened(front: Front, session: str) -> None:
    async def there() -> bool:
        return session in front.connection.open_sessions

    await until("the session is being opened", there)


async def closing(front: Front, session: str) -> None:
    async def gone() -> bool:
        return session not in front.connection.open_sessions

    await until("the session is being closed", gone)


def open_anew(front: Front, scene: Stage, method: str, session: str) -> int:
    return front.send(f"session/{method}", sessionId=session, cwd=str(scene.root), mcpServers=[])


# A deletion


async def test_a_prompt_during_a_deletion_is_refused_at_once(scene: Stage) -> None:
    front = await scene.front()
    session = await front.new(scene.root)
    scene.stub.faults.add(Rule("delay", "/session/[^/]+$", "DELETE", seconds=0.5))
    deletion = front.send("session/delete", sessionId=session)
    await scene.until_asked("DELETE", session)
    await refused(front, front.prompt(session, "@@text 1@@"))
    assert await front.answer(deletion) == {}
    assert scene.asked("POST", "/prompt") == []
    assert front.connection.open_sessions == frozenset()


async def test_a_deletion_that_fails_leaves_the_session_open(scene: Stage) -> None:
    front = await scene.front()
    session = await front.new(scene.root)
    scene.stub.faults.add(Rule("status", "/session/[^/]+$", "DELETE", times=100))
    with pytest.raises(AnswerError):
        await front.call("session/delete", sessionId=session)
    assert front.connection.open_sessions == {session}
    await front.answer(front.prompt(session, "@@text 2@@"))
    assert front.text(session) == words(2)


async def test_a_deletion_counts_as_open_until_it_is_known(tmp_path: Path) -> None:
    async with stage(tmp_path, limits=Limits(sessions_per_connection=1)) as scene:
        front = await scene.front()
        session = await front.new(scene.root)
        scene.stub.faults.add(Rule("delay", "/session/[^/]+$", "DELETE", seconds=0.5))
        deletion = front.send("session/delete", sessionId=session)
        await scene.until_asked("DELETE", session)
        with pytest.raises(AnswerError) as caught:
            await front.new(scene.root)
        assert caught.value.code == Code.LIMIT
        await front.answer(deletion)
        await front.new(scene.root)


async def test_what_is_opened_during_a_deletion_goes_with_it(scene: Stage) -> None:
    front = await scene.front()
    session = await front.new(scene.root)
    scene.stub.faults.add(Rule("delay", "/session/[^/]+$", "DELETE", seconds=0.5))
    deletion = front.send("session/delete", sessionId=session)
    await scene.until_asked("DELETE", session)
    await front.answer(open_anew(front, scene, "resume", session))
    prompt = front.prompt(session, "@@text 2 && wait 60000@@")
    await front.until_text(session, words(2))
    await front.answer(deletion)
    async with asyncio.timeout(10):
        with pytest.raises(AnswerError):
            await front.answer(prompt)
    assert front.connection.open_sessions == frozenset()
    assert scene.engine.open_sessions == 0


async def test_a_client_that_leaves_during_a_close_stops_its_turn(scene: Stage) -> None:
    """The prompt is on its way: it has to be taken back by whoever sees the end of that."""
    front = Front(scene.engine)
    session = await front.new(scene.root)
    scene.stub.faults.add(Rule("delay", "/prompt$", "POST", seconds=0.3))
    front.prompt(session, "@@text 2 && wait 60000@@")
    await scene.until_asked("POST", "/prompt")
    front.send("session/close", sessionId=session)
    await closing(front, session)
    front.wire.hang_up()
    await front.peer.stop()
    interrupts, withdrawals = await front.connection.leave()
    asked = [seen for seen in scene.stub.log if "/interrupt" in seen.path or "/inbox/" in seen.path]
    assert interrupts or withdrawals or asked
    await front.close()


# An opening that fails


@pytest.mark.parametrize("method", ["resume", "load"])
async def test_nothing_is_prompted_before_the_opening_was_answered(
    scene: Stage, method: str
) -> None:
    first, front = await scene.front(), await scene.front()
    session = await first.new(scene.root)
    scene.engine.catalogues.invalidate()
    scene.stub.faults.add(Rule("delay", CATALOGUE, "GET", seconds=0.3))
    opening = open_anew(front, scene, method, session)
    await opened(front, session)
    await refused(front, front.prompt(session, "@@text 2@@"))
    await front.answer(opening)
    await front.answer(front.prompt(session, "@@text 2@@"))
    assert front.text(session) == words(2)


async def test_the_first_opening_that_is_answered_counts_for_the_later_ones(scene: Stage) -> None:
    """Two at once: the session is open if one of them was answered, whatever the other became."""
    first, front = await scene.front(), await scene.front()
    session = await first.new(scene.root)
    failing = scene.stub.faults.add(Rule("status", "/message$", "GET", times=100))
    opening, load = (open_anew(front, scene, method, session) for method in ("resume", "load"))
    await front.answer(opening)
    with pytest.raises(AnswerError):
        await front.answer(load)
    assert failing.times < 100
    scene.stub.faults.clear()
    await front.answer(front.prompt(session, "@@text 2@@"))
    assert front.text(session) == words(2)


@pytest.mark.parametrize("methods", [("load", "load"), ("resume", "load"), ("resume", "resume")])
async def test_of_two_openings_that_fail_nothing_is_open(
    scene: Stage, methods: tuple[str, str]
) -> None:
    first, front = await scene.front(), await scene.front()
    session = await first.new(scene.root)
    await first.call("session/close", sessionId=session)
    scene.engine.catalogues.invalidate()
    scene.stub.faults.add(Rule("status", "/message$|/api/(agent|model)", "GET", times=1000))
    openings = [open_anew(front, scene, method, session) for method in methods]
    for opening in openings:
        with pytest.raises(AnswerError):
            await front.answer(opening)
    assert front.connection.open_sessions == frozenset()
    assert scene.engine.open_sessions == 0
    await refused(front, front.prompt(session, "@@text 2@@"))


# What is put aside


async def put_aside(scene: Stage, front: Front) -> str:
    """A session of the connection that is put aside, in an engine that is full."""
    session = await front.new(scene.root)

    async def done() -> bool:
        return scene.engine.open_sessions == 0

    await until("the session is put aside", done)
    busy = await front.new(scene.root)
    front.prompt(busy, "@@text 2 && wait 60000@@")
    await front.until_text(busy, words(2))
    return session


@pytest.mark.parametrize("method", ["close", "delete"])
async def test_what_is_put_aside_is_ended_without_room(tmp_path: Path, method: str) -> None:
    limits = Limits(sessions=1, idle_seconds=0.05)
    async with stage(tmp_path, limits=limits) as scene:
        front = await scene.front()
        session = await put_aside(scene, front)
        assert await front.call(f"session/{method}", sessionId=session) == {}
        assert session not in front.connection.open_sessions
        assert (session in scene.stub.host.store.sessions) is (method == "close")
        assert scene.engine.counters[Bound.SESSIONS] == 0
        await refused(front, front.prompt(session, "@@text 1@@"))


async def test_a_deletion_that_fails_leaves_it_aside(tmp_path: Path) -> None:
    limits = Limits(sessions=1, idle_seconds=0.05)
    async with stage(tmp_path, limits=limits) as scene:
        front = await scene.front()
        session = await put_aside(scene, front)
        scene.stub.faults.add(Rule("status", "/session/[^/]+$", "DELETE", times=100))
        with pytest.raises(AnswerError):
            await front.call("session/delete", sessionId=session)
        assert session in front.connection.open_sessions


# The engine


async def with_a_turn(scene: Stage, engine: Engine) -> tuple[Hub, int, asyncio.Future[v.Outcome]]:
    """A hub with one client, whose turn runs."""
    session = await scene.engine.server.create_session(str(scene.root))
    hub = engine.hub(session, str(scene.root))
    listener, owner = Listener(), engine.new_owner()
    hub.attach(Attachment(owner, listener))
    answer = hub.prompt(owner, TURN, PromptContent("@@text 2 && wait 60000@@"))
    await listener.until_text(2)
    return hub, owner, answer


@pytest.mark.parametrize("way", ["release", "drop"])
async def test_a_turn_that_is_left_is_answered(scene: Stage, way: str) -> None:
    hub, owner, answer = await with_a_turn(scene, scene.engine)
    assert hub.detach(owner)
    if way == "release":
        await scene.engine.release(hub)
    else:
        scene.engine.drop(hub)
    assert answer.done()
    assert answer.result().code == Code.UNKNOWN_OUTCOME
    assert not any(hub.core.tables().values())


async def test_a_turn_that_is_left_at_the_end_of_the_engine_is_answered(scene: Stage) -> None:
    async with Engine(scene.engine.settings) as engine:
        _, _, answer = await with_a_turn(scene, engine)
    assert answer.done()
    assert answer.result().code == Code.UNKNOWN_OUTCOME


async def test_nothing_is_armed_on_an_engine_that_ended_right_behind_a_drop(scene: Stage) -> None:
    async with Engine(scene.engine.settings) as engine:
        hub, owner, _ = await with_a_turn(scene, engine)
        assert hub.timers
        hub.detach(owner)
        engine.drop(hub)
    assert not hub.timers
