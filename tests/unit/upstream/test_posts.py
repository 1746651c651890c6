"""The requests of slash commands and compactions; those of prompts stand in test_client.py."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any, Final

import httpx
import pytest
import respx

from adapter.upstream.client import Server
from adapter.upstream.errors import SessionMissing
from adapter.upstream.posted import Admitted, NotAdmitted, Taken, Unclear, Unsent

URL: Final = "http://127.0.0.1:4096"
SESSION: Final = f"{URL}/api/session/ses_a"
MISSING: Final = httpx.Response(404, json={"_tag": "SessionNotFoundError", "message": "no"})
CONFLICT: Final = httpx.Response(409, json={"_tag": "ConflictError", "message": "taken"})
FILE: Final = {"uri": "data:text/plain,x", "name": "x"}


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with Server(URL) as server:
        yield server


def sent(route: respx.Route) -> Any:
    return json.loads(route.calls.last.request.content)


def failed(tag: str) -> httpx.Response:
    return httpx.Response(500, json={"_tag": tag, "message": "Agent not found: x"})


@respx.mock
async def test_a_command_carries_the_mark_of_its_turn(server: Server) -> None:
    route = respx.post(f"{SESSION}/command").respond(204)
    posted = await server.posts.command("ses_a", "msg_acp_1", "say", "it", [FILE])
    assert posted == Taken()
    body = sent(route)
    (agent,) = body.pop("agents")
    assert body == {"name": "say", "text": "it", "delivery": "queue", "files": [FILE]}
    assert agent["mention"] == {"start": 0, "end": 0, "text": "opencode-acp:msg_acp_1"}


@respx.mock
@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (httpx.ConnectError("x"), Unsent),
        (httpx.ReadError("x"), Unclear),
        (httpx.Response(500), Unclear),
        (failed("UnknownError"), Unclear),
        (failed("CommandExecutionError"), NotAdmitted),
        (httpx.Response(404, json={"_tag": "CommandNotFoundError", "message": "x"}), NotAdmitted),
    ],
)
async def test_a_command_is_posted_once_whatever_comes_back(
    server: Server, outcome: httpx.Response | Exception, expected: type
) -> None:
    route = respx.post(f"{SESSION}/command").mock(side_effect=[outcome])
    assert type(await server.posts.command("ses_a", "msg_acp_1", "say", "")) is expected
    assert route.call_count == 1


@respx.mock
async def test_a_command_may_be_waited_for_long(server: Server) -> None:
    route = respx.post(f"{SESSION}/command").respond(204)
    await server.posts.command("ses_a", "msg_acp_1", "say", "")
    timeout = route.calls.last.request.extensions["timeout"]
    assert timeout["read"] == 600.0
    assert timeout["connect"] == 5.0


@respx.mock
async def test_the_skills_of_a_prompt_are_ids(server: Server) -> None:
    item = {"data": {"id": "msg_a", "payload": {"text": "x"}}}
    route = respx.post(f"{SESSION}/prompt").respond(200, json=item)
    await server.posts.prompt("ses_a", "msg_a", "x", skills=["greet"])
    assert sent(route)["skills"] == [{"id": "greet"}]


@respx.mock
async def test_a_compaction_is_queued_under_its_own_id(server: Server) -> None:
    item = {"data": {"id": "msg_a", "type": "compaction", "payload": {}}}
    route = respx.post(f"{SESSION}/compact").respond(200, json=item)
    posted = await server.posts.compact("ses_a", "msg_a")
    assert sent(route) == {"id": "msg_a", "delivery": "queue"}
    assert isinstance(posted, Admitted)
    assert posted.item.id == "msg_a"


@respx.mock
async def test_the_item_of_another_compaction_is_told(server: Server) -> None:
    item = {"data": {"id": "msg_b", "type": "compaction", "payload": {}}}
    respx.post(f"{SESSION}/compact").respond(200, json=item)
    posted = await server.posts.compact("ses_a", "msg_a")
    assert isinstance(posted, Admitted)
    assert posted.item.id == "msg_b"


@respx.mock
@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (CONFLICT, Taken),
        (httpx.Response(503), Unclear),
        (httpx.Response(200, json={"data": 1}), Unclear),
        (httpx.Response(400, json={"_tag": "InvalidRequestError", "message": "x"}), NotAdmitted),
    ],
)
async def test_what_may_become_of_a_compaction(
    server: Server, outcome: httpx.Response, expected: type
) -> None:
    respx.post(f"{SESSION}/compact").mock(side_effect=[outcome])
    assert type(await server.posts.compact("ses_a", "msg_a")) is expected


@respx.mock
async def test_a_session_that_is_gone_is_raised(server: Server) -> None:
    respx.post(f"{SESSION}/compact").mock(return_value=MISSING)
    respx.post(f"{SESSION}/command").mock(return_value=MISSING)
    with pytest.raises(SessionMissing):
        await server.posts.compact("ses_a", "msg_a")
    with pytest.raises(SessionMissing):
        await server.posts.command("ses_a", "msg_a", "say", "")
