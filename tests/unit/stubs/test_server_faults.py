"""Faults of the stub: what a client meets, and that nothing else is disturbed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from stubs.server import Rule, Settings, StubServer
from stubs.server.feed import Feed
from stubs.server.wire import Ids
from stubs.waiting import until
from tests.unit.stubs.server_client import DEADLINE, Client


@pytest.fixture
async def stub() -> AsyncIterator[StubServer]:
    async with StubServer(Settings(retry_base=0.01)) as stub:
        yield stub


@pytest.fixture
async def client(stub: StubServer, tmp_path: Path) -> AsyncIterator[Client]:
    async with Client(stub.url, str(tmp_path)) as client:
        yield client


@pytest.mark.parametrize(("torn", "end"), [(False, "clean"), (True, "torn")])
async def test_a_cut_comes_after_exactly_so_many_events_of_the_session(
    stub: StubServer, client: Client, torn: bool, end: str
) -> None:
    mine, other = await client.session(), await client.session()
    stub.cut_feed(7, torn=torn, session=mine)
    await client.prompt(other, "@@text 3@@")
    await client.end(other)
    await client.prompt(mine, "@@text 3@@")
    assert await client.eof() == end
    seen = [event for event in client.events if event["data"].get("sessionID") == mine]
    assert len(seen) == 1 + 7  # its creation came before the cut was asked for
    async with Client(stub.url, client.directory) as again:
        await again.prompt(mine, "@@text 1@@")
        await again.end(mine)
        assert again.closed is None


async def test_a_silent_feed_has_no_byte_and_is_torn_at_the_end(
    stub: StubServer, client: Client
) -> None:
    session = await client.session()
    await client.event("session.created", session)
    before = len(client.events)
    stub.feed.hush(True)
    await client.prompt(session, "@@text 1@@")
    await client.request("POST", f"/api/experimental/session/{session}/wait")
    assert len(client.events) == before
    assert client.closed is None
    stub.feed.hush(False)
    assert await client.eof() == "torn"


async def test_a_lost_reply_has_admitted_the_prompt_once(stub: StubServer, client: Client) -> None:
    session = await client.session()
    stub.faults.add(Rule("drop_after", path="/prompt$", method="POST"))
    with pytest.raises(aiohttp.ClientError):
        await client.prompt(session, "@@text 1@@", id="msg_lost")
    await client.end(session)
    item = await client.prompt(session, "another text", id="msg_lost", resume=False)
    assert item["payload"]["text"] == "@@text 1@@"
    assert stub.admissions["msg_lost"] == 1
    assert [row["type"] for row in await client.rows(session)] == ["user", "assistant", "idle"]


async def test_a_request_dropped_before_it_took_effect_leaves_nothing(
    stub: StubServer, client: Client
) -> None:
    session = await client.session()
    stub.faults.add(Rule("drop_before", path="/prompt$"))
    with pytest.raises(aiohttp.ClientError):
        await client.prompt(session, "hello", id="msg_gone")
    assert await client.get(f"/api/session/{session}/inbox") == []
    assert stub.admissions["msg_gone"] == 0


async def test_a_prompt_whose_client_hangs_up_is_admitted_all_the_same(
    stub: StubServer, client: Client
) -> None:
    session = await client.session()
    stub.faults.add(Rule("delay", path="/prompt$", seconds=0.3))
    posting = asyncio.create_task(client.prompt(session, "@@text 1@@", id="msg_left"))
    await logged(stub, "/prompt")
    posting.cancel()
    await asyncio.wait([posting])
    assert posting.cancelled()
    await client.end(session)
    assert stub.admissions["msg_left"] == 1


async def test_a_prompt_in_work_is_lost_with_the_server(stub: StubServer, client: Client) -> None:
    session = await client.session()
    stub.faults.add(Rule("delay", path="/prompt$", seconds=60))
    posting = asyncio.create_task(client.prompt(session, "@@text 1@@", id="msg_lost"))
    await logged(stub, "/prompt")
    await stub.restart("lost")
    with pytest.raises(aiohttp.ClientError):
        await posting
    assert await client.get(f"/api/session/{session}/inbox") == []
    assert stub.admissions["msg_lost"] == 0


async def test_a_status_is_answered_so_many_times(stub: StubServer, client: Client) -> None:
    stub.faults.add(Rule("status", path="/api/info", status=503, times=2))
    statuses = [(await client.request("GET", "/api/info"))[0] for _ in range(3)]
    assert statuses == [503, 503, 200]


async def test_from_now_on_unauthorized(stub: StubServer, client: Client) -> None:
    stub.faults.unauthorized = True
    assert await client.request("GET", "/api/info") == (401, "")


async def test_a_lost_restart_leaves_what_kill_9_leaves(stub: StubServer, client: Client) -> None:
    talking, working = await client.session(), await client.session()
    await client.prompt(talking, "@@text 90 20@@")
    await client.event("session.text.delta", talking)
    await client.prompt(talking, "later", id="msg_waits", delivery="queue")
    await client.prompt(working, '@@tool shell {"command":"sleep 30"}@@')
    await client.event("session.tool.progress", working)
    pid = (await client.request("GET", "/api/info"))[1]["pid"]
    await stub.restart("lost")
    assert await client.eof() == "torn"
    async with Client(stub.url, client.directory) as again:
        assert (await again.request("GET", "/api/info"))[1]["pid"] != pid
        assert await again.get("/api/session/active") == {}
        user, answer = await again.rows(talking)
        assert user["type"] == "user"
        assert answer["content"] == [{"type": "text", "text": ""}]
        assert "finish" not in answer
        assert "completed" not in answer["time"]
        _, answer = await again.rows(working)
        assert answer["content"][0]["state"]["status"] == "running"
        assert [item["id"] for item in await again.get(f"/api/session/{talking}/inbox")] == [
            "msg_waits"
        ]
        assert again.events == []  # nothing goes on by itself


async def test_a_terminated_turn_is_written_without_an_idle_row(
    stub: StubServer, client: Client
) -> None:
    session = await client.session()
    await client.prompt(session, "@@text 90 20@@")
    await client.event("session.text.delta", session)
    await stub.restart("terminated")
    async with Client(stub.url, client.directory) as again:
        _, answer = await again.rows(session)
        assert (answer["finish"], answer["error"]["type"]) == ("error", "aborted")
        assert answer["content"][0]["text"].startswith("w0 ")


async def test_a_finished_restart_completes_the_turn_unseen(
    stub: StubServer, client: Client
) -> None:
    session = await client.session()
    await client.prompt(session, "@@text 9 10@@")
    await client.event("session.text.started", session)
    await stub.restart("finished")
    assert await client.eof() == "torn"
    async with Client(stub.url, client.directory) as again:
        _, answer, idle = await again.rows(session)
        assert (answer["finish"], idle["outcome"]) == ("stop", "succeeded")
        assert answer["content"][0]["text"] == "".join(f"w{n} " for n in range(9))


async def test_connections_are_refused_while_the_stub_is_down(
    stub: StubServer, client: Client
) -> None:
    restart = asyncio.create_task(stub.restart("lost", down=0.3))
    await client.eof()
    with pytest.raises(aiohttp.ClientConnectorError):
        async with asyncio.timeout(5):
            while True:
                await client.request("GET", "/api/info")
    await restart
    assert (await client.request("GET", "/api/info"))[0] == 200


async def test_injected_events_reach_the_feed_as_they_are(stub: StubServer, client: Client) -> None:
    stub.inject({"id": "evt_1", "type": "brand.new", "data": {"text": "\ud800"}})
    event = await client.until(lambda event: event["type"] == "brand.new")
    assert event["data"]["text"] == "\ud800"


def test_a_subscriber_past_its_bound_gets_a_prefix_and_a_clean_end() -> None:
    feed = Feed(Ids(), bound=10)
    slow, quick = feed.subscribe(), feed.subscribe()
    slow.take()
    got = b""
    for number in range(12):
        feed.publish({"type": "x", "n": number})
        got += quick.take()
    assert slow.take().count(b"data: ") == 10
    assert slow.end is not None
    assert slow.end.value == "clean"
    assert quick.end is None
    assert got.count(b'"type":"x"') == 12


async def test_the_control_route_switches_the_same_faults(stub: StubServer, client: Client) -> None:
    rule = {"action": "status", "path": "/api/info", "status": 500}
    status, said = await client.request("POST", "/control", {"rule": rule})
    assert status == 200
    assert said["subscribers"] == 1
    assert (await client.request("GET", "/api/info"))[0] == 500
    assert (await client.request("POST", "/control", {"cuts": {}}))[0] == 400
    await client.request("POST", "/control", {"restart": {"kind": "lost"}})
    assert await client.eof() == "torn"
    await until_up(client)
    async with Client(stub.url, client.directory) as again:
        await client.request("POST", "/control", {"cut": {"after": 0}})
        assert await again.eof() == "clean"


async def logged(stub: StubServer, ending: str) -> None:
    """Return once a request to such a path has come in."""

    async def came() -> bool:
        return any(seen.path.endswith(ending) for seen in stub.log)

    await until("the request has come in", came)


async def until_up(client: Client) -> None:
    """Return when the server answers again."""
    async with asyncio.timeout(DEADLINE):
        while True:
            try:
                await client.request("GET", "/api/info")
                return
            except aiohttp.ClientError:
                await asyncio.sleep(0.01)
