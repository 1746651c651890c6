"""The stdio transport on every kind of descriptor, under both event loops."""

from __future__ import annotations

import asyncio
import os
import pty
import socket
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
import uvloop

from adapter.acp.stdio import StdioTransport

DEADLINE = 5.0

Run = Callable[[Coroutine[object, object, object]], object]


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    def run_in(coroutine: Coroutine[object, object, object]) -> object:
        async def bounded() -> object:
            async with asyncio.timeout(DEADLINE):
                return await coroutine

        with asyncio.Runner(loop_factory=request.param) as runner:
            return runner.run(bounded())

    return run_in


@pytest.fixture
def owned() -> Iterator[Callable[[int], int]]:
    """Descriptors that are closed after the test."""
    with ExitStack() as stack:

        def own(descriptor: int) -> int:
            stack.callback(os.close, descriptor)
            return descriptor

        yield own


async def turns_of_the_loop() -> None:
    """Enough turns for whatever can go on without the test to have gone on."""
    for _ in range(20):
        await asyncio.sleep(0)


async def read_all(transport: StdioTransport) -> bytes:
    data = b""
    while chunk := await transport.read():
        data += chunk
    return data


@pytest.mark.parametrize("kind", ["pipe", "socket", "file", "null"])
def test_reads_whatever_the_source_is(
    run: Run, owned: Callable[[int], int], tmp_path: Path, kind: str
) -> None:
    sink, want = owned(os.open(os.devnull, os.O_WRONLY)), b"one\ntwo\n"
    if kind == "pipe":
        source, far = os.pipe()
        os.write(far, want)
        os.close(far)
    elif kind == "socket":
        near_socket, far_socket = socket.socketpair()
        source = near_socket.detach()
        far_socket.sendall(want)
        far_socket.close()
    elif kind == "file":
        (tmp_path / "in").write_bytes(want)
        source = os.open(tmp_path / "in", os.O_RDONLY)
    else:
        source, want = os.open(os.devnull, os.O_RDONLY), b""
    transport = StdioTransport(owned(source), sink, pending=b"early\n")
    assert run(read_all(transport)) == b"early\n" + want


def test_reads_a_terminal(run: Run, owned: Callable[[int], int]) -> None:
    terminal, near = (owned(fd) for fd in pty.openpty())

    async def scenario() -> None:
        transport = StdioTransport(near, near)
        reading = asyncio.create_task(transport.read())
        await asyncio.sleep(0)
        os.write(terminal, b"typed\n")
        assert await reading == b"typed\n"
        transport.write(b"shown\n")
        await transport.drain()
        transport.close()

    run(scenario())


def test_the_descriptors_stay_blocking_for_those_who_share_them(
    run: Run, owned: Callable[[int], int]
) -> None:
    source, far = (owned(fd) for fd in os.pipe())
    far_out, sink = (owned(fd) for fd in os.pipe())

    async def scenario() -> None:
        transport = StdioTransport(source, sink)
        reading = asyncio.create_task(transport.read())
        await turns_of_the_loop()
        os.write(far, b"x")
        await reading
        transport.write(b"y")
        await transport.drain()
        assert os.get_blocking(source)
        assert os.get_blocking(sink)
        transport.close()

    run(scenario())
    assert os.read(far_out, 10) == b"y"


@pytest.mark.parametrize("kind", ["pipe", "socket"])
def test_a_slow_reader_blocks_drain_and_nothing_else(
    run: Run, owned: Callable[[int], int], kind: str
) -> None:
    if kind == "pipe":
        far, sink = (owned(fd) for fd in os.pipe())
    else:
        far, sink = (owned(end.detach()) for end in socket.socketpair())
    os.set_blocking(far, False)
    data = os.urandom(2**20)

    async def scenario() -> None:
        transport = StdioTransport(owned(os.open(os.devnull, os.O_RDONLY)), sink)
        transport.write(data)
        draining = asyncio.create_task(transport.drain())
        await turns_of_the_loop()
        assert not draining.done()
        got = b""
        while len(got) < len(data):
            with suppress(BlockingIOError):
                got += os.read(far, 2**16)
            await asyncio.sleep(0)
        await draining
        assert got == data
        transport.close()

    run(scenario())


def test_writes_a_regular_file(run: Run, owned: Callable[[int], int], tmp_path: Path) -> None:
    null = owned(os.open(os.devnull, os.O_RDONLY))
    sink = owned(os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT))

    async def scenario() -> None:
        transport = StdioTransport(null, sink)
        transport.write(b"x" * 100_000)
        await transport.drain()
        transport.close()

    run(scenario())
    assert (tmp_path / "out").stat().st_size == 100_000


def test_a_reader_that_is_gone_is_an_error_of_drain(run: Run, owned: Callable[[int], int]) -> None:
    null = owned(os.open(os.devnull, os.O_RDONLY))
    far, sink = os.pipe()
    owned(sink)
    os.close(far)

    async def scenario() -> None:
        transport = StdioTransport(null, sink)
        transport.write(b"x")
        with pytest.raises(BrokenPipeError):
            await transport.drain()
        transport.close()

    run(scenario())


def test_close_ends_a_pending_read_and_a_pending_drain(
    run: Run, owned: Callable[[int], int]
) -> None:
    source, _far = (owned(fd) for fd in os.pipe())
    _far_out, sink = (owned(fd) for fd in os.pipe())

    async def scenario() -> None:
        transport = StdioTransport(source, sink)
        transport.write(b"x" * 2**20)
        reading = asyncio.create_task(transport.read())
        draining = asyncio.create_task(transport.drain())
        await turns_of_the_loop()
        transport.close()
        transport.close()
        assert await reading == b""
        await draining
        assert await transport.read() == b""

    run(scenario())
