"""How often something may happen: so many times in any stretch of so many seconds."""

from __future__ import annotations

from pathlib import Path

import pytest

from adapter.engine.pace import Pace
from adapter.limits import Bound, Limits
from tests.unit.engine.front import AnswerError, stage
from tests.unit.engine.rig import Time


def test_the_stretch_moves_with_the_clock() -> None:
    time = Time()
    pace = Pace(2, 10.0, time.clock)
    assert pace.take()
    time.now += 6
    assert [pace.take(), pace.take()] == [True, False]
    time.now += 4
    assert [pace.take(), pace.take()] == [True, False]
    time.now += 6
    assert [pace.take(), pace.take()] == [True, False]


def test_what_is_refused_does_not_count() -> None:
    time = Time()
    pace = Pace(1, 10.0, time.clock)
    assert pace.take()
    time.now += 9.5
    assert not pace.take()
    time.now += 0.5
    assert pace.take()


async def test_one_session_too_many_is_refused_and_nothing_is_made(tmp_path: Path) -> None:
    async with stage(tmp_path, limits=Limits(session_creates=2)) as scene:
        front, other = await scene.front(), await scene.front()
        session = await front.new(tmp_path)
        await front.answer(front.prompt(session, "@@text 1@@"))
        await front.call("session/fork", sessionId=session, cwd=str(tmp_path), mcpServers=[])
        made = len(scene.asked("POST", "/session")), len(scene.asked("POST", "/fork"))
        for method, more in (("session/new", {}), ("session/fork", {"sessionId": session})):
            with pytest.raises(AnswerError) as caught:
                await front.call(method, cwd=str(tmp_path), mcpServers=[], **more)
            assert caught.value.code == -32053
            assert caught.value.data == {"code": "too_often", "retrySafe": True}
        assert made == (len(scene.asked("POST", "/session")), len(scene.asked("POST", "/fork")))
        assert scene.engine.counters[Bound.SESSION_CREATES] == 2
        # Another client is not held up by it, and nor is what makes no session.
        await other.new(tmp_path)
        resume = {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []}
        await front.call("session/resume", **resume)
