"""Who is served: the user's own processes, as many as there is room for, with the right hello."""

from __future__ import annotations

import asyncio
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from adapter.daemon.daemon import State, Terms
from adapter.daemon.door import LOOK
from adapter.daemon.hello import Differs, Hello
from adapter.daemon.process import Room
from adapter.limits import Bound, Limits
from contract.attach import ACCEPTED, AUTH, FAULT, TEMPORARY, USAGE
from stubs.waiting import until
from tests.unit.daemon.house import Caller, hello, house

NOBODY = 65534


async def refused(caller: Caller, code: int, line: bytes | None = None) -> None:
    """The answer is this code and a sentence, and then nothing more comes."""
    answer = await caller.greet(line) if line != b"" else await caller.answer_line()
    number, _, sentence = answer.decode().partition(" ")
    assert int(number) == code
    assert sentence.endswith(".\n")
    assert await caller.answer_line() == b""


@pytest.fixture
def public_place() -> Iterator[Path]:
    """A directory that every user of the machine can enter."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
async def test_another_user_is_sent_away_and_may_be_allowed(public_place: Path) -> None:
    for allowed in (False, True):
        terms = Terms(allowed_uids=frozenset({0, NOBODY} if allowed else {0}))
        async with house(public_place, terms) as home:
            home.path.parent.chmod(0o755)
            home.path.chmod(0o666)
            os.seteuid(NOBODY)
            try:
                caller = await home.caller()
            finally:
                os.seteuid(0)
            if allowed:
                assert await caller.greet() == ACCEPTED
                assert home.daemon.clients[0].credentials.uid == NOBODY
            else:
                # Before a byte of it was read.
                await refused(caller, AUTH, b"")
                assert home.daemon.clients == ()


async def test_the_own_user_is_one_among_those_allowed(tmp_path: Path) -> None:
    async with house(tmp_path, Terms(allowed_uids=frozenset({os.getuid() + 1}))) as home:
        await refused(await home.caller(), AUTH, b"")
        assert stat.S_IMODE(home.path.stat().st_mode) == 0o600


async def test_one_client_too_many_is_told_and_comes_in_later(tmp_path: Path) -> None:
    async with house(tmp_path, limits=Limits(connections=2)) as home:
        first, _ = await home.client(), await home.client()
        await refused(await home.caller(), TEMPORARY)
        assert home.engine.counters[Bound.CONNECTIONS] == 1
        await first.hang_up()
        await home.client()


async def test_those_who_say_nothing_are_bounded_and_have_their_time(tmp_path: Path) -> None:
    async with house(tmp_path, Terms(room=Room(8, 1), hello_seconds=0.2)) as home:
        silent = await home.caller()

        async def here() -> bool:
            return home.daemon.tables()["arriving"] == 1

        await until("the silent one is here", here)
        await refused(silent, TEMPORARY, b"")
        await home.client()


async def test_those_who_say_nothing_keep_nobody_out(tmp_path: Path) -> None:
    """The first of them makes room for one more, which may have something to say."""
    async with house(tmp_path, Terms(room=Room(8, 2), hello_seconds=60)) as home:
        silent = [await home.caller() for _ in range(2)]
        for _ in range(3):
            await home.client()
            await refused(silent.pop(0), TEMPORARY, b"")
            silent.append(await home.caller())
        assert len(home.daemon.clients) == 3


async def test_one_that_leaves_without_a_word_is_nobody(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        for words in (b"", b"opencode-acp 1\0cwd="):
            caller = await home.caller()
            caller.socket.send(words)
            await caller.aclose()
        await home.client()
        assert [one.number for one in home.daemon.clients] == [1]


@pytest.mark.parametrize("line", [b"GET / HTTP/1.1\n", b'{"jsonrpc":"2.0","id":1}\n', b"\n"])
async def test_what_is_no_hello_is_refused(tmp_path: Path, line: bytes) -> None:
    async with house(tmp_path) as home:
        await refused(await home.caller(), TEMPORARY, line)
        await home.client()


async def test_a_client_that_wants_something_else_is_told(tmp_path: Path) -> None:
    differs: Differs = lambda given: None if given.settings["mcp"] == "notice" else "Not so."  # noqa: E731
    async with house(tmp_path, Terms(differs=differs)) as home:
        await home.client(hello(set_mcp="notice"))
        await refused(await home.caller(), USAGE, hello(set_mcp="register"))


async def test_a_fault_at_a_hello_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def fail(_: Hello) -> str | None:
        raise OSError("not there")

    async with house(tmp_path, Terms(differs=fail)) as home:
        await refused(await home.caller(), FAULT)
        assert "not there" in caplog.text
        await home.until_empty()


async def test_acp_may_come_with_the_hello(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        caller = await home.caller()
        request = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\n'
        assert await caller.greet(hello() + request) == ACCEPTED
        caller.read()
        assert "result" in await caller.answer(1)


class Looks:
    """The daemon looks after its socket all the time; `begun` are its looks."""

    def __init__(self) -> None:
        self.begun = 0

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0.001 if seconds == LOOK else seconds)
        self.begun += seconds == LOOK

    async def until_over(self, more: int) -> None:
        """Wait for so many looks that begin from now on, until all of them are over."""
        last = self.begun + more

        async def over() -> bool:
            return self.begun > last

        await until(f"{more} looks are over", over)


async def test_a_socket_that_was_removed_is_made_again(tmp_path: Path) -> None:
    async with house(tmp_path, sleep=Looks().sleep) as home:
        before = await home.client()
        home.path.unlink()

        async def back() -> bool:
            return home.path.exists()

        await until("the socket is there again", back)
        after = await home.client()
        for caller in (before, after):
            await caller.call("initialize", protocolVersion=1)
        assert home.daemon.state is State.SERVING
    assert not home.path.exists()


async def test_a_socket_that_cannot_be_made_again_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    looks = Looks()
    async with house(tmp_path, sleep=looks.sleep) as home:
        before = await home.client()
        home.path.unlink()
        home.path.write_text("in the way")
        await looks.until_over(5)
        assert caplog.text.count("cannot be made again") == 1
        await before.call("initialize", protocolVersion=1)
        home.path.unlink()

        async def back() -> bool:
            return home.path.is_socket()

        await until("the socket is there again", back)
        await home.client()
