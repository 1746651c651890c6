"""A request that is refused leaves everything as it was: here and on the server (S3-L14)."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from adapter.limits import Bound, Limits
from stubs.waiting import until
from tests.unit.engine.front import AnswerError, Front, Stage, stage

LIMITS = Limits(
    sessions_per_connection=3,
    sessions=4,
    prompts_per_connection=2,
    prompts=3,
    prompt_chars=40,
    attachment_bytes=8,
)
WORK = "@@wait 60000@@"
STEPS = 60
Blocks = list[dict[str, Any]]


def text(words: str) -> Blocks:
    return [{"type": "text", "text": words}]


BAD_PROMPTS: list[Blocks] = [
    [],
    text(" "),
    text("x" * 41),
    text("x") * 300,
    [{"type": "audio", "data": "QUFB", "mimeType": "audio/wav"}],
    [{"type": "image", "data": "!", "mimeType": "image/png"}],
    [{"type": "image", "data": "QUFBQUFBQUFBQUFB", "mimeType": "image/png"}],
    [{"type": "nonsense"}],
]


def kept(scene: Stage, fronts: list[Front]) -> Mapping[str, object]:
    """All that a refused request could have changed.

    Whether an open session is put aside is no client's business.
    """
    store = scene.stub.host.store
    return {
        "open": [front.connection.open_sessions for front in fronts],
        "turns": scene.engine.turns,
        "at the server": len(store.sessions),
        "prompts": len(scene.asked("POST", "/prompt")),
    }


async def ask(scene: Stage, front: Front, dice: random.Random, known: list[str]) -> None:
    """One request of a careless client. Raises AnswerError."""
    root = scene.root
    session = dice.choice([*known, "ses_none", "nonsense"])
    match dice.randrange(8):
        case 0 | 1:
            known.append(await front.new(root))
        case 2:
            cwd = dice.choice([str(root), "relative", "/nonexistent"])
            await front.call("session/resume", sessionId=session, cwd=cwd, mcpServers=[])
        case 3 | 4:
            prompt = dice.choice([text(WORK), text(WORK), *BAD_PROMPTS])
            ident = front.send("session/prompt", sessionId=session, prompt=prompt)
            await taken_or_refused(scene, front, ident)
        case 5:
            await front.call("session/set_mode", sessionId=session, modeId="nonsense")
        case 6:
            await front.call(
                "session/set_config_option", sessionId=session, configId="model", value="no/such"
            )
        case _:
            await front.call("session/new", cwd="relative", mcpServers=[])


async def taken_or_refused(scene: Stage, front: Front, ident: int) -> None:
    """A prompt that is taken has no answer for long. Raises AnswerError for the other ones."""
    before = len(scene.asked("POST", "/prompt"))
    answer = asyncio.create_task(front.answer(ident))

    async def decided() -> bool:
        return answer.done() or len(scene.asked("POST", "/prompt")) > before

    await until("the prompt is taken or refused", decided)
    if answer.done():
        answer.result()
    answer.cancel()
    await asyncio.wait({answer})


@pytest.mark.parametrize("seed", range(4))
async def test_a_refused_request_changes_nothing(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    refused = 0
    async with stage(tmp_path, limits=LIMITS) as scene:
        await scene.until_up()
        fronts = [await scene.front(), await scene.front()]
        known: list[str] = []
        for _ in range(STEPS):
            before = kept(scene, fronts)
            try:
                await ask(scene, dice.choice(fronts), dice, known)
            except AnswerError as error:
                refused += 1
                assert kept(scene, fronts) == before, str(error)
        counted = scene.engine.counters
        assert refused > STEPS // 3
        assert counted[Bound.SESSIONS_PER_CONNECTION] + counted[Bound.SESSIONS] > 0
        tables = scene.engine.tables()
        assert tables["turns"] <= LIMITS.prompts
        assert tables["sessions"] <= LIMITS.sessions


async def test_prompts_over_the_limit_are_refused_and_may_be_sent_again(tmp_path: Path) -> None:
    limits = Limits(prompts_per_connection=1, prompts=2)
    async with stage(tmp_path, limits=limits) as scene:
        fronts = [await scene.front() for _ in range(3)]
        sessions = [await front.new(tmp_path) for front in fronts]
        other = await fronts[0].new(tmp_path)
        first = fronts[0].prompt(sessions[0], "@@text 2 && wait 60000@@")
        await fronts[0].until_text(sessions[0], "w1 ")

        async def too_many(front: Front, session: str) -> None:
            with pytest.raises(AnswerError) as caught:
                await front.answer(front.prompt(session, "@@text 1@@"))
            assert caught.value.code == -32053
            assert caught.value.data["code"] == "too_many"
            assert caught.value.data["retrySafe"] is True
            assert caught.value.data["admitted"] is False

        await too_many(fronts[0], other)
        second = fronts[1].prompt(sessions[1], "@@text 2 && wait 60000@@")
        await fronts[1].until_text(sessions[1], "w1 ")
        await too_many(fronts[2], sessions[2])
        counted = scene.engine.counters
        assert (counted[Bound.PROMPTS_PER_CONNECTION], counted[Bound.PROMPTS]) == (1, 1)
        fronts[0].notify("session/cancel", sessionId=sessions[0])
        assert (await fronts[0].answer(first))["stopReason"] == "cancelled"
        await fronts[2].answer(fronts[2].prompt(sessions[2], "@@text 1@@"))
        fronts[1].notify("session/cancel", sessionId=sessions[1])
        assert (await fronts[1].answer(second))["stopReason"] == "cancelled"
