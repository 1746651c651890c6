"""The stub says what the real server said: event types, keys and marks, in the same order."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from stubs.server import Settings, StubServer
from tests.unit.stubs.server_client import Client, Json, owner

CAPTURES = Path(__file__).parents[2] / "data" / "captures"
SETTINGS = Settings(retry_base=0.01, first_request_delay=0.03)
TELLING = ("finish", "rawFinish", "reason", "delivery", "reply", "attempt", "ordinal", "name")
ASK = [{"action": "shell", "resource": "*", "effect": "ask"}]
SHELL = '@@say "Calling. " && tool shell {"command":"sleep 30"}@@'
QUESTIONS = {"questions": [{"question": "Q?", "header": "H", "options": []}]}

Play = Callable[[Client], Awaitable[str]]


def turn(text: str, ends: int = 1, **fields: object) -> Play:
    """A prompt that runs to its end."""

    async def play(client: Client) -> str:
        session = await client.session(**fields)
        await client.prompt(session, text)
        await client.end(session, ends)
        return session

    return play


def stopped(text: str, at: str) -> Play:
    """A prompt that is interrupted at an event."""

    async def play(client: Client) -> str:
        session = await client.session()
        await client.prompt(session, text)
        await client.event(at, session)
        if at == "session.inbox.delivered":
            await asyncio.sleep(2 * SETTINGS.first_request_delay)
        assert await client.request("POST", f"/api/session/{session}/interrupt") == (
            200,
            {"interrupted": True},
        )
        await client.end(session)
        return session

    return play


def asked(text: str, *answers: Json) -> Play:
    """A prompt whose asks are answered in their order, once all are open."""

    async def play(client: Client) -> str:
        session = await client.session(permissions=ASK)
        await client.prompt(session, text)
        await client.event("permission.asked", session, text.count("tool"))
        for ask in await client.get(f"/api/session/{session}/permission"):
            if answers:
                path = f"/api/session/{session}/permission/{ask['id']}/reply"
                await client.request("POST", path, answers[0])
        await client.end(session)
        return session

    return play


def chosen(route: str, body: Json) -> Play:
    """A prompt after a choice that names nothing."""

    async def play(client: Client) -> str:
        session = await client.session()
        assert (await client.request("POST", f"/api/session/{session}/{route}", body))[0] == 204
        await client.prompt(session, "hello")
        await client.end(session)
        return session

    return play


async def background(client: Client) -> str:
    """A child in the background whose shell call is approved after the parent's turn."""
    session = await client.session(permissions=ASK)
    script = '\\u0040\\u0040say \\"Calling. \\" && tool shell {\\"command\\":\\"sleep 0.1\\"}'
    child = f'"{script} || text 5 60\\u0040\\u0040"'
    data = f'{{"agent":"general","description":"do it","prompt":{child},"background":true}}'
    await client.prompt(session, f'@@say "Calling. " && tool subagent {data} || text 1@@')
    await client.end(session)
    ask = await client.until(lambda event: event["type"] == "permission.asked")
    path = f"/api/session/{owner(ask)}/permission/{ask['data']['id']}/reply"
    assert (await client.request("POST", path, {"decision": "once"}))[0] == 204
    await client.end(session, 2)
    return session


async def asked_question(client: Client) -> str:
    """A question that is answered."""
    session = await client.session()
    data = json.dumps(QUESTIONS)
    await client.prompt(session, f'@@say "Calling. " && tool question {data} || text 1@@')
    form = (await client.event("form.created", session))["data"]["form"]["id"]
    path = f"/api/session/{session}/form/{form}/reply"
    assert (await client.request("POST", path, {"answer": {}}))[0] == 204
    await client.end(session)
    return session


async def deleted(client: Client) -> str:
    """A session that is deleted in mid-turn."""
    session = await client.session()
    await client.prompt(session, "@@text 60 30@@")
    await client.event("session.text.delta", session)
    assert (await client.request("DELETE", f"/api/session/{session}"))[0] == 204
    await client.event("session.deleted", session)
    return session


