"""The state of a daemon: what stands, counted and bounded, and not a word of a conversation."""

from __future__ import annotations

import asyncio
from pathlib import Path

from adapter.limits import Limits
from stubs.waiting import until
from tests.unit.daemon.admin.office import office
from tests.unit.daemon.house import hello
from tests.unit.daemon.test_leaving import running

WORDS = "the quick brown fox"


async def test_clients_and_sessions_are_told_with_what_they_do(tmp_path: Path) -> None:
    async with office(tmp_path) as place:
        line = hello(version="0.1.0", cwd=str(tmp_path), client="77")
        first, second = await place.home.client(line), await place.home.client()
        info = {"name": "acpx", "version": "0.19.1"}
        await first.call("initialize", protocolVersion=1, clientCapabilities={}, clientInfo=info)
        shared = await first.new(tmp_path)
        await second.call("session/resume", sessionId=shared, cwd=str(tmp_path), mcpServers=[])
        await first.prompt(shared, "@@text 5000 10@@")
        await first.until_text(shared, "w1 ")
        await second.prompt(shared, "@@text 1@@")

        async def waits() -> bool:
            (session,) = (await place.state()).sessions
            return sorted(turn.phase for turn in session.turns) == ["running", "waiting"]

        await until("one turn runs and one waits", waits)
        state = await place.state()
        told, other = state.clients
        assert (told.number, told.parent, told.name) == (1, 77, "acpx 0.19.1")
        assert (told.cwd, told.version, told.uid) == (
            str(tmp_path),
            "0.1.0",
            place.path.stat().st_uid,
        )
        assert (told.turns, told.queue, told.holds, told.sessions) == (1, 0, 0, 1)
        assert (other.turns, other.queue, other.name, other.parent) == (1, 1, "", 0)
        (session,) = state.sessions
        assert (session.id, session.directory, session.aside) == (shared, str(tmp_path), False)
        assert [one.client for one in session.attachments] == [1, 2]
        generations = {one.generation for one in session.attachments}
        assert {turn.generation for turn in session.turns} == generations
        assert len(generations) == 2
        assert "quiet" in session.timers
        assert not any(":" in timer for timer in session.timers)
        assert state.tables["turns"] == 2
        assert (state.feed.connected, state.feed.generation, state.state) == (True, 1, "serving")


async def test_how_long_a_drain_still_has(tmp_path: Path) -> None:
    async with office(tmp_path) as place:
        await running(place.home)
        state = await place.state()
        assert (state.serves, state.drain_seconds) == (True, None)
        draining = asyncio.create_task(place.home.daemon.drain(60))
        await asyncio.sleep(0)
        state = await place.state()
        assert (state.state, state.serves, state.turns) == ("draining", False, 1)
        assert state.drain_seconds is not None
        assert 0 < state.drain_seconds <= 60
        draining.cancel()
        await place.home.daemon.close()
        assert (await place.state()).drain_seconds is None


async def test_nothing_is_left_of_a_client_that_has_left(tmp_path: Path) -> None:
    async with office(tmp_path) as place:
        caller = await place.home.client()
        await caller.new(tmp_path)
        assert len((await place.state()).sessions) == 1
        await caller.hang_up()
        await place.home.until_empty()
        state = await place.state()
        assert (state.clients, state.sessions) == ((), ())


async def test_no_text_and_no_title_is_told(tmp_path: Path) -> None:
    async with office(tmp_path) as place:
        caller = await place.home.client()
        session = await caller.new(tmp_path)
        ident = await caller.prompt(session, f"{WORDS} @@text 3 && think 2@@")
        await caller.answer(ident)
        running = await caller.prompt(session, f"{WORDS} @@text 900 10@@")
        await caller.until_text(session, "w5 ")
        said = [(await place.get(path)).text for path in ("/debug/state", "/metrics", "/readyz")]
        for text in said:
            assert not [word for word in (*WORDS.split()[1:], "w0 ", "w1 ") if word in text]
        assert running


async def test_a_session_that_was_put_aside_is_told_as_such(tmp_path: Path) -> None:
    limits = Limits(sessions=1)
    async with office(tmp_path, limits=limits) as place:
        caller = await place.home.client()
        first, second = await caller.new(tmp_path), await caller.new(tmp_path)
        state = await place.state()
        by_id = {one.id: one for one in state.sessions}
        assert by_id.keys() == {first, second}
        assert (by_id[first].aside, by_id[second].aside) == (True, False)
        assert [one.client for one in by_id[first].attachments] == [1]
        assert state.counted["idle_seconds"] == 1


async def test_what_a_relay_says_of_itself_is_cut_and_can_be_shown(tmp_path: Path) -> None:
    async with office(tmp_path) as place:
        line = hello(cwd="/" + "x" * 10_000).replace(b"x" * 100, b"\xff" * 100, 1)
        await place.home.client(line)
        (client,) = (await place.state()).clients
        assert len(client.cwd) == 4096
        assert client.cwd.startswith("/?")
