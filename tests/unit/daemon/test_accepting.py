"""Clients that come when no descriptor is left: those who are here are served."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from adapter.commands.inquiry import get
from adapter.daemon.accepting import Acceptor
from contract.attach import ACCEPTED, admin_socket
from stubs.server import Settings as StubSettings
from stubs.server import StubServer
from stubs.waiting import until
from tests.unit.commands.process import Served, serving
from tests.unit.daemon.house import Caller, visitors


class Short(socket.socket):
    """A listening socket that cannot accept while it has these errors."""

    errors: tuple[int, ...] = ()
    failures = 0

    def accept(self) -> tuple[socket.socket, object]:
        if self.errors:
            self.failures += 1
            raise OSError(self.errors[0], os.strerror(self.errors[0]))
        return super().accept()


@contextmanager
def listening(root: Path) -> Iterator[Short]:
    with Short(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.bind(str(root / "s"))
        sock.listen()
        sock.setblocking(False)
        yield sock


async def until_failed(sock: Short, times: int) -> None:
    async def failed() -> bool:
        return sock.failures >= times

    await until(f"{times} attempts have failed", failed)


async def until_here(arrived: list[socket.socket], number: int) -> None:
    async def here() -> bool:
        return len(arrived) == number

    await until(f"{number} clients are here", here)


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EPERM])
async def test_it_rests_goes_on_and_tells_it_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, number: int
) -> None:
    arrived: list[socket.socket] = []
    with listening(tmp_path) as sock:
        sock.errors = (number,)
        acceptor = Acceptor(sock, arrived.append, b"75 No.\n", pause=0.01)
        acceptor.start()
        caller = Caller(tmp_path / "s")
        await until_failed(sock, 3)
        assert caplog.text.count("cannot be accepted") == 1
        assert arrived == []
        sock.errors = ()
        await until_here(arrived, 1)
        acceptor.stop()
        acceptor.stop()
        await caller.aclose()
    arrived[0].close()


async def test_a_shortage_that_comes_and_goes_is_one_and_after_a_quiet_time_another(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    now = 0.0
    arrived: list[socket.socket] = []
    with listening(tmp_path) as sock:
        acceptor = Acceptor(sock, arrived.append, b"75 No.\n", pause=0.01, clock=lambda: now)
        acceptor.start()
        callers = []
        for number, (seconds, told) in enumerate(((0.0, 1), (59.0, 1), (59.0, 1), (60.0, 2)), 1):
            now += seconds
            sock.errors = (errno.EMFILE,)
            sock.failures = 0
            callers.append(Caller(tmp_path / "s"))
            await until_failed(sock, 1)
            assert caplog.text.count("cannot be accepted") == told
            sock.errors = ()
            await until_here(arrived, number)
        acceptor.stop()
        for caller in callers:
            await caller.aclose()
    for one in arrived:
        one.close()


async def leave(served: Served, free: int, caller: Caller) -> None:
    """The daemon may open so many descriptors more."""
    metrics = await asyncio.to_thread(get, admin_socket(str(served.path)), "/metrics")
    (used,) = re.findall(rb"^process_open_fds (\S+)$", metrics, re.MULTILINE)
    # Two of them were for the look itself, and are gone when it has answered something else.
    for _ in range(2):
        await caller.call("initialize", protocolVersion=1)
    pid = served.process.pid
    _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (int(float(used)) - 2 + free, hard))


async def test_without_a_descriptor_clients_are_sent_away_and_turns_go_on(tmp_path: Path) -> None:
    shape = StubSettings(project=str(tmp_path), delta_interval=0.01)
    async with (
        StubServer(shape) as stub,
        serving(tmp_path, stub.url) as served,
        visitors(served.path) as come,
    ):
        first = come()
        assert await first.greet() == ACCEPTED
        first.read()
        session = await first.new(tmp_path)
        ident = await first.prompt(session, "@@text 100 5@@")
        await first.until_text(session, "w0 ")
        limits = resource.prlimit(served.process.pid, resource.RLIMIT_NOFILE)
        await leave(served, 2, first)
        crowd = [come() for _ in range(40)]
        answers = [await one.greet_or_hear() for one in crowd]
        sent_away = [line for line in answers if line != ACCEPTED]
        assert len(sent_away) > 20
        assert {line.partition(b" ")[0] for line in sent_away} == {b"75"}
        assert await first.stop_reason(ident) == "end_turn"
        assert first.text(session).endswith("w99 ")
        resource.prlimit(served.process.pid, resource.RLIMIT_NOFILE, limits)
        assert await come().greet() == ACCEPTED
        assert served.log.count("cannot be accepted") == 1
