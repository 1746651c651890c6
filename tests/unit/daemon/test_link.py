"""A link over one socket: what is read, what is kept, and how either side ends it."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from adapter.daemon.link import CHUNK, Link

BIG = 4 * 1024 * 1024


@pytest_asyncio.fixture
async def pair() -> AsyncIterator[tuple[Link, socket.socket]]:
    near, far = socket.socketpair()
    near.setblocking(False)
    far.setblocking(False)
    link = Link(near)
    with far:
        yield link, far
        link.close()


async def waiting(task: asyncio.Task[bytes] | asyncio.Task[None]) -> bool:
    """Whether the task still waits after enough turns of the loop to have gone on."""
    for _ in range(20):
        await asyncio.sleep(0)
    return not task.done()


async def take(far: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        data += await asyncio.get_running_loop().sock_recv(far, 1 << 20)
    return data


async def test_reads_what_comes_and_then_the_end(pair: tuple[Link, socket.socket]) -> None:
    link, far = pair
    reading = asyncio.create_task(link.read())
    assert await waiting(reading)
    far.send(b"one")
    assert await reading == b"one"
    far.send(b"two")
    far.shutdown(socket.SHUT_WR)
    assert await link.read() == b"two"
    assert await link.read() == b""
    link.write(b"still written")
    await link.drain()
    assert far.recv(100) == b"still written"


async def test_what_was_read_too_far_comes_first(pair: tuple[Link, socket.socket]) -> None:
    link, far = pair
    far.send(b"behind")
    link.unread(b"before ")
    assert [await link.read(), await link.read()] == [b"before ", b"behind"]


async def test_a_client_that_always_sends_lets_others_run(pair: tuple[Link, socket.socket]) -> None:
    link, far = pair
    far.send(b"x" * 1000)
    turns: list[int] = []
    asyncio.get_running_loop().call_soon(turns.append, 1)
    await link.read()
    assert turns


async def test_what_the_socket_does_not_take_is_kept_in_order(
    pair: tuple[Link, socket.socket],
) -> None:
    link, far = pair
    data = os.urandom(BIG)
    link.write(data[: BIG // 2])
    link.write(data[BIG // 2 :])
    draining = asyncio.create_task(link.drain())
    assert await waiting(draining)
    assert await take(far, BIG) == data
    await draining


async def test_a_client_that_left_is_an_error_for_whoever_writes(
    pair: tuple[Link, socket.socket],
) -> None:
    link, far = pair
    link.write(b"x" * BIG)
    draining = asyncio.create_task(link.drain())
    assert await waiting(draining)
    far.close()
    with pytest.raises(OSError):
        await draining
    link.write(b"more")
    with pytest.raises(OSError):
        await link.drain()


@pytest.mark.parametrize("ending", [Link.close, Link.end])
async def test_a_read_that_waits_is_over_once_the_link_is(
    pair: tuple[Link, socket.socket], ending: object
) -> None:
    link, far = pair
    reading = asyncio.create_task(link.read())
    assert await waiting(reading)
    (link.close if ending is Link.close else link.end)()
    assert await reading == b""
    if ending is Link.end:
        far.send(b"too late")
    assert await link.read() == b""


async def test_what_was_ended_still_writes(pair: tuple[Link, socket.socket]) -> None:
    link, far = pair
    link.end()
    link.write(b"answer")
    await link.drain()
    assert far.recv(100) == b"answer"


async def test_a_drain_that_waits_is_over_once_the_link_is_closed(
    pair: tuple[Link, socket.socket],
) -> None:
    link, far = pair
    link.write(b"x" * BIG)
    draining = asyncio.create_task(link.drain())
    assert await waiting(draining)
    link.close()
    await draining
    assert len(await take(far, CHUNK)) < BIG


async def test_a_descriptor_that_is_free_again_belongs_to_nobody_here() -> None:
    near, far = socket.socketpair()
    near.setblocking(False)
    link = Link(near)
    reading = asyncio.create_task(link.read())
    assert await waiting(reading)
    number = near.fileno()
    link.close()
    again, other = socket.socketpair()
    with far, again, other:
        assert number in (again.fileno(), other.fileno())
        other.setblocking(False)
        again.send(b"x")
        other.send(b"y")
        assert await asyncio.get_running_loop().sock_recv(other, 10) == b"x"
        link.close()
        assert await reading == b""


async def test_a_read_that_is_given_up_leaves_the_bytes(pair: tuple[Link, socket.socket]) -> None:
    link, far = pair
    reading = asyncio.create_task(link.read())
    assert await waiting(reading)
    reading.cancel()
    await asyncio.wait({reading})
    far.send(b"kept")
    assert await link.read() == b"kept"
