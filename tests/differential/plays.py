"""Random plays: one session, a prompt with a script, and what is done while it runs."""

from __future__ import annotations

import asyncio
import json
import random
from dataclasses import dataclass
from functools import partial
from typing import Final

from tests.unit.stubs.server_client import Client, Json, owner

ASK: Final = [{"action": "shell", "resource": "*", "effect": "ask"}]
DELTA: Final = "session.text.delta"
ASKED: Final = "permission.asked"
STILL: Final = 0.4
"""Seconds without anything that runs or waits, until a play counts as over."""


@dataclass(frozen=True, slots=True)
class Play:
    """`act` is done at the first text of the prompt, `decision` said to whatever is asked."""

    seed: int
    text: str
    asks: bool = False
    decision: Json | None = None
    act: str = ""
    second: str = ""


def play(seed: int) -> Play:
    """The play of a seed."""
    dice = random.Random(seed)
    steps = [_step(dice, is_last=False) for _ in range(dice.choice((0, 0, 1, 2)))]
    text = f"@@{' || '.join([*steps, _step(dice, is_last=True)])}@@"
    asks = "tool shell" in text and dice.random() < 0.5
    decisions: list[Json] = [
        {"decision": "once"},
        {"decision": "reject"},
        {"decision": "reject", "message": "no"},
    ]
    act = dice.choice(("", "", "interrupt", "queue", "steer", "withdraw"))
    second = f"@@{_step(dice, is_last=True)}@@" if act in ("queue", "steer", "withdraw") else ""
    return Play(seed, text, asks, dice.choice(decisions) if asks else None, act, second)


def _step(dice: random.Random, *, is_last: bool) -> str:
    """One response of the model; one that is not the last calls a tool."""
    actions: list[str] = []
    if dice.random() < 0.3:
        actions.append(f"think {dice.randint(1, 4)} 5")
    # Slow enough that what is done at the first text comes before the last.
    actions.append(f"text {dice.randint(8, 12)} 25")
    if is_last:
        end = dice.choice(("", "", "", "length", "filter", "error 400 always", "error 500 1"))
        if end.startswith("error"):
            return " && ".join([end, *actions])
        return " && ".join(filter(None, [*actions, end]))
    command = json.dumps({"command": dice.choice(("echo one", "echo two; false"))})
    missing = json.dumps({"filePath": "missing.txt"})
    calls = [f"tool shell {command}"] * dice.choice((1, 1, 2))
    if dice.random() < 0.2:
        calls = [f"tool read {missing}"]
    return " && ".join(actions + calls)


async def perform(one: Play, client: Client) -> str:
    """Play it to its end; the session."""
    session = await client.session(**({"permissions": ASK} if one.asks else {}))
    await client.prompt(session, one.text)
    answering = asyncio.create_task(_answer(one, client, session))
    try:
        if one.act:
            await _act(one, client, session)
        await _over(client, session)
    finally:
        answering.cancel()
        await asyncio.wait([answering])
    return session


async def _answer(one: Play, client: Client, session: str) -> None:
    count = 0
    while True:
        count += 1
        ask = await client.until(partial(_asked, session), count, None)
        path = f"/api/session/{session}/permission/{ask['data']['id']}/reply"
        await client.request("POST", path, one.decision)


async def _act(one: Play, client: Client, session: str) -> None:
    """At the first text, or never if the turn has none."""
    ends = ("session.execution.succeeded", "session.execution.failed")

    def began(event: Json) -> bool:
        return owner(event) == session and event["type"] in (DELTA, *ends)

    await client.until(began)
    if one.act == "interrupt":
        await client.request("POST", f"/api/session/{session}/interrupt")
        return
    delivery = "steer" if one.act == "steer" else "queue"
    item = await client.prompt(session, one.second, delivery=delivery)
    if one.act == "withdraw":
        await client.request("DELETE", f"/api/session/{session}/inbox/{item['id']}")


async def _over(client: Client, session: str) -> None:
    """Nothing runs or waits, and that for a little while."""
    loop = asyncio.get_running_loop()
    since: float | None = None
    while since is None or loop.time() - since < STILL:
        busy = session in await client.get("/api/session/active")
        busy = busy or bool(await client.get(f"/api/session/{session}/inbox"))
        since = None if busy else since or loop.time()
        await asyncio.sleep(0.05)


def _asked(session: str, event: Json) -> bool:
    return event["type"] == ASKED and owner(event) == session
