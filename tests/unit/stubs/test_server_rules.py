"""The rules of admission, delivery, parking and asks that the adapter's lifecycle rests on."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from stubs.server import Settings, StubServer
from stubs.server.http import ROUTES
from stubs.waiting import until
from tests.unit.stubs.server_client import Client, Json


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    (tmp_path / "opencode.json").write_text(
        '{"agents": {"capped": {"steps": 2}}, "permission": {"edit": "ask"}}'
    )
    async with (
        StubServer(Settings(project=str(tmp_path), password="p")) as stub,
        Client(stub.url, str(tmp_path), "p") as client,
    ):
        yield client


def delivered(client: Client, session: str) -> list[str]:
    return [
        str(event["data"]["inboxID"])
        for event in client.events
        if event["type"] == "session.inbox.delivered" and event["data"]["sessionID"] == session
    ]


def kinds(rows: list[Json]) -> list[str]:
    return [str(row["type"]) for row in rows]


async def test_the_same_id_is_one_prompt_and_wakes_a_bogus_success(client: Client) -> None:
    session, other = await client.session(), await client.session()
    await client.prompt(session, "@@text 1@@", id="msg_a")
    await client.end(session)
    await client.prompt(session, "@@text 1@@", id="msg_a", resume=False)
    assert kinds(await client.rows(session)) == ["user", "assistant", "idle"]
    await client.prompt(session, "@@text 1@@", id="msg_a")
    await client.end(session, 2)
    assert kinds(await client.rows(session)) == ["user", "assistant", "idle", "idle"]
    body = {"id": "msg_a", "text": "x"}
    status, answer = await client.request("POST", f"/api/session/{other}/prompt", body)
    assert (status, answer["_tag"]) == (409, "ConflictError")


async def test_one_execution_serves_several_prompts_steers_first(client: Client) -> None:
    session = await client.session()
    await client.prompt(session, '@@tool shell {"command":"sleep 0.3"} || text 1@@', id="msg_a")
    await client.event("session.tool.progress", session)
    await client.prompt(session, "@@text 1@@", id="msg_queued", delivery="queue")
    await client.prompt(session, "one", id="msg_s1")
    await client.prompt(session, "two @@text 2@@", id="msg_s2")
    await client.end(session)
    assert delivered(client, session) == ["msg_a", "msg_s1", "msg_s2", "msg_queued"]
    assert kinds(await client.rows(session)) == [
        *("user", "assistant", "user", "user", "assistant", "user", "assistant", "idle"),
    ]


async def test_an_interrupt_parks_and_a_patch_wakes(client: Client) -> None:
    session = await client.session()
    await client.prompt(session, "@@text 90 20@@", id="msg_a")
    await client.event("session.text.delta", session)
    await client.prompt(session, "@@text 1@@", id="msg_b", delivery="queue")
    await client.request("POST", f"/api/session/{session}/interrupt")
    await client.end(session)
    path = f"/api/session/{session}/inbox/msg_b"
    assert await client.get("/api/session/active") == {}
    assert await client.request("PATCH", path, {"delivery": "steer"}) == (204, "")
    await client.end(session, 2)
    assert delivered(client, session) == ["msg_a", "msg_b"]
    status, answer = await client.request("PATCH", path, {"delivery": "steer"})
    assert (status, answer["_tag"]) == (409, "ConflictError")
    assert (await client.request("DELETE", path))[0] == 204
    assert not [event for event in client.events if event["type"] == "session.inbox.cancelled"]


async def test_a_prompt_after_the_interrupt_takes_the_parked_ones_along(client: Client) -> None:
    session = await client.session()
    await client.prompt(session, "@@text 90 20@@", id="msg_a")
    await client.event("session.text.delta", session)
    await client.prompt(session, "@@text 1@@", id="msg_b", delivery="queue")
    await client.request("POST", f"/api/session/{session}/interrupt")
    await client.prompt(session, "@@text 1@@", id="msg_c", delivery="queue")
    await client.end(session, 2)
    assert delivered(client, session) == ["msg_a", "msg_b", "msg_c"]


async def test_a_failure_with_a_prompt_answered_in_it_is_followed_by_an_empty_success(
    client: Client,
) -> None:
    session = await client.session()
    await client.prompt(session, '@@tool shell {"command":"sleep 0.2"} || error 400@@')
    await client.event("session.tool.progress", session)
    await client.prompt(session, "a steer")
    first, second = await client.end(session), await client.end(session, 2)
    assert first["type"] == "session.execution.failed"
    assert second["type"] == "session.execution.succeeded"
    assert [row.get("outcome") for row in await client.rows(session)][-2:] == [
        "failed",
        "succeeded",
    ]


async def test_a_decline_ends_the_turn_without_a_row_and_the_queue_goes_on(client: Client) -> None:
    session = await client.session()
    await client.prompt(session, '@@tool write {"path":"a.txt","content":"x"}@@')
    ask = (await client.event("permission.asked", session))["data"]["id"]
    await client.prompt(session, "@@text 1@@", id="msg_b", delivery="queue")
    path = f"/api/session/{session}/permission/{ask}/reply"
    assert (await client.request("POST", path, {"decision": "reject"}))[0] == 204
    assert (await client.request("POST", path, {"decision": "reject"}))[0] == 404
    end = await client.end(session)
    assert end["data"]["reason"] == "shutdown"
    await client.end(session, 2)
    rows = await client.rows(session)
    assert kinds(rows) == ["user", "assistant", "user", "assistant", "idle"]
    assert not (Path(client.directory) / "a.txt").exists()


async def test_a_childs_ask_is_listed_by_the_location_and_its_own_session(client: Client) -> None:
    session = await client.session()
    child = '\\u0040\\u0040tool write {\\"path\\":\\"c.txt\\",\\"content\\":\\"x\\"}\\u0040\\u0040'
    data = f'{{"agent":"general","description":"d","prompt":"{child}"}}'
    await client.prompt(session, f"@@tool subagent {data} || text 1@@")
    asked = await client.until(lambda event: event["type"] == "permission.asked")
    owner, ask = asked["data"]["sessionID"], asked["data"]["id"]
    assert owner != session
    assert await client.get(f"/api/session/{session}/permission") == []
    assert [found["id"] for found in await client.get("/api/permission/request")] == [ask]
    body = {"decision": "once"}
    wrong = f"/api/session/{session}/permission/{ask}/reply"
    assert (await client.request("POST", wrong, body))[0] == 404
    right = f"/api/session/{owner}/permission/{ask}/reply"
    assert (await client.request("POST", right, body))[0] == 204
    await client.end(session)
    assert (Path(client.directory) / "c.txt").read_text() == "x"


async def test_a_step_cap_ends_in_a_tool_error(client: Client) -> None:
    session = await client.session(agent="capped")
    steps = " || ".join(['tool shell {"command":"echo"}'] * 4)
    await client.prompt(session, f"@@{steps}@@")
    await client.end(session)
    *_, answer, idle = await client.rows(session)
    assert answer["finish"] == "tool-calls"
    assert "maximum agent steps" in answer["content"][0]["state"]["error"]["message"]
    assert idle["outcome"] == "succeeded"


async def test_a_retry_after_text_is_a_new_message_behind_a_synthetic_row(client: Client) -> None:
    async with (
        StubServer(Settings(retry_base=0.01)) as stub,
        Client(stub.url, client.directory) as own,
    ):
        session = await own.session()
        await own.prompt(session, "@@text 2 && drop@@")
        await own.end(session)
        rows = await own.rows(session)
    assert kinds(rows) == ["user", "assistant", "synthetic", "assistant", "idle"]
    assert [row.get("finish") for row in rows] == [None, "error", None, "stop", None]


async def test_pages_lead_through_all_messages(client: Client) -> None:
    session = await client.session()
    for number in range(1, 4):
        await client.prompt(session, "@@text 1@@")
        await client.end(session, number)
    newest_first = [row["id"] for row in reversed(await client.rows(session))]
    found: list[str] = []
    path = f"/api/session/{session}/message?limit="
    query = "4"
    while True:
        _, page = await client.request("GET", path + query)
        if not page["data"]:
            break
        found += [row["id"] for row in page["data"]]
        query = f"4&cursor={page['cursor']['next']}"
    assert found == newest_first
    assert (await client.request("GET", path + "201"))[0] == 400


async def test_the_surface_refuses_as_the_server_does(client: Client) -> None:
    async with aiohttp.ClientSession() as stranger:
        async with stranger.get(client.url + "/api/info") as response:
            assert response.status == 401
            assert response.headers["WWW-Authenticate"] == 'Basic realm="Secure Area"'
            assert await response.read() == b""
        async with stranger.get(client.url + "/somewhere") as response:
            assert (response.status, response.content_type) == (200, "text/html")
    assert await client.request("GET", "/api/nope") == (404, "")
    assert await client.request("PUT", "/api/session") == (404, "")
    status, answer = await client.request("GET", "/api/session/ses_nope/inbox")
    assert (status, answer["_tag"]) == (404, "SessionNotFoundError")
    session = await client.session(location={"directory": "/nonexistent-directory"})
    body = {"text": "x"}
    assert await client.request("POST", f"/api/session/{session}/prompt", body) == (500, "")


async def test_the_description_lists_every_route(client: Client) -> None:
    _, description = await client.request("GET", "/openapi.json")
    listed = {
        (method.upper(), path)
        for path, methods in description["paths"].items()
        for method in methods
    }
    assert listed == {(method, path) for method, path, _, _ in ROUTES}


async def test_a_fresh_directory_lists_nothing_then_what_is_built_in_then_its_own(
    client: Client,
) -> None:
    directory = Path(client.directory)
    config = {"default_agent": "poet", "agent": {"poet": {}}, "model": "fake/fake-2"}
    (directory / "opencode.json").write_text(json.dumps(config), encoding="utf-8")
    async with StubServer(Settings(boot=1.5)) as stub, Client(stub.url, client.directory) as own:

        async def look() -> tuple[str | None, str | None, bool]:
            place = f"location%5Bdirectory%5D={client.directory}"
            paths = ("agent", "model/default", "plugin")
            agents, default, plugins = [await own.get(f"/api/{path}?{place}") for path in paths]
            return agents[0]["id"] if agents else None, default and default["id"], bool(plugins)

        seen = [await look()]

        async def booted() -> bool:
            seen.append(await look())
            return seen[-1][2]

        await until("it has booted", booted)
        await own.until(lambda event: event["type"] == "plugin.updated")
    steps = [(None, None, False), ("build", "fake-1", False), ("poet", "fake-2", True)]
    # What is read in three requests may be of two moments.
    assert [seen[0], seen[-1]] == [steps[0], steps[-1]]
    assert steps[1] in seen
