"""The end of the daemon: turns may end, nothing new begins, and no answer is lost on the way."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from adapter.daemon.clients import Client
from adapter.daemon.daemon import State
from adapter.daemon.door import LOOK
from adapter.daemon.listening import Listener, listen
from contract.attach import TEMPORARY
from stubs.server.faults import Rule
from stubs.waiting import until
from tests.unit.daemon.house import NOBODY, Caller, House, house
from tests.unit.daemon.test_leaving import running

SOON = 0.05
LONG_ENOUGH = 10.0


async def told_to_come_again(home: House) -> str:
    """What somebody is told who comes now and says nothing."""
    late = await home.caller()
    code, _, sentence = (await late.answer_line()).decode().partition(" ")
    assert int(code) == TEMPORARY
    assert await late.answer_line() == b""
    return sentence.rstrip("\n")


async def test_a_turn_ends_and_its_client_is_answered(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        caller = await home.client()
        session = await caller.new(tmp_path)
        ident = await caller.prompt(session, "@@text 100 5@@")
        await caller.until_text(session, "w0 ")
        assert await home.daemon.drain(LONG_ENOUGH)
        await home.daemon.close()
        await caller.over()
        assert await caller.stop_reason(ident) == "end_turn"
        assert caller.text(session).endswith("w99 ")
        assert home.asked("POST", "/interrupt") == []
        assert home.daemon.state is State.CLOSED
        assert home.daemon.tables() == NOBODY


async def test_no_prompt_and_no_client_is_taken_meanwhile(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        caller, _ = await running(home)
        other = await home.client()
        session = await other.new(tmp_path)
        draining = asyncio.create_task(home.daemon.drain(LONG_ENOUGH))
        await asyncio.sleep(0)
        assert home.daemon.state is State.DRAINING
        answer = await other.answer(await other.prompt(session, "@@text 1@@"))
        assert answer["error"]["code"] == -32053
        data = answer["error"]["data"]
        assert (data["code"], data["admitted"], data["retrySafe"]) == ("draining", False, True)
        sentence = await told_to_come_again(home)
        assert sentence.startswith(f"The daemon at {home.path} is ending: it waits for 1 turn, ")
        await caller.hang_up()
        assert await draining


async def test_its_place_is_kept_as_long_as_it_has_something_to_do(tmp_path: Path) -> None:
    async def look(seconds: float) -> None:
        await asyncio.sleep(0.01 if seconds == LOOK else seconds)

    async with house(tmp_path, sleep=look) as home:
        await running(home)
        assert not await home.daemon.drain(SOON)
        home.path.unlink()

        async def back() -> bool:
            return home.path.exists()

        await until("the socket is there again", back)
        assert "is ending: it waits for 1 turn, 1 s at most" in await told_to_come_again(home)
        await home.daemon.close()
        assert await told_to_come_again(home) == (
            f"The daemon at {home.path} is ending; start this command again in a few seconds."
        )
    assert not home.path.exists()
    # The next daemon has its place.
    listen(str(home.path)).close()


@contextmanager
def opened(path: Path) -> Iterator[socket.socket]:
    """A socket that the service manager listens on."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as passed:
        passed.bind(str(path))
        passed.listen()
        passed.setblocking(False)
        yield passed


async def test_a_socket_that_was_passed_is_answered_on_in_a_drain_and_then_left(
    tmp_path: Path,
) -> None:
    path = tmp_path / "passed.sock"
    with opened(path) as passed:
        async with house(tmp_path, listener=Listener(passed.dup(), str(path))) as home:
            await running(home)
            draining = asyncio.create_task(home.daemon.drain(LONG_ENOUGH))
            await asyncio.sleep(0)
            assert "it waits for 1 turn" in await told_to_come_again(home)
            draining.cancel()
            await home.daemon.close()
            late = Caller(path)
        # It waits for the next daemon.
        accepted, _ = passed.accept()
        accepted.close()
        await late.aclose()


async def test_without_a_turn_nobody_is_sent_away_from_a_socket_that_was_passed(
    tmp_path: Path,
) -> None:
    path = tmp_path / "passed.sock"
    with opened(path) as passed:
        async with house(tmp_path, listener=Listener(passed.dup(), str(path))) as home:
            late = Caller(path)
            assert await home.daemon.drain(LONG_ENOUGH)
            await home.daemon.close()
        accepted, _ = passed.accept()
        accepted.close()
        await late.aclose()


