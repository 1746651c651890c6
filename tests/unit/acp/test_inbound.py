"""What all clients together may have sent without being done with."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.acp.framing import LineBuffer, Oversize
from adapter.acp.inbound import SHARES, Inbound, weight
from adapter.acp.jsonrpc import JsonObject
from adapter.acp.transport import Call
from adapter.limits import Bound
from tests.unit.acp.pair import DEADLINE, connected, echo, req

LIMIT = 1000


def test_the_longest_of_all_lines_gives_way_and_the_others_come_whole() -> None:
    inbound = Inbound(LIMIT)
    longest, other, short = (LineBuffer(inbound=inbound) for _ in range(3))
    assert longest.feed(b"x" * 600) == other.feed(b"o" * 300) == short.feed(b"s" * 200) == []
    assert inbound.unfinished == 500
    assert other.feed(b"\n") == [b"o" * 300]
    assert short.feed(b"\n") == [b"s" * 200]
    assert longest.feed(b"x") == [Oversize(LIMIT, shared=True)]
    assert longest.feed(b"x" * 5000) == []
    assert longest.feed(b"\nnext\n") == [b"next"]
    assert inbound.unfinished == 0


def test_a_line_that_is_the_longest_itself_is_reported_at_once() -> None:
    inbound = Inbound(LIMIT)
    other, longest = LineBuffer(inbound=inbound), LineBuffer(inbound=inbound)
    other.feed(b"o" * 400)
    assert longest.feed(b"first\n" + b"x" * 700) == [b"first", Oversize(LIMIT, shared=True)]
    assert inbound.unfinished == 400
    inbound.limit = 300
    assert longest.feed(b"\n") == []
    assert other.feed(b"o") == [Oversize(300, shared=True)]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 900), st.booleans())))
def test_lines_without_an_end_keep_to_the_limit(pieces: list[tuple[int, int, bool]]) -> None:
    inbound = Inbound(LIMIT)
    buffers = [LineBuffer(800, inbound) for _ in range(4)]
    for at, size, ends in pieces:
        buffers[at].feed(b"x" * size + b"\n" * ends)
        assert 0 <= inbound.unfinished <= LIMIT
    for buffer in buffers:
        buffer.close()
    assert inbound.unfinished == 0


async def test_a_client_that_leaves_amid_a_line_gives_its_room_back() -> None:
    inbound = Inbound(LIMIT)
    async with connected(inbound=inbound) as c:
        c.handler.methods["echo"] = echo
        c.wire.say(json.dumps(req(1, "echo")).encode() + b"\n" + b"x" * 900)
        await c.wire.wait_lines(1)
        assert inbound.unfinished == 900
        c.wire.hang_up()
        await c.ended()
        assert inbound.unfinished == 0


async def test_requests_without_an_answer_keep_to_the_limit_of_all() -> None:
    inbound, done = Inbound(SHARES * LIMIT), asyncio.Event()

    async def slow(call: Call) -> JsonObject:
        await done.wait()
        return {}

    most = "x" * (inbound.limit - LIMIT)
    async with connected(inbound=inbound) as one, connected(inbound=inbound) as two:
        one.handler.methods["slow"] = two.handler.methods["slow"] = slow
        two.handler.methods["echo"] = echo
        one.wire.say(req(1, "slow", text=most), req(2, "slow", text=most))
        (error,) = await one.wire.wait_lines(1)
        # Whoever sends little has room of its own.
        two.wire.say(req(3, "slow", text="x" * LIMIT), req(4, "echo", text="x" * 600))
        other_error, answer = await two.wire.wait_lines(2)
        for ident, told in [(2, error), (3, other_error)]:
            assert told["id"] == ident
            assert isinstance(told["error"], dict)
            assert told["error"]["code"] == -32053
        assert answer["result"] == {"text": "x" * 600}
        assert one.counted == two.counted == [Bound.INBOUND_BYTES]
        assert inbound.unanswered <= inbound.limit
        done.set()
        await one.wire.wait_lines(2)
        two.wire.say(req(5, "slow", text=most))
        assert (await two.wire.wait_lines(3))[-1]["result"] == {}
    assert inbound.unanswered == 0


async def test_parameters_that_are_let_go_of_weigh_nothing() -> None:
    inbound = Inbound(SHARES * LIMIT)

    async def lasting(call: Call) -> JsonObject:
        call.let_go()
        call.let_go()
        assert call.params == {}
        await asyncio.Event().wait()
        return {}

    async with connected(inbound=inbound) as c:
        c.handler.methods |= {"lasting": lasting, "echo": echo}
        text = "x" * (inbound.limit // 2)
        c.wire.say(*(req(number, "lasting", text=text) for number in range(8)), req(8, "echo"))
        async with asyncio.timeout(DEADLINE):
            assert [line["id"] for line in await c.wire.wait_lines(1)] == [8]
        assert c.counted == []
    assert inbound.unanswered == 0


@pytest.mark.parametrize("value", [{}, [], {"a": [1, "b", {"c": None}]}, "x" * 1000, "\U0001f600x"])
def test_a_value_weighs_what_it_takes(value: object) -> None:
    assert weight(value) >= len(json.dumps(value, ensure_ascii=False))
    assert weight([value, value]) > 2 * weight(value)
    assert weight("\U0001f600" + "x" * 1000) > 4 * 1000
