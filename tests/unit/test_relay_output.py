"""What the relay's output and error output may be, and what it does where they take nothing."""

from __future__ import annotations

import asyncio
import os
import pty
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio

from stubs.waiting import until
from tests.support.relays import (
    DEADLINE,
    LONG,
    Reader,
    Start,
    Writer,
    daemon,
    ended,
    flags,
    hang,
    one_sentence,
    starting,
)

LINES: Final = b"\n" * LONG
"""A terminal makes two bytes of each."""


@pytest_asyncio.fixture
async def start() -> AsyncIterator[Start]:
    async with starting() as begin:
        yield begin


async def test_a_terminal_that_is_not_read_does_not_hold_up_the_other_direction(
    tmp_path: Path, start: Start
) -> None:
    heard = asyncio.Event()

    async def serve(reader: Reader, writer: Writer, hello: bytes) -> None:
        async def half_taken() -> bool:
            return writer.transport.get_write_buffer_size() <= LONG - 64 * 1024

        writer.write(LINES)
        # By half of it the terminal is full, and the relay has met that.
        await until("the terminal is full", half_taken)
        await reader.readexactly(LONG)
        heard.set()
        await hang(reader, writer, hello)

    screen, terminal = pty.openpty()
    try:
        async with daemon(tmp_path / "s", serve):
            process = await start(*flags(tmp_path / "s"), stdout=terminal)
            os.close(terminal)
            assert process.stdin is not None
            process.stdin.write(b"u" * LONG)
            async with asyncio.timeout(DEADLINE):
                await heard.wait()
                shown = await asyncio.to_thread(_read, screen, 2 * LONG)
            process.stdin.close()
            async with asyncio.timeout(DEADLINE):
                assert await process.wait() == 0
    finally:
        os.close(screen)
    assert shown == b"\r\n" * LONG


def _read(descriptor: int, size: int) -> bytes:
    got = bytearray()
    while len(got) < size:
        got += os.read(descriptor, size - len(got))
    return bytes(got)


async def test_the_flags_of_a_pipe_that_others_share_stay_as_they_are(
    tmp_path: Path, start: Start
) -> None:
    async def serve(reader: Reader, writer: Writer, hello: bytes) -> None:
        writer.write(b"here\n")
        await hang(reader, writer, hello)

    read, write = os.pipe()
    try:
        async with daemon(tmp_path / "s", serve):
            await start(*flags(tmp_path / "s"), stdout=write)
            async with asyncio.timeout(DEADLINE):
                assert await asyncio.to_thread(os.read, read, 5) == b"here\n"
            assert os.get_blocking(write)
    finally:
        os.close(read)
        os.close(write)


async def test_output_that_takes_nothing_is_said(tmp_path: Path, start: Start) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    async with daemon(tmp_path / "s", hang, b"ok\n{}\n"):
        process = await start(*flags(tmp_path / "s"), stdout=full)
        os.close(full)
        assert process.stderr is not None
        async with asyncio.timeout(DEADLINE):
            err = (await process.stderr.read()).decode()
            assert await process.wait() == 1
    assert one_sentence(err) and "No space left" in err


@pytest.mark.parametrize("reader", ["has left", "does not read"])
async def test_the_exit_code_stands_where_the_sentence_cannot_be_said(
    tmp_path: Path, start: Start, reader: str
) -> None:
    read, write = os.pipe()
    if reader == "has left":
        os.close(read)
    else:
        fill(write)
    async with daemon(tmp_path / "s", hang, b"2 No.\n"):
        process = await start(*flags(tmp_path / "s"), stderr=write)
        async with asyncio.timeout(DEADLINE):
            assert await process.wait() == 2
    os.close(write)
    if reader != "has left":
        os.close(read)


def fill(pipe: int) -> None:
    """Write until it takes nothing more."""
    os.set_blocking(pipe, False)
    try:
        while os.write(pipe, b"x" * 4096):
            pass
    except BlockingIOError:
        os.set_blocking(pipe, True)


async def test_a_sentence_is_said_in_whatever_the_terminal_can_show(
    tmp_path: Path, start: Start
) -> None:
    ascii_alone = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    async with daemon(tmp_path / "s", hang, "2 Caf\u00e9.\n".encode()):
        process = await start(*flags(tmp_path / "s"), env=ascii_alone)
        assert await ended(process) == (2, b"", "opencode-acp: Caf?.\n")


async def test_a_path_in_a_sentence_is_plain(tmp_path: Path, start: Start) -> None:
    process = await start(*flags(tmp_path / "a\n\x1b[31mb"))
    code, out, err = await ended(process)
    assert (code, out, one_sentence(err)) == (75, b"", True)
    assert "a??[31mb" in err
