"""Permission requests of a connection: what counts as an approval, and answers that come late."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from tests.unit.engine.front import ALLOW, ASK, REJECT, SHELL, Front, Stage, stage, words


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Stage]:
    async with stage(tmp_path, ASK) as scene:
        yield scene


@pytest.fixture
async def front(scene: Stage) -> Front:
    return await scene.front()


SHAPES: Final[tuple[object, ...]] = (
    None,
    {},
    [],
    "allow_once",
    {"outcome": None},
    {"outcome": "selected"},
    {"outcome": {"outcome": "cancelled"}},
    {"outcome": {"outcome": "cancelled", "optionId": "allow_once"}},
    {"outcome": {"optionId": "allow_once"}},
    {"outcome": {"outcome": "selected"}},
    {"outcome": {"outcome": "selected", "optionId": ["allow_once"]}},
    {"outcome": {"outcome": "selected", "optionId": {"a": 1}}},
    {"outcome": {"outcome": "selected", "optionId": "ALLOW_ONCE"}},
    {"outcome": {"outcome": "selected", "optionId": "allow_always"}},
    {"outcome": {"outcome": "selected", "optionId": 1}},
    {"outcome": {"outcome": ["selected"], "optionId": "allow_once"}},
    {"optionId": "allow_once", "outcome": {"outcome": "selected", "optionId": True}},
    REJECT,
)


async def test_everything_but_a_clear_approval_is_a_rejection(scene: Stage, front: Front) -> None:
    session = await front.new(scene.root)
    script = " || ".join([SHELL] * (len(SHAPES) + 1))
    ident = front.prompt(session, f"@@{script} || text 1@@")
    for number, shape in enumerate(SHAPES, 1):
        front.reply(await front.ask(number), shape)
    front.wire.say({"jsonrpc": "2.0", "id": (await front.ask(len(SHAPES) + 1))["id"],
                    "error": {"code": "x", "message": None}})  # fmt: skip
    assert (await front.answer(ident))["stopReason"] == "end_turn"
    replies = scene.asked("POST", "/reply")
    assert [reply["decision"] for reply in replies] == ["reject"] * (len(SHAPES) + 1)
    assert all(reply["message"] for reply in replies)
    assert front.text(session) == words(1)


async def test_an_approval_lets_the_tool_run(scene: Stage, front: Front) -> None:
    session = await front.new(scene.root)
    ident = front.prompt(session, f"@@{SHELL} || text 1@@")
    ask = await front.ask()
    assert [option["optionId"] for option in ask["params"]["options"]] == [
        "allow_once",
        "reject_once",
    ]
    front.reply(ask, ALLOW)
    await front.answer(ident)
    assert front.updates(session, "tool_call_update")[-1]["status"] == "completed"


async def test_always_is_taken_where_it_is_offered(tmp_path: Path) -> None:
    async with stage(tmp_path, ASK, allow_always=True) as scene:
        front = await scene.front()
        session = await front.new(tmp_path)
        ident = front.prompt(session, f"@@{SHELL} || {SHELL} || text 1@@")
        ask = await front.ask()
        assert "allow_always" in [option["optionId"] for option in ask["params"]["options"]]
        front.reply(ask, {"outcome": {"outcome": "selected", "optionId": "allow_always"}})
        await front.answer(ident)
        assert [reply["decision"] for reply in scene.asked("POST", "/reply")] == ["always"]


async def test_an_answer_after_the_withdrawal_counts_for_nothing(
    scene: Stage, front: Front
) -> None:
    session = await front.new(scene.root)
    ident = front.prompt(session, f"@@{SHELL} || text 1@@")
    ask = await front.ask()
    front.notify("session/cancel", sessionId=session)
    withdrawn = await front.line(lambda line: line.get("method") == "$/cancel_request")
    assert withdrawn["params"] == {"requestId": ask["id"]}
    front.reply(ask, ALLOW)
    assert (await front.answer(ident))["stopReason"] == "cancelled"
    front.reply(ask, ALLOW)
    assert [reply["decision"] for reply in scene.asked("POST", "/reply")] == ["reject"]
    assert scene.asked("POST", "/interrupt") == []
    assert (await front.answer(front.prompt(session, "@@text 1@@")))["stopReason"] == "end_turn"


async def test_an_ask_that_somebody_else_answered_is_withdrawn(scene: Stage, front: Front) -> None:
    session = await front.new(scene.root)
    ident = front.prompt(session, f"@@{SHELL} || text 1@@")
    ask = await front.ask()
    (open_ask,) = scene.stub.host.permissions.asks.values()
    scene.stub.host.permissions.reply(session, open_ask.id, "once", None)
    withdrawn = await front.line(lambda line: line.get("method") == "$/cancel_request")
    assert withdrawn["params"] == {"requestId": ask["id"]}
    front.reply(ask, REJECT)
    assert (await front.answer(ident))["stopReason"] == "end_turn"
    assert scene.asked("POST", "/reply") == []
