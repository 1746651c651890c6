"""The line before ACP: its fields, its bounds, and what is behind it."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from adapter.daemon.hello import Hello, credentials, parse, read_hello
from adapter.daemon.link import Link
from adapter.daemon.refusal import Refusal
from contract.attach import (
    ANSWER_BYTES,
    HELLO,
    HELLO_BYTES,
    TEMPORARY,
    UCRED_BYTES,
    USAGE,
    user_of,
)
from tests.support.strangers import as_root, user
from tests.unit.daemon.house import hello

SOON = 5.0


@pytest_asyncio.fixture
async def pair() -> AsyncIterator[tuple[Link, socket.socket]]:
    near, far = socket.socketpair()
    near.setblocking(False)
    link = Link(near)
    with far:
        yield link, far
        link.close()


Pair = tuple[Link, socket.socket]


def test_the_fields() -> None:
    line = hello(version="1.2", cwd="/a b=c", client="77", set_server="http://x", set_mcp="")
    assert parse(line[:-1]) == Hello(
        version="1.2", cwd="/a b=c", client_pid=77, settings={"server": "http://x", "mcp": ""}
    )


@pytest.mark.parametrize(
    ("rest", "known"),
    [
        (b"", Hello()),
        (b"\0", Hello()),
        (b"\0=x\0new=1\0version", Hello()),
        (b"\0client=-1", Hello()),
        (b"\0client=9999999999999", Hello()),
        (b"\0cwd=/\xff", Hello(cwd=os.fsdecode(b"/\xff"))),
        (b"\0version=1\0version=2", Hello(version="2")),
    ],
)
def test_what_is_missing_odd_or_new_is_no_fault(rest: bytes, known: Hello) -> None:
    assert parse(HELLO.encode() + rest) == known


@pytest.mark.parametrize("line", [b"", b"opencode-acp 2\0version=9", b'{"jsonrpc":"2.0"}', b"\xff"])
def test_another_protocol_is_refused_in_one_line(line: bytes) -> None:
    with pytest.raises(Refusal) as caught:
        parse(line)
    assert caught.value.code == TEMPORARY
    answer = caught.value.line()
    assert answer.startswith(b"75 ")
    assert answer.count(b"\n") == 1


def test_no_answer_is_longer_than_a_relay_reads() -> None:
    line = Refusal(2, "long\n" * ANSWER_BYTES).line()
    assert len(line) == ANSWER_BYTES
    assert line.index(b"\n") == ANSWER_BYTES - 1


async def test_what_is_behind_the_line_is_left_to_acp(pair: Pair) -> None:
    link, far = pair
    line = hello(cwd="/x")
    far.send(line[:5])
    reading = asyncio.create_task(read_hello(link, SOON))
    await asyncio.sleep(0)
    far.send(line[5:] + b'{"id":1}\n{"id"')
    assert await reading == Hello(cwd="/x")
    far.send(b":2}\n")
    assert [await link.read(), await link.read()] == [b'{"id":1}\n{"id"', b":2}\n"]


async def test_a_client_that_leaves_before_is_nobody(pair: Pair) -> None:
    link, far = pair
    far.send(b"opencode-acp")
    far.shutdown(socket.SHUT_WR)
    assert await read_hello(link, SOON) is None


@pytest.mark.parametrize("end", [b"", b"\n"])
async def test_a_line_that_is_too_long_is_refused(pair: Pair, end: bytes) -> None:
    link, far = pair
    far.setblocking(False)
    line = hello()[:-1] + b"\0cwd="
    data = line + b"x" * (HELLO_BYTES - len(line)) + end
    sending = asyncio.create_task(asyncio.get_running_loop().sock_sendall(far, data))
    with pytest.raises(Refusal) as caught:
        await read_hello(link, SOON)
    assert caught.value.code == USAGE
    await sending


async def test_the_longest_line_is_taken(pair: Pair) -> None:
    link, far = pair
    far.setblocking(False)
    line = hello()[:-1] + b"\0cwd="
    data = line + b"x" * (HELLO_BYTES - len(line) - 1) + b"\n"
    assert len(data) == HELLO_BYTES
    sending = asyncio.create_task(asyncio.get_running_loop().sock_sendall(far, data))
    known = await read_hello(link, SOON)
    assert known is not None
    assert set(known.cwd) == {"x"}
    await sending


async def test_a_line_that_does_not_end_in_time_is_refused(pair: Pair) -> None:
    link, far = pair
    far.send(b"opencode-acp 1")
    with pytest.raises(Refusal) as caught:
        await read_hello(link, 0.01)
    assert caught.value.code == TEMPORARY


async def test_the_kernel_says_who_it_is(pair: Pair) -> None:
    _, far = pair
    who = credentials(far)
    assert (who.pid, who.uid) == (os.getpid(), os.getuid())


@as_root
@pytest.mark.parametrize("uid", [2**31, 3_000_000_000, 2**32 - 2])
def test_a_user_id_has_no_sign(uid: int) -> None:
    """Ids of a directory service are that high."""
    with user(uid):
        near, far = socket.socketpair()
    with near, far:
        assert credentials(near).uid == uid
        raw = near.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, UCRED_BYTES)
        assert user_of(raw) == uid
