"""A client that leaves: its own turn ends as the operator wants, and nothing of it is left."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import pytest

from adapter.config import McpSettings, Waits
from adapter.engine.connection import Connection
from stubs.parts import ROOT
from stubs.server.faults import Rule
from stubs.waiting import until
from tests.unit.daemon.house import IDLE, NOBODY, Caller, House, Json, house

LONG = "@@text 5000 5@@"
SHELL = 'tool shell {"command":"echo hi"}'


async def running(home: House, text: str = LONG) -> tuple[Caller, str]:
    """A client with a turn that has begun."""
    caller = await home.client()
    session = await caller.new(home.root)
    await caller.prompt(session, text)
    await caller.until_text(session, "w1 ")
    return caller, session


def connections() -> int:
    """Those that something in this process still refers to."""
    gc.collect()
    return sum(isinstance(one, Connection) for one in gc.get_objects())


async def test_it_stops_its_own_turn_alone(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        leaver, left = await running(home)
        stayer = await home.client()
        stayed = await stayer.new(tmp_path)
        ident = await stayer.prompt(stayed, "@@text 100 5@@")
        await stayer.until_text(stayed, "w0 ")
        await leaver.hang_up()
        assert await stayer.stop_reason(ident) == "end_turn"
        assert stayer.text(stayed).endswith("w99 ")
        assert home.asked("POST", "/interrupt") == [f"/api/session/{left}/interrupt"]
        await stayer.hang_up()
        await home.until_empty()
        assert home.engine.tables() == IDLE
        assert home.daemon.tables() == NOBODY


async def test_its_connection_is_closed_before_the_server_has_answered(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        leaver, _ = await running(home)
        home.stub.faults.add(Rule("delay", "/interrupt$", "POST", seconds=0.3))
        await leaver.hang_up()

        async def leaving() -> bool:
            return home.daemon.tables() == NOBODY | {"leaving": 1}

        await until("it is no client any more", leaving)
        assert home.engine.turns == 1
        await home.until_empty()


async def test_a_stop_that_fails_is_sent_again(tmp_path: Path) -> None:
    waits = Waits(cancel=0.1, loose=0.1)
    async with house(tmp_path, waits=waits) as home:
        leaver, session = await running(home)
        home.stub.faults.add(Rule("status", "/interrupt$", "POST"))
        await leaver.hang_up()
        await home.until_asked("POST", "/interrupt", 2)
        await home.until_empty()
        assert session not in await home.engine.server.active()


async def test_a_client_that_dies_is_one_that_leaves(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        leaver, session = await running(home)
        await leaver.aclose()
        await home.until_asked("POST", f"{session}/interrupt")
        await home.until_empty()


async def test_with_detach_its_turn_goes_on(tmp_path: Path) -> None:
    async with house(tmp_path, interrupt_on_exit=False) as home:
        leaver, session = await running(home, "@@text 100 5@@")
        await leaver.hang_up()
        await home.until_empty()
        await home.until_finished(session)
        assert home.asked("POST", "/interrupt") == []


async def test_with_detach_a_prompt_on_its_way_is_run_once(tmp_path: Path) -> None:
    async with house(tmp_path, interrupt_on_exit=False) as home:
        caller = await home.client()
        session = await caller.new(tmp_path)
        # It is not sent before the feed is back.
        home.stub.faults.add(Rule("delay", "/event$", "GET", seconds=0.3))
        home.stub.cut_feed()

        async def cut() -> bool:
            return not home.engine.feed.is_connected

        await until("the feed is cut", cut)
        await caller.prompt(session, "@@text 3@@")
        await caller.hang_up()
        await home.until_finished(session)
        await home.until_empty()
        assert set(home.stub.admissions.values()) == {1}


@pytest.mark.parametrize("interrupt", [True, False])
async def test_what_it_was_asked_holds_up_nothing(tmp_path: Path, interrupt: bool) -> None:
    permission = {"shell": "ask"}
    async with house(tmp_path, permission=permission, interrupt_on_exit=interrupt) as home:
        caller = await home.client()
        session = await caller.new(tmp_path)
        await caller.prompt(session, f"@@{SHELL} || text 2@@")
        await caller.line(lambda line: line.get("method") == "session/request_permission")
        await caller.hang_up()
        await home.until_empty()

        async def idle() -> bool:
            return session not in await home.engine.server.active()

        await until("the server is idle", idle)
        assert await home.engine.server.permissions(str(tmp_path)) == ()


async def test_an_answer_that_fails_is_sent_again(tmp_path: Path) -> None:
    settings: Json = {"interrupt_on_exit": False, "exit_reads": 0.05, "waits": Waits(reply=0.2)}
    async with house(tmp_path, permission={"shell": "ask"}, **settings) as home:
        caller = await home.client()
        session = await caller.new(tmp_path)
        await caller.prompt(session, f"@@{SHELL} || text 2@@")
        await caller.line(lambda line: line.get("method") == "session/request_permission")
        home.stub.faults.add(Rule("status", "/reply$", "POST", status=400))
        await caller.hang_up()
        await home.until_finished(session)
        await home.until_empty()


async def in_doubt(home: House) -> Caller:
    """A client that was asked for a permission by a turn of which nothing is known any more."""
    caller = await home.client()
    session = await caller.new(home.root)
    ident = await caller.prompt(session, f"@@{SHELL} || text 2@@")
    await caller.line(lambda line: line.get("method") == "session/request_permission")
    home.stub.faults.add(Rule("status", "/event$", "GET", times=10**6))
    home.stub.cut_feed()
    assert (await caller.answer(ident))["error"]["data"]["code"] == "unknown"
    home.stub.faults.clear()
    assert await home.engine.feed.ready(10)
    return caller


async def test_what_a_turn_in_doubt_asked_is_refused_though_nobody_is_left(tmp_path: Path) -> None:
    waits = Waits(gap=0.2, unattended=0.5)
    async with house(tmp_path, permission={"shell": "ask"}, waits=waits) as home:
        caller = await in_doubt(home)
        await caller.hang_up()
        await home.until_asked("POST", "/reply")
        await home.until_empty()
        assert await home.engine.server.permissions(str(tmp_path)) == ()


async def test_so_it_is_at_once_when_the_process_ends(tmp_path: Path) -> None:
    async with house(tmp_path, permission={"shell": "ask"}, waits=Waits(gap=0.2)) as home:
        caller = await in_doubt(home)
        await caller.hang_up()
        await home.daemon.close()
        assert home.asked("POST", "/reply") == []
        await home.engine.__aexit__()
        assert len(home.asked("POST", "/reply")) == 1


async def test_another_that_has_the_session_open_keeps_it(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        leaver, session = await running(home)
        stayer = await home.client()
        resume = {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []}
        await stayer.call("session/resume", **resume)
        await leaver.hang_up()
        ident = await stayer.prompt(session, "@@text 2@@")
        assert await stayer.stop_reason(ident) == "end_turn"
        assert home.engine.tables() == IDLE | {
            "sessions": 1,
            "followed": 1,
            "watched": 1,
            "attachments": 1,
        }


async def test_nothing_holds_on_to_it_though_its_session_stays_open(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        leaver, session = await running(home)
        stayer = await home.client()
        resume = {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []}
        await stayer.call("session/resume", **resume)
        before = connections()
        await leaver.hang_up()
        await stayer.stop_reason(await stayer.prompt(session, "@@text 2@@"))

        async def gone() -> bool:
            return connections() == before - 1

        await until("it is gone", gone)


async def test_one_that_comes_back_finds_its_session(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        leaver, session = await running(home)
        await leaver.hang_up()
        again = await home.client()
        resume = {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []}
        await again.call("session/resume", **resume)
        ident = await again.prompt(session, "@@text 2@@")
        assert await again.stop_reason(ident) == "end_turn"
        assert again.text(session) == "w0 w1 "


@pytest.mark.parametrize("path", ["/session$", "/model$"])
async def test_one_that_leaves_while_a_session_is_opened(tmp_path: Path, path: str) -> None:
    async with house(tmp_path) as home:
        caller = await home.client()
        home.stub.faults.add(Rule("delay", path, seconds=60))
        await caller.send("session/new", cwd=str(tmp_path), mcpServers=[])

        async def asked() -> bool:
            return any(one.path.endswith(path[:-1]) for one in home.stub.log)

        await until("the server was asked", asked)
        await caller.hang_up()
        await home.until_empty()


async def test_one_that_leaves_while_it_closes(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        caller, session = await running(home)
        home.stub.faults.add(Rule("delay", "/interrupt$", "POST", seconds=0.1))
        await caller.send("session/close", sessionId=session)
        await home.until_asked("POST", "/interrupt")
        await caller.hang_up()
        await home.until_empty()
        assert len(home.asked("POST", "/interrupt")) == 1


async def test_its_mcp_servers_are_removed(tmp_path: Path) -> None:
    program = str(ROOT / "tests" / "support" / "mcp_server.py")
    server = {"name": "mine", "command": sys.executable, "args": [program, "ok"], "env": []}
    async with house(tmp_path, mcp=McpSettings("register")) as home:
        caller, other = await home.client(), await home.client()
        for one in (caller, other):
            await one.call("session/new", cwd=str(tmp_path), mcpServers=[server])
        added = [one.path for one in home.stub.log if one.method == "PUT"]
        assert len(set(added)) == 2
        await caller.hang_up()

        async def removed() -> bool:
            return "DELETE" in [one.method for one in home.stub.log]

        await until("its server is removed", removed)
        assert [one.path for one in home.stub.log if one.method == "DELETE"] == added[:1]
