"""Peer, stdio and the small client against each other, as two processes over real pipes."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator

import pytest

from stubs.client import AcpClient, AcpClientError, choose

DEADLINE = 20.0


@pytest.fixture(params=["--asyncio", "--uvloop"])
async def client(request: pytest.FixtureRequest) -> AsyncIterator[AcpClient]:
    argv = [sys.executable, "-m", "tests.unit.acp.agent", request.param]
    async with asyncio.timeout(DEADLINE), AcpClient.spawn(argv) as client:
        await client.initialize()
        assert await client.new_session("/") == "s1"
        yield client
        assert await client.hang_up() == 0
        assert client.violations == []


async def test_a_flood_arrives_whole_and_before_its_answer(client: AcpClient) -> None:
    assert await client.prompt("s1", "flood 20000") == {"stopReason": "end_turn"}
    assert client.transcript("s1").text() == "".join(f"{n} " for n in range(20000))


@pytest.mark.parametrize(
    ("kind", "status"), [("allow_once", "completed"), ("reject_once", "failed")]
)
async def test_an_ask_is_answered_by_the_policy(client: AcpClient, kind: str, status: str) -> None:
    client.policy = choose(kind)
    await client.prompt("s1", "ask")
    transcript = client.transcript("s1")
    assert transcript.asks == [{"toolCallId": "t1", "answer": kind}]
    assert transcript.tools["t1"]["status"] == status


async def test_a_cancel_withdraws_the_ask(client: AcpClient) -> None:
    async def undecided(params: dict[str, object]) -> str | None:
        await asyncio.Event().wait()
        return None

    client.policy = undecided
    prompt = asyncio.create_task(client.prompt("s1", "ask"))
    await client.wait_for(lambda: bool(client.transcript("s1").tools))
    await client.cancel_request(client.last_request_id)
    assert await prompt == {"stopReason": "cancelled"}
    assert client.transcript("s1").asks == [{"toolCallId": "t1", "answer": "withdrawn"}]


async def test_cancel_ends_a_prompt_and_errors_are_raised(client: AcpClient) -> None:
    prompt = asyncio.create_task(client.prompt("s1", "wait"))
    await asyncio.sleep(0)
    await client.cancel("s1")
    assert await prompt == {"stopReason": "cancelled"}
    with pytest.raises(AcpClientError) as caught:
        await client.request("session/nonsense", {})
    assert caught.value.code == -32601
    assert b"library noise" in client.stderr


async def test_hostile_bytes_leave_the_agent_alive(client: AcpClient) -> None:
    hostile = (b"[]", b"null", b"5", b"\xff", b"[" * 5000, b"x" * 33 * 2**20)
    await client.send_raw(b"\n".join(hostile) + b"\n")
    await client.prompt("s1", "flood 1")
    errors = [line.message["error"]["code"] for line in client.updates if "error" in line.message]
    assert errors == [-32600, -32600, -32600, -32700, -32700, -32600]
