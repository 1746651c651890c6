"""A client acts on what it opened on its own connection, and by ids that can be no other path.

Clients that one daemon serves trust each other (README, "The daemon"): any session may be opened,
listed, copied and deleted. What is guarded here is that nothing happens by a mere id.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest

from contract.errors import Code
from tests.unit.engine.front import (
    ALLOW,
    ASK,
    REJECT,
    SHELL,
    AnswerError,
    Front,
    Json,
    Stage,
    stage,
    words,
)

HI: Final = [{"type": "text", "text": "@@text 1@@"}]
# Every request that acts on an open session.
ACTS: Final[dict[str, Json]] = {
    "session/prompt": {"prompt": HI},
    "session/set_mode": {"modeId": "plan"},
    "session/set_config_option": {"configId": "mode", "value": "plan"},
}
HOSTILE: Final = (
    "..", "../active", "ses_", "ses_a/../../info", "ses_a%2f..", "ses_a?x=1", "ses_a#", "ses_a\n",
    "ses_a b", "ses_\u00e4", "global", "/api/session", "ses_" + "a" * 201, "msg_a", "", "\0",
)  # fmt: skip
OPENINGS: Final = ("session/resume", "session/load", "session/fork")


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Stage]:
    async with stage(tmp_path, ASK) as scene:
        await scene.until_up()
        yield scene


def writes(scene: Stage) -> list[tuple[str, str]]:
    """Every request so far that could have changed something at the server."""
    return [(seen.method, seen.path) for seen in scene.stub.log if seen.method != "GET"]


async def refused(front: Front, method: str, session: str, **params: Any) -> AnswerError:
    with pytest.raises(AnswerError) as caught:
        await front.call(method, sessionId=session, **params)
    return caught.value


async def meddle(scene: Stage, stranger: Front, session: str, request: int) -> None:
    """All that a client can say of a session that it has not open, and of another's request."""
    for method, params in ACTS.items():
        error = await refused(stranger, method, session, **params)
        assert (error.code, error.data["code"]) == (Code.INTERNAL, "not_open")
    stranger.notify("session/cancel", sessionId=session)
    stranger.notify("$/cancel_request", requestId=request)
    # A close of what is not open here has nothing to do (ACP).
    assert await stranger.call("session/close", sessionId=session) == {}
    assert stranger.connection.open_sessions == frozenset()


class Work:
    """A turn of a client that waits for the answer to a permission; nothing else may end it."""

    def __init__(self, scene: Stage, owner: Front, session: str) -> None:
        self.scene = scene
        self.owner = owner
        self.session = session
        self.request = owner.prompt(session, f"@@text 3 && {SHELL}@@")
        self._before: list[tuple[str, str]] = []
        self._ask: Json = {}

    async def begin(self) -> None:
        self._ask = await self.owner.ask()
        self._before = writes(self.scene)

    async def end(self) -> None:
        """Nothing was done at the server meanwhile, and the turn goes on to its end."""
        assert writes(self.scene) == self._before
        self.owner.reply(self._ask, ALLOW)
        assert (await self.owner.answer(self.request))["stopReason"] == "end_turn"
        assert self.owner.text(self.session) == f"{words(3)}done "


async def test_a_session_of_another_client_is_left_alone(scene: Stage) -> None:
    owner, stranger = await scene.front(), await scene.front()
    session = await owner.new(scene.root)
    work = Work(scene, owner, session)
    await work.begin()
    await meddle(scene, stranger, session, work.request)
    await work.end()
    assert [line for line in stranger.lines if "method" in line] == []


async def test_what_a_client_closed_it_may_not_use_any_more(scene: Stage) -> None:
    """Though another has it open still."""
    owner, stranger = await scene.front(), await scene.front()
    session = await owner.new(scene.root)
    await stranger.call("session/resume", sessionId=session, cwd=str(scene.root))
    await stranger.call("session/close", sessionId=session)
    work = Work(scene, owner, session)
    await work.begin()
    await meddle(scene, stranger, session, work.request)
    await work.end()


async def test_a_cancel_in_a_shared_session_stops_no_turn_of_another(scene: Stage) -> None:
    owner, other = await scene.front(), await scene.front()
    session = await owner.new(scene.root)
    await other.call("session/resume", sessionId=session, cwd=str(scene.root))
    work = Work(scene, owner, session)
    await work.begin()
    other.notify("session/cancel", sessionId=session)
    await other.call("session/close", sessionId=session)
    await work.end()


async def test_a_permission_is_answered_by_whom_it_was_asked(scene: Stage) -> None:
    owner, stranger = await scene.front(), await scene.front()
    session = await owner.new(scene.root)
    turn = owner.prompt(session, f"@@{SHELL}@@")
    ask = await owner.ask()
    stranger.reply(ask, ALLOW)
    await stranger.call("session/list")
    assert scene.asked("POST", "/reply") == []
    owner.reply(ask, REJECT)
    await owner.answer(turn)
    (reply,) = scene.asked("POST", "/reply")
    assert reply["decision"] == "reject"


@pytest.mark.parametrize("method", [*ACTS, *OPENINGS, "session/close", "session/delete"])
async def test_an_id_that_no_server_can_have_reaches_no_server(scene: Stage, method: str) -> None:
    front = await scene.front()
    await front.new(scene.root)
    before = len(scene.stub.log)
    params = {"cwd": str(scene.root), **ACTS.get(method, {})}
    for session in HOSTILE:
        if method in ("session/close", "session/delete"):
            assert await front.call(method, sessionId=session) == {}
            continue
        error = await refused(front, method, session, **params)
        expected = Code.SESSION_GONE if method in OPENINGS else Code.INTERNAL
        assert error.code == expected, session
    front.notify("session/cancel", sessionId=HOSTILE[0])
    await front.call("session/list")
    # Those of the list, and no other.
    asked = {seen.path for seen in list(scene.stub.log)[before:]}
    assert asked == {"/api/session", "/api/session/active"}
