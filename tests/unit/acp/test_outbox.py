"""The way out: order, gathered writes, and what becomes of a client that does not read."""

from __future__ import annotations

import asyncio
import time

from adapter.acp.outbox import Outbox
from adapter.acp.peer import Ending, PeerLimits
from tests.unit.acp.pair import MemoryTransport, connected, echo, req


async def test_lines_queued_together_leave_in_one_write() -> None:
    async with connected() as c:
        for n in range(10):
            c.peer.notify("u", {"n": n})
        lines = await c.wire.wait_lines(10)
        assert [line["params"] for line in lines] == [{"n": n} for n in range(10)]
        assert len(c.wire.writes) == 1


async def test_a_write_gathers_at_most_64_kib() -> None:
    async with connected() as c:
        for _ in range(10):
            c.peer.notify("u", {"text": "x" * 30_000})
        await c.wire.wait_lines(10)
        assert len(c.wire.writes) == 5
        assert max(map(len, c.wire.writes)) <= 64 * 1024


async def test_queued_bytes_and_congestion_are_visible() -> None:
    async with connected(PeerLimits(outbox=100)) as c:
        with c.wire.not_reading():
            seen = []
            for _ in range(2):
                c.peer.notify("u", {"text": "x" * 20})
                seen.append((c.peer.queued_bytes, c.peer.congested))
        await c.wire.wait_lines(2)
        seen.append((c.peer.queued_bytes, c.peer.congested))
    assert seen == [(72, False), (144, True), (0, False)]


async def test_a_client_that_does_not_read_has_left() -> None:
    async with connected(PeerLimits(outbox=100, stall_seconds=0.04)) as c:
        with c.wire.not_reading():
            c.peer.notify("u", {"text": "x" * 100})
            c.clock.now += 0.03
            c.peer.notify("u", {"text": "x" * 20})
            assert c.peer.ending is None
            c.clock.now += 0.02
            assert await c.ended() is Ending.STALLED
            assert c.wire.closed


async def test_slow_but_not_past_the_bound_is_no_stall() -> None:
    async with connected(PeerLimits(outbox=1000, stall_seconds=0.01)) as c:
        c.handler.methods["echo"] = echo
        with c.wire.not_reading():
            c.peer.notify("u", {})
            c.clock.now += 1000
            await asyncio.sleep(0.03)
            assert c.peer.ending is None
        c.wire.say(req(1, "echo"))
        await c.wire.wait_lines(2)


async def test_a_flood_is_cut_at_once() -> None:
    async with connected(PeerLimits(outbox=1000)) as c:
        with c.wire.not_reading():
            for _ in range(5):
                c.peer.notify("u", {"text": "x" * 1000})
            assert await c.ended() is Ending.STALLED
            assert c.peer.queued_bytes == 0


async def test_a_transport_that_refuses_ends_the_connection() -> None:
    async with connected() as c:
        c.wire.refuses = True
        c.peer.notify("u", {})
        assert await c.ended() is Ending.BROKEN


async def test_time_without_anything_to_read_is_no_stall() -> None:
    async with connected(PeerLimits(outbox=100, stall_seconds=0.04)) as c:
        c.clock.now += 1000
        with c.wire.not_reading():
            c.peer.notify("u", {"text": "x" * 100})
            await asyncio.sleep(0.03)
            assert c.peer.ending is None
        await c.wire.wait_lines(1)


async def test_a_flood_before_the_first_write_ends_the_writer_quietly() -> None:
    stalls: list[str] = []
    outbox = Outbox(
        MemoryTransport(),
        time.monotonic,
        limit=10,
        stall_seconds=60,
        on_stall=lambda: stalls.append("stalled"),
        on_broken=lambda: stalls.append("ended"),
    )
    writer = asyncio.create_task(outbox.write_out())
    await asyncio.sleep(0)
    outbox.put(b"x" * 50)
    async with asyncio.timeout(5):
        await writer
    assert stalls == ["stalled", "ended"]
