"""The log that nobody takes: whoever logs goes on, and what is lost or left out is told."""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import select
import struct
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from adapter.flood import LINES, SECONDS, Fate, Flood
from adapter.logs import set_up
from adapter.spool import Spool
from contract.attach import ACCEPTED, OK
from stubs.server import Settings as StubSettings
from stubs.server import StubServer
from stubs.waiting import until
from tests.support.logs import log_stream
from tests.unit.commands.process import start
from tests.unit.daemon.house import Caller, visitors

PIPE = 64 * 1024
LONG = "a" * 2 * PIPE


@contextmanager
def pipe(waiting: int = 1_000_000, *, blocking: bool = True) -> Iterator[tuple[int, Spool]]:
    """A log into a pipe, and the end that takes it."""
    read, write = os.pipe()
    os.set_blocking(write, blocking)
    fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, PIPE)
    with os.fdopen(read, "rb"), os.fdopen(write, "w", encoding="utf-8") as stream:
        spool = Spool(stream, waiting=waiting, flush_seconds=0.01)
        yield read, spool
        spool.close()


def say(spool: Spool, message: object, line: int = 1) -> None:
    spool.handle(logging.LogRecord("x", logging.INFO, "x.py", line, message, (), None))


def held(read: int) -> int:
    """Bytes in a pipe."""
    (number,) = struct.unpack("i", fcntl.ioctl(read, termios.FIONREAD, b"1234"))
    return int(number)


def take(read: int, end: str) -> list[str]:
    """The lines of the pipe, up to the one with this end."""
    data = b""
    while not data.endswith(f"{end}\n".encode()):
        assert select.select([read], [], [], 10)[0], f"never came: {end}"
        data += os.read(read, PIPE)
    return data.decode().splitlines()


async def test_who_logs_waits_for_nobody_and_what_is_lost_is_counted_in_its_place() -> None:
    with pipe(waiting=len(LONG) + 1) as (read, spool):
        say(spool, LONG)

        async def stands() -> bool:
            return held(read) == PIPE

        await until("the pipe takes nothing more", stands)
        short = "b" * (PIPE // 2 - 1)
        for _ in range(10):
            say(spool, short)
        lines = take(read, "in time")
        lost = "missing here: 6 lines of the log, which nobody took in time"
        assert lines == [LONG, *[short] * 4, lost]
        say(spool, "c")
        assert take(read, "c") == ["c"]


def test_a_line_that_never_fits_is_counted_at_once() -> None:
    with pipe(waiting=10) as (read, spool):
        say(spool, "a" * 10)
        assert take(read, "in time")[0].startswith("missing here: 1 line of the log")


def test_a_file_that_others_made_non_blocking_gets_every_byte() -> None:
    with pipe(blocking=False) as (read, spool):
        say(spool, LONG)
        say(spool, "e")
        assert take(read, "e") == [LONG, "e"]


def test_the_end_waits_for_what_was_said_but_not_for_ever() -> None:
    with pipe() as (read, spool):
        say(spool, "a")
        spool.flush()
        assert held(read) == 2
        say(spool, LONG)
        spool.flush()
        spool.close()
        assert take(read, LONG) == ["a", LONG]


class Mute:
    def __str__(self) -> str:
        raise AttributeError


def test_who_says_what_has_no_text_does_not_fail() -> None:
    with pipe() as (read, spool):
        say(spool, Mute())
        assert take(read, "made") == ["the line of x:1 cannot be made"]


def test_of_a_place_that_floods_the_first_are_told_and_that_there_are_more() -> None:
    with pipe() as (read, spool):
        for number in range(LINES + 50):
            say(spool, f"a client did this: {number}")
        say(spool, "another place", line=2)
        lines = take(read, "place")
    assert lines[LINES - 1] == f"a client did this: {LINES - 1}"
    more = f"further lines as the last one are left out, until {SECONDS:g} s are over since the"
    assert lines[LINES:] == [f"{more} first", "another place"]


def test_a_place_is_told_of_again_after_a_while() -> None:
    now = 0.0
    flood = Flood(lambda: now, lines=2, seconds=10.0)
    record = logging.LogRecord("x", logging.INFO, "x.py", 1, "a", (), None)
    assert [flood.take(record) for _ in range(3)] == [Fate.TOLD, Fate.LAST, Fate.LEFT_OUT]
    now = 9.9
    assert flood.take(record) is Fate.LEFT_OUT
    now = 10.0
    assert [flood.take(record) for _ in range(2)] == [Fate.TOLD, Fate.LAST]


@pytest.mark.parametrize(("level", "extra"), [("info", {"fields": {"A": "x"}}), ("debug", {})])
def test_every_turn_has_its_line_and_debug_has_all(level: str, extra: dict[str, object]) -> None:
    with log_stream() as out:
        set_up(level, "text", daemon=True, stream=out)
        for _ in range(LINES + 50):
            logging.getLogger("x").info("over", extra=extra)
        assert len(out.getvalue().splitlines()) == LINES + 50


async def test_a_daemon_whose_log_nobody_reads_serves_and_ends(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "log")
    log = os.open(tmp_path / "log", os.O_RDONLY | os.O_NONBLOCK)
    size = fcntl.fcntl(log, fcntl.F_SETPIPE_SZ, 4096)
    async with (
        StubServer(StubSettings(project=str(tmp_path))) as stub,
        visitors(tmp_path / "run" / "acp.sock") as come,
    ):
        served = await start(tmp_path, stub.url)

        async def listens() -> bool:
            assert served.process.returncode is None
            return served.path.is_socket()

        async def greeted() -> Caller:
            caller = come()
            assert await caller.greet() == ACCEPTED
            caller.read()
            return caller

        try:
            await until("the daemon listens", listens)
            noisy, other = await greeted(), await greeted()
            # No version: a line of the log each, and no answer.
            flood = b'{"method":"x"}\n' * 2000
            await asyncio.get_running_loop().sock_sendall(noisy.socket, flood)

            async def stands() -> bool:
                return held(log) > size - 256

            await until("the pipe takes nothing more", stands)
            await noisy.call("initialize", protocolVersion=1)
            await other.call("initialize", protocolVersion=1)
            assert await served.end() == OK
        finally:
            if served.process.returncode is None:
                served.process.kill()
            await served.process.wait()
            os.close(log)