CASES: dict[str, Play] = {
    "q2_text": turn("@@text 5 30@@", title=None),
    "q2_think": turn("@@think 3 20 && text 3@@"),
    "q4_full_midtext": stopped("@@text 60 30@@", "session.text.delta"),
    "q4_full_midthink": stopped("@@think 60 30@@", "session.reasoning.delta"),
    "q4_full_midtool": stopped(SHELL, "session.tool.progress"),
    "q4_full_prefirst_immediate": stopped("@@wait 9000@@", "session.inbox.delivered"),
    "q5_parallel_reject": asked(
        '@@tool shell {"command":"echo A"} && tool shell {"command":"echo B"}@@',
        {"decision": "reject"},
    ),
    "q5_reject": asked('@@say "Calling. " && tool shell {"command":"x"}@@', {"decision": "reject"}),
    "q5_reject_msg": asked(
        '@@say "Calling. " && tool shell {"command":"x"} || text 1@@',
        {"decision": "reject", "message": "no"},
    ),
    "q6_form_reply": asked_question,
    "q7_delete_running": deleted,
    "q8_bad_agent": chosen("agent", {"agent": "nope"}),
    "q8_bad_model": chosen("model", {"model": {"id": "nope", "providerID": "nope"}}),
    "q10_sub_bg": background,
    "q12_err400": turn("@@error 400@@"),
    "q12_err500x2": turn("@@error 500 2 && text 3@@"),
    "q12_filter": turn('@@say "cut" && filter@@'),
    "q12_len": turn('@@say "cut" && length@@'),
}


@pytest.mark.parametrize("name", CASES)
async def test_events_are_those_of_the_recording(name: str, tmp_path: Path) -> None:
    recorded = read(name)
    async with (
        StubServer(SETTINGS) as stub,
        Client(stub.url, str(tmp_path)) as client,
    ):
        root = await CASES[name](client)
        events = list(client.events)
    kinds = {str(event["type"]) for event in recorded}
    assert shape(events, root, kinds) == shape(recorded, str(owner(recorded[0])), kinds)


async def test_children_speak_as_in_the_recording(tmp_path: Path) -> None:
    recorded = read("q10_sub_bg")
    async with (
        StubServer(SETTINGS) as stub,
        Client(stub.url, str(tmp_path)) as client,
    ):
        root = await background(client)
        events = list(client.events)
    kinds = {str(event["type"]) for event in recorded}
    assert shape(events, child_of(events, root), kinds) == shape(
        recorded, child_of(recorded, str(owner(recorded[0]))), kinds
    )


def read(name: str) -> list[Json]:
    """The events of a recording, without those that only a location has."""
    lines = (CAPTURES / f"{name}.sse").read_text().splitlines()
    events = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
    return [event for event in events if owner(event) is not None]


def child_of(events: list[Json], root: str) -> str:
    """The session that the root has started."""
    return next(str(owner(event)) for event in events if event["data"].get("parentID") == root)


def shape(events: list[Json], session: str, kinds: set[str]) -> list[str]:
    """What must be equal, per event of a session; deltas in a row count as one."""
    shapes: list[str] = []
    for event in events:
        if owner(event) != session or event["type"] not in kinds:
            continue
        data = {key: value for key, value in event["data"].items() if key != "metadata"}
        marks = [
            str(event["type"]),
            "located" if "location" in event else "-",
            f"v{event['durable']['version']}" if "durable" in event else "-",
            ",".join(sorted(key for key in event if key not in ("location", "durable"))),
            ",".join(sorted(data)),
            *(f"{key}={data[key]}" for key in TELLING if key in data),
            error_of(data),
        ]
        said = " ".join(marks)
        if "delta" in event["type"] and shapes and shapes[-1] == said:
            continue
        shapes.append(said)
    return shapes


def error_of(data: Json) -> str:
    """The type of an event's error."""
    error: Any = data.get("error") or {}
    return str(error.get("type", ""))
