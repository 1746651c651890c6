"""The daemon: many clients on one feed, and nothing is left of one that leaves."""

from __future__ import annotations

from pathlib import Path

from tests.unit.daemon.house import IDLE, NOBODY, house


async def test_two_clients_share_one_feed_and_do_not_hear_each_other(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        first, second = await home.client(), await home.client()
        sessions = [await one.new(tmp_path) for one in (first, second)]
        prompts = [
            await one.prompt(session, f"@@text {count}@@")
            for one, session, count in zip((first, second), sessions, (3, 5), strict=True)
        ]
        for one, ident in zip((first, second), prompts, strict=True):
            assert (await one.answer(ident))["result"]["stopReason"] == "end_turn"
        assert first.text(sessions[0]) == "w0 w1 w2 "
        assert second.text(sessions[1]) == "w0 w1 w2 w3 w4 "
        assert first.text(sessions[1]) == second.text(sessions[0]) == ""
        assert len(home.stub.feed.subscribers) == 1
        assert len(home.asked("GET", "/event")) == 1
        assert [one.number for one in home.daemon.clients] == [1, 2]


async def test_a_client_that_leaves_stops_its_own_turn_alone_and_leaves_nothing(
    tmp_path: Path,
) -> None:
    async with house(tmp_path) as home:
        leaver, stayer = await home.client(), await home.client()
        left, stayed = await leaver.new(tmp_path), await stayer.new(tmp_path)
        await leaver.prompt(left, "@@text 5000 5@@")
        ident = await stayer.prompt(stayed, "@@text 100 5@@")
        await leaver.until_text(left, "w1 ")
        await leaver.hang_up()
        assert (await stayer.answer(ident))["result"]["stopReason"] == "end_turn"
        assert stayer.text(stayed).endswith("w99 ")
        assert home.asked("POST", "/interrupt") == [f"/api/session/{left}/interrupt"]
        await stayer.hang_up()
        await home.until_empty()
        assert home.engine.tables() == IDLE
        assert home.daemon.tables() == NOBODY