async def test_a_hello_that_came_before_is_told_to_come_again(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        late = await home.caller()
        await (await home.client()).hang_up()
        await home.daemon.drain(SOON)
        assert (await late.greet()).startswith(b"75 ")


@pytest.mark.parametrize("interrupt", [False, True])
async def test_what_does_not_end_in_time_goes_on_or_is_stopped(
    tmp_path: Path, interrupt: bool
) -> None:
    async with house(tmp_path) as home:
        caller, session = await running(home, "@@text 200 5@@")
        assert not await home.daemon.drain(SOON)
        await home.daemon.close(interrupt=interrupt)
        await caller.over()
        if interrupt:
            answer = await caller.answer(2)
            assert answer["result"]["stopReason"] == "cancelled"
            assert answer["result"]["_meta"]["opencode-acp"]["cancel"] == "confirmed"
            assert len(home.asked("POST", "/interrupt")) == 1
        else:
            await home.until_finished(session)
            assert home.asked("POST", "/interrupt") == []
        await home.until_empty()


async def test_whose_turn_goes_on_is_told_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with house(tmp_path) as home:
        caller, session = await running(home, "@@text 200 5@@")
        assert not await home.daemon.drain(SOON)
        await home.daemon.close()
        await caller.over()
        error = (await caller.answer(2))["error"]
        data = error["data"]
        assert (error["code"], data["code"]) == (-32050, "detached")
        assert (data["admitted"], data["retrySafe"]) == (True, False)
        assert f"turn {data['messageId']}: detached in" in caplog.text
        await home.until_finished(session)


async def test_what_the_server_may_not_have_is_unknown(tmp_path: Path) -> None:
    async with house(tmp_path, exit_post=0.05) as home:
        caller = await home.client()
        session = await caller.new(tmp_path)
        home.stub.faults.add(Rule("delay", "/prompt$", "POST", seconds=60))
        ident = await caller.prompt(session, "@@text 1@@")
        await home.until_asked("POST", "/prompt")
        assert not await home.daemon.drain(SOON)
        await home.daemon.close()
        data = (await caller.answer(ident))["error"]["data"]
        assert (data["code"], data["admitted"], data["retrySafe"]) == ("unknown", None, False)


async def test_a_client_takes_what_is_queued_before_it_is_sent_away(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        caller = await home.client()
        session = await caller.new(tmp_path)
        words = 60_000
        with caller.not_reading():
            await caller.prompt(session, f"@@text {words}@@")
            await home.until_finished(session)
            await home.daemon.drain(SOON)
            closing = asyncio.create_task(home.daemon.close())
            await asyncio.sleep(SOON)
            assert not closing.done()
            assert "is ending; start" in await told_to_come_again(home)
        await closing
        await caller.over()
        assert caller.text(session) == "".join(f"w{number} " for number in range(words))


async def test_whoever_runs_the_daemon_hears_of_its_end(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        running_it = asyncio.create_task(home.daemon.run())
        assert home.path.exists()
        await asyncio.gather(home.daemon.close(), home.daemon.close())
        await running_it
    assert not home.path.exists()


async def test_whoever_stops_to_wait_for_its_end_stops_nothing(tmp_path: Path) -> None:
    async with asyncio.timeout(LONG_ENOUGH), house(tmp_path) as home:
        caller = await home.client()
        running_it = asyncio.create_task(home.daemon.run())
        closing = asyncio.create_task(home.daemon.close())
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        assert home.daemon.state is State.CLOSED
        await running_it
        await caller.over()
    assert not home.path.exists()


async def test_an_end_that_fails_is_told_to_all_and_gives_up_the_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("no")

    with pytest.raises(OSError, match="no"):
        async with asyncio.timeout(LONG_ENOUGH), house(tmp_path) as home:
            await home.client()
            monkeypatch.setattr(Client, "hang_up", fail)
            running_it = asyncio.create_task(home.daemon.run())
            with pytest.raises(OSError, match="no"):
                await home.daemon.close()
            await running_it
    assert not home.path.exists()
    assert home.daemon.tables() == NOBODY


async def test_whoever_goes_on_to_ask_holds_up_nothing(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        caller = await home.client()
        for seconds in (0.3, 60):
            home.stub.faults.add(Rule("delay", "/session$", "GET", seconds=seconds))
        before = await caller.send("session/list", cwd=str(tmp_path))
        await home.until_asked("GET", "/session")
        draining = asyncio.create_task(home.daemon.drain(LONG_ENOUGH))
        await asyncio.sleep(0)
        await caller.send("session/list", cwd=str(tmp_path))
        await home.until_asked("GET", "/session", 2)
        assert not draining.done()
        assert await draining
        await caller.answer(before)
        assert [client.calls for client in home.daemon.clients] == [1]


async def test_what_was_asked_before_is_waited_for_and_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with house(tmp_path) as home:
        caller = await home.client()
        home.stub.faults.add(Rule("delay", "/session$", "GET", seconds=60))
        await caller.send("session/list", cwd=str(tmp_path))
        await home.until_asked("GET", "/session")
        assert not await home.daemon.drain(SOON)
        assert "0 turns in flight, 1 request without an answer" in caplog.text
