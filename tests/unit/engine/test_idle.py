"""Attachments that nobody uses: put aside after a while or for another, and back when used."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from adapter.engine.counters import Counters
from adapter.engine.idle import Places
from adapter.limits import Bound, Limits
from stubs.server import Rule
from stubs.waiting import until
from tests.unit.engine.front import AnswerError, Stage, stage, words
from tests.unit.engine.rig import Time

IDLE = 100.0


class Rig:
    """Places on a clock that only the test moves; `aside` is who was put aside, in order."""

    def __init__(self) -> None:
        self.time = Time()
        self.counters = Counters()
        self.places = Places(Limits(idle_seconds=IDLE), self.time.clock, self.counters)
        self.aside: list[int] = []
        self.busy: set[int] = set()

    def add(self, owner: int) -> None:
        def put_aside() -> None:
            self.aside.append(owner)
            self.places.discard(owner)

        self.places.add(owner, lambda: owner not in self.busy, put_aside)


@pytest.fixture
async def rig() -> AsyncIterator[Rig]:
    rig = Rig()
    yield rig
    rig.places.close()


async def test_the_one_that_is_idle_longest_makes_room(rig: Rig) -> None:
    for owner in (1, 2, 3):
        rig.add(owner)
    with rig.places.request(1):
        pass
    assert rig.places.make_room()
    assert rig.places.make_room()
    assert rig.aside == [2, 3]
    assert rig.counters[Bound.IDLE_SECONDS] == 2


async def test_what_is_in_use_makes_no_room(rig: Rig) -> None:
    rig.add(1)
    rig.add(2)
    rig.busy.add(2)
    with rig.places.request(1):
        rig.time.now += IDLE * 2
        assert not rig.places.make_room()
    assert rig.places.make_room()
    assert rig.aside == [1]
    assert not rig.places.make_room()
    assert len(rig.places) == 1


async def test_a_request_of_what_is_not_known_is_none_of_ours(rig: Rig) -> None:
    for owner in (None, 7):
        with rig.places.request(owner):
            pass
    rig.add(1)
    with rig.places.request(1):
        rig.places.discard(1)
    assert len(rig.places) == 0


async def test_what_has_been_idle_for_a_while_goes_by_a_limit_that_is_lowered(rig: Rig) -> None:
    rig.add(1)
    rig.time.now += IDLE / 2
    rig.places.go_by(Limits(idle_seconds=0.01))

    async def done() -> bool:
        return rig.aside == [1]

    await until("it is put aside", done)
    rig.places.go_by(Limits(idle_seconds=IDLE))
    assert len(rig.places) == 0


# On a connection


def aside(scene: Stage) -> int:
    return scene.engine.counters[Bound.IDLE_SECONDS]


async def until_aside(scene: Stage, number: int = 1) -> None:
    async def done() -> bool:
        return aside(scene) >= number and scene.engine.open_sessions == 0

    await until(f"{number} sessions are put aside", done)


QUICK = Limits(idle_seconds=0.05)


async def test_an_idle_session_is_put_aside_and_works_on(tmp_path: Path) -> None:
    async with stage(tmp_path, limits=QUICK) as scene:
        front = await scene.front()
        session = await front.new(tmp_path)
        await until_aside(scene)
        assert session not in scene.engine.watch
        for number in (1, 2):
            await front.answer(front.prompt(session, "@@text 2@@"))
            assert front.text(session) == words(2) * number
            await until_aside(scene, number + 1)
        await front.call("session/set_mode", sessionId=session, modeId="plan")
        await front.call("session/resume", sessionId=session, cwd=str(tmp_path))
        await until_aside(scene)
        await front.call("session/close", sessionId=session)
        with pytest.raises(AnswerError) as caught:
            await front.answer(front.prompt(session, "@@text 2@@"))
        assert caught.value.data["code"] == "not_open"


async def test_a_reload_that_lowers_the_limit_counts_for_open_sessions(tmp_path: Path) -> None:
    async with stage(tmp_path) as scene:
        front = await scene.front()
        await front.new(tmp_path)
        scene.engine.reconfigure(dataclasses.replace(scene.engine.settings, limits=QUICK))
        await until_aside(scene)


async def test_a_turn_is_not_idle_however_long_it_takes(tmp_path: Path) -> None:
    async with stage(tmp_path, limits=QUICK) as scene:
        front = await scene.front()
        session = await front.new(tmp_path)
        answer = front.prompt(session, "@@text 2 && wait 400 && text 2@@")
        await front.until_text(session, words(2))
        beside = await front.new(tmp_path)
        await until_one_left(scene, beside)
        assert (await front.answer(answer))["stopReason"] == "end_turn"
        assert front.text(session) == words(2) * 2


async def until_one_left(scene: Stage, gone: str) -> None:
    async def done() -> bool:
        return gone not in scene.engine.watch and scene.engine.open_sessions == 1

    await until("the other is put aside", done)


async def test_a_cancel_right_behind_a_prompt_finds_its_turn(tmp_path: Path) -> None:
    async with stage(tmp_path, limits=QUICK) as scene:
        front = await scene.front()
        session = await front.new(tmp_path)
        await until_aside(scene)
        answer = front.prompt(session, "@@text 2 && wait 60000@@")
        front.notify("session/cancel", sessionId=session)
        assert (await front.answer(answer))["stopReason"] == "cancelled"


async def test_what_changed_meanwhile_is_told(tmp_path: Path) -> None:
    async with stage(tmp_path, limits=QUICK) as scene:
        front = await scene.front()
        session = await front.new(tmp_path)
        await until_aside(scene)
        await scene.engine.server.set_agent(session, "plan")
        await front.answer(front.prompt(session, "@@text 2@@"))
        told = await front.line(
            lambda line: line.get("params", {}).get("update", {}).get("currentModeId") == "plan"
        )
        assert told["params"]["sessionId"] == session


async def test_what_is_heard_in_the_reading_hides_nothing_of_it(tmp_path: Path) -> None:
    async with stage(tmp_path, limits=QUICK) as scene:
        front = await scene.front()
        session = await front.new(tmp_path)
        await until_aside(scene)
        await scene.engine.server.set_agent(session, "plan")
        path = f"/api/session/{session}"
        readings = len(scene.asked("GET", path))
        scene.stub.faults.add(Rule("delay", f"{path}$", method="GET", seconds=0.3))
        answer = front.prompt(session, "@@text 2@@")
        await scene.until_asked("GET", path, readings + 1)
        data = {"sessionID": session, "title": "Another"}
        scene.stub.inject({"id": "evt_1", "type": "session.renamed", "data": data})
        await front.answer(answer)
        await front.line(
            lambda line: line.get("params", {}).get("update", {}).get("currentModeId") == "plan"
        )


async def test_a_session_of_a_client_that_watches_stays(tmp_path: Path) -> None:
    async with stage(tmp_path, limits=QUICK) as scene:
        front = await scene.front()
        watched = await front.new(tmp_path, _meta={"opencode-acp": {"ambient": True}})
        other = await front.new(tmp_path)
        for number in (1, 2, 3):
            await until_one_left(scene, other)
            assert aside(scene) == number
            await front.answer(front.prompt(other, "@@text 1@@"))
        assert watched in scene.engine.watch


async def test_one_of_two_attachments_leaves_the_session_to_the_other(tmp_path: Path) -> None:
    async with stage(tmp_path, limits=QUICK) as scene:
        one, two = await scene.front(), await scene.front()
        session = await one.new(tmp_path)
        answer = one.prompt(session, "@@text 2 && wait 300@@")
        await one.until_text(session, words(2))
        await two.call("session/resume", sessionId=session, cwd=str(tmp_path))
        assert (await one.answer(answer))["stopReason"] == "end_turn"
        await until_aside(scene, 2)
        for front in (one, two):
            await front.answer(front.prompt(session, "@@text 1@@"))


async def test_what_is_aside_still_counts_for_its_connection(tmp_path: Path) -> None:
    limits = Limits(idle_seconds=0.05, sessions_per_connection=1)
    async with stage(tmp_path, limits=limits) as scene:
        front = await scene.front()
        await front.new(tmp_path)
        await until_aside(scene)
        with pytest.raises(AnswerError, match="1 session open"):
            await front.new(tmp_path)


async def test_a_full_engine_makes_room_by_what_is_idle(tmp_path: Path) -> None:
    async with stage(tmp_path, limits=Limits(sessions=2)) as scene:
        one, two = await scene.front(), await scene.front()
        first, second = await one.new(tmp_path), await two.new(tmp_path)
        third = await two.new(tmp_path)
        assert [key in scene.engine.watch for key in (first, second, third)] == [False, True, True]
        answers = []
        for session in (second, third):
            answers.append(two.prompt(session, "@@text 1 && wait 60000@@"))
            await two.until_text(session, words(1))
        # Both are at work now.
        posted = len(scene.asked("POST", "/api/session"))
        with pytest.raises(AnswerError, match="All sessions"):
            await two.new(tmp_path)
        assert len(scene.asked("POST", "/api/session")) == posted
        with pytest.raises(AnswerError) as caught:
            await one.answer(one.prompt(first, "@@text 2@@"))
        assert (caught.value.code, caught.value.data["retrySafe"]) == (-32053, True)
        assert scene.engine.counters[Bound.SESSIONS] == 2
        two.notify("session/cancel", sessionId=second)
        await two.answer(answers[0])
        await one.answer(one.prompt(first, "@@text 2@@"))
        assert one.text(first) == words(2)
        two.notify("session/cancel", sessionId=third)
        await two.answer(answers[1])
        assert scene.engine.open_sessions == 2


async def test_an_opening_that_takes_too_long_fails_and_leaves_nothing(tmp_path: Path) -> None:
    async with stage(tmp_path, limits=Limits(setup_seconds=0.2)) as scene:
        front = await scene.front()
        session = await front.new(tmp_path)
        await front.call("session/close", sessionId=session)
        scene.engine.catalogues.invalidate()
        scene.stub.faults.add(Rule("delay", "/api/", times=100, seconds=2.0))
        for number, method in enumerate(("session/new", "session/resume", "session/load"), 1):
            with pytest.raises(AnswerError) as caught:
                await front.call(method, sessionId=session, cwd=str(tmp_path), mcpServers=[])
            assert caught.value.code == -32603
            assert "0.2 s" in caught.value.message
            assert scene.engine.counters[Bound.SETUP_SECONDS] == number
        assert scene.engine.open_sessions == 0
        assert len(scene.engine.places) == 0
        scene.stub.faults.clear()
        await front.call("session/resume", sessionId=session, cwd=str(tmp_path))
        assert scene.asked("POST", "/prompt") == []
