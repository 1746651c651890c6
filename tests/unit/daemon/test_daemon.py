"""The daemon: many clients on one feed, and none of them is in the way of another."""

from __future__ import annotations

import asyncio
import gc
import os
import tracemalloc
from pathlib import Path

from adapter.daemon.daemon import State
from adapter.engine.connection import AT_ONCE
from adapter.limits import MIB, Bound, Limits
from adapter.upstream.transport import ServerSettings
from stubs.server.faults import Rule
from stubs.waiting import until
from tests.unit.daemon.house import Caller, hello, house

IDLE_CLIENTS = 64
IDLE_BYTES = 100 * 1024
CALLS = 256
"""Requests of one client that may be open at once."""


async def initialise(caller: Caller, name: str = "acpx") -> None:
    info = {"name": name, "version": "0.19"}
    await caller.call("initialize", protocolVersion=1, clientCapabilities={}, clientInfo=info)


async def test_two_clients_share_one_feed_and_do_not_hear_each_other(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        first, second = await home.client(), await home.client()
        sessions = [await one.new(tmp_path) for one in (first, second)]
        prompts = [
            await one.prompt(session, f"@@text {count}@@")
            for one, session, count in zip((first, second), sessions, (3, 5), strict=True)
        ]
        for one, ident in zip((first, second), prompts, strict=True):
            assert await one.stop_reason(ident) == "end_turn"
        assert first.text(sessions[0]) == "w0 w1 w2 "
        assert second.text(sessions[1]) == "w0 w1 w2 w3 w4 "
        assert first.text(sessions[1]) == second.text(sessions[0]) == ""
        assert len(home.stub.feed.subscribers) == 1
        assert len(home.asked("GET", "/event")) == 1


async def test_what_is_known_of_a_client(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        assert home.daemon.state is State.SERVING
        caller = await home.client(hello(version="1", cwd="/some/where", client="77"))
        (client,) = home.daemon.clients
        assert (client.number, client.name, client.turns) == (1, "", 0)
        await initialise(caller, "acpx\x1b[31m\n" + "x" * 1000)
        assert client.name.isprintable()
        assert client.name.startswith("acpx [31m")
        assert client.name.endswith(" 0.19")
        assert len(client.name) < 100
        assert (client.credentials.pid, client.credentials.uid) == (os.getpid(), os.getuid())
        assert (client.hello.cwd, client.hello.client_pid) == ("/some/where", 77)
        assert client.since <= home.engine.clock()
        session = await caller.new(tmp_path)
        ident = await caller.prompt(session, "@@wait 50 || text 1@@")
        await caller.call("session/list", cwd=str(tmp_path))
        assert (client.turns, client.calls) == (1, 1)
        assert client.open_sessions == {session}
        await caller.stop_reason(ident)
        assert (client.turns, client.queued, client.calls, client.owed) == (0, 0, 0, 0)
        await (await home.client()).hang_up()
        later = await home.client()
        assert [one.number for one in home.daemon.clients] == [1, 3]
        await later.hang_up()


async def test_a_prompt_behind_another_is_queued(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        first, second = await home.client(), await home.client()
        session = await first.new(tmp_path)
        resume = {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []}
        await second.call("session/resume", **resume)
        ahead = await first.prompt(session, "@@text 100 5@@")
        await first.until_text(session, "w0 ")
        behind = await second.prompt(session, "@@text 1@@")

        async def queued() -> bool:
            return [one.queued for one in home.daemon.clients] == [0, 1]

        await until("the second prompt is queued", queued)
        assert await first.stop_reason(ahead) == await second.stop_reason(behind) == "end_turn"
        assert second.text(session) == "w0 "


async def test_a_client_that_does_not_read_holds_up_nobody(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        slow, quick = await home.client(), await home.client()
        sleeping, awake = await slow.new(tmp_path), await quick.new(tmp_path)
        words = 60_000
        with slow.not_reading():
            late = await slow.prompt(sleeping, f"@@text {words}@@")
            await home.until_finished(sleeping)
            prompts = [await quick.prompt(awake, "@@text 200@@")]
            assert await quick.stop_reason(prompts[0]) == "end_turn"
            assert quick.text(awake).endswith("w199 ")
            assert slow.text(sleeping) == ""
            queued = [one.queued_bytes + one.owed for one in home.daemon.clients]
            assert queued[0] > 0
            assert queued[1] == 0
        assert await slow.stop_reason(late) == "end_turn"
        assert slow.text(sleeping) == "".join(f"w{number} " for number in range(words))


async def test_a_flood_of_requests_is_bounded_and_holds_up_nobody(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        flooder, other = await home.client(), await home.client()
        session = await other.new(tmp_path)
        home.stub.faults.add(Rule("delay", r"/api/session$", "GET", times=10_000, seconds=60))
        sent = [await flooder.send("session/list", cwd=str(tmp_path)) for _ in range(CALLS + 50)]
        ident = await other.prompt(session, "@@text 50@@")
        assert await other.stop_reason(ident) == "end_turn"
        # Each of them takes a connection to the server or two, of which there are 64.
        assert 0 < len(home.asked("GET", "/session")) <= AT_ONCE
        over = [await flooder.answer(one) for one in sent[CALLS:]]
        assert {one["error"]["code"] for one in over} == {-32053}
        assert home.daemon.clients[0].calls == CALLS
        await flooder.hang_up()
        assert await other.call("initialize", protocolVersion=1)
        await other.hang_up()
        await home.until_empty()


async def test_between_two_lines_of_a_flood_everybody_else_has_a_turn(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        flooder = await home.client()
        loop, lines, turns = asyncio.get_running_loop(), 2000, 0

        def turn() -> None:
            nonlocal turns
            turns += 1
            if len(flooder.lines) < lines:
                loop.call_soon(turn)

        turn()
        await loop.sock_sendall(flooder.socket, b"x\n" * lines)

        async def answered() -> bool:
            return len(flooder.lines) == lines

        await until("an answer to each line", answered)
        assert {one["error"]["code"] for one in flooder.lines} == {-32700}
        assert turns >= lines


async def test_lines_without_an_end_are_bounded_for_all_clients_together(tmp_path: Path) -> None:
    limits = Limits(inbound_bytes=MIB)
    async with house(tmp_path, limits=limits) as home:
        loop, inbound = asyncio.get_running_loop(), home.engine.inbound
        many = [await home.client() for _ in range(8)]
        for one in many:
            await loop.sock_sendall(one.socket, b"x" * (MIB // 2))
            assert inbound.unfinished <= limits.inbound_bytes

        async def dropped() -> bool:
            return home.engine.counters[Bound.INBOUND_BYTES] >= 6

        other = await home.client()
        assert await other.call("initialize", protocolVersion=1)
        for one in many:
            await loop.sock_sendall(one.socket, b"x")
        await until("the longest gave way", dropped)
        for one in many:
            await one.hang_up()
        await other.hang_up()
        await home.until_empty()
        assert inbound.unfinished == inbound.unanswered == 0


async def test_a_client_that_is_idle_costs_little(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        first = await home.client()
        await initialise(first)
        gc.collect()
        tracemalloc.start()
        try:
            before, _ = tracemalloc.get_traced_memory()
            for _ in range(IDLE_CLIENTS):
                await initialise(await home.client())
            gc.collect()
            after, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert len(home.daemon.clients) == IDLE_CLIENTS + 1
        assert (after - before) / IDLE_CLIENTS < IDLE_BYTES


async def test_nothing_of_a_hundred_clients_that_came_and_went_is_left(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        await (await home.client()).hang_up()
        await home.until_empty()
        tasks, descriptors = len(asyncio.all_tasks()), len(os.listdir("/proc/self/fd"))
        for _ in range(100):
            caller = await home.client()
            await initialise(caller)
            await caller.hang_up()
            await caller.aclose()
        await home.until_empty()

        async def gone() -> bool:
            return len(asyncio.all_tasks()) == tasks

        await until("every task of theirs has ended", gone)
        assert len(os.listdir("/proc/self/fd")) <= descriptors


async def test_openings_that_the_server_does_not_answer_hold_up_no_turn(tmp_path: Path) -> None:
    """As in a directory for which it has no inotify instance left."""
    async with house(tmp_path) as home:
        other = await home.client()
        session = await other.new(tmp_path)
        before = len(home.asked("POST", "/api/session"))
        home.stub.faults.add(Rule("delay", "/api/session$", "POST", times=10_000, seconds=60))
        connections = ServerSettings().connections
        for _ in range(connections // AT_ONCE + 1):
            caller = await home.client()
            for _ in range(AT_ONCE):
                await caller.send("session/new", cwd=str(tmp_path), mcpServers=[])

        async def full() -> bool:
            return len(home.asked("POST", "/api/session")) == before + connections

        await until("every connection for such requests is in use", full)
        ident = await other.prompt(session, "@@text 5@@")
        assert await other.stop_reason(ident) == "end_turn"
        assert {one.calls for one in home.daemon.clients} == {0, AT_ONCE}
