"""Sockets of the service manager: by name, and nothing that is no listening Unix socket."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from adapter.daemon.activation import passed
from adapter.daemon.refusal import Refusal
from contract.attach import USAGE

FIRST = 500
"""A stretch of descriptors that nothing else has."""

Pass = Callable[..., dict[str, str]]


@pytest.fixture
def give() -> Iterator[Pass]:
    """Puts sockets where the service manager would, and says so."""

    def give(*sockets: socket.socket, names: str | None = None) -> dict[str, str]:
        for place, sock in enumerate(sockets):
            os.dup2(sock.fileno(), FIRST + place)
        environ = {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": str(len(sockets)), "HOME": "/"}
        return environ if names is None else environ | {"LISTEN_FDNAMES": names}

    yield give
    for descriptor in range(FIRST, FIRST + 4):
        with suppress(OSError):
            os.close(descriptor)


@pytest.fixture
def unix(tmp_path: Path) -> Iterator[Callable[[str], socket.socket]]:
    with ExitStack() as stack:

        def make(name: str) -> socket.socket:
            sock = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            sock.bind(str(tmp_path / name))
            sock.listen()
            return sock

        yield make


Unix = Callable[[str], socket.socket]


@pytest.mark.parametrize("names", [None, "", "acp", "unknown", "opencode-acp.socket"])
def test_a_single_one_is_that_of_the_clients(
    give: Pass, unix: Unix, tmp_path: Path, names: str | None
) -> None:
    environ = give(unix("a.sock"), names=names)
    (listener,) = passed(environ, FIRST).values()
    assert environ == {"HOME": "/"}
    assert listener.path == str(tmp_path / "a.sock")
    assert not listener.is_ours
    assert not listener.socket.getblocking()
    assert not listener.socket.get_inheritable()
    listener.close()
    assert (tmp_path / "a.sock").is_socket()


def test_two_are_told_apart_by_their_names(give: Pass, unix: Unix) -> None:
    environ = give(unix("a.sock"), unix("b.sock"), names="admin:acp")
    found = passed(environ, FIRST)
    assert {name: Path(one.path).name for name, one in found.items()} == {
        "admin": "a.sock",
        "acp": "b.sock",
    }
    for listener in found.values():
        listener.close()


def test_that_of_the_administration_may_come_alone(give: Pass, unix: Unix) -> None:
    found = passed(give(unix("a.sock"), names="admin"), FIRST)
    assert list(found) == ["admin"]
    found["admin"].close()


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"LISTEN_FDS": "1"},
        {"LISTEN_PID": "1", "LISTEN_FDS": "1"},
        {"LISTEN_PID": str(os.getpid())},
        {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "0"},
        {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "many"},
        {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "9" * 5000},
    ],
)
def test_what_was_passed_to_another_process_or_not_at_all(environ: dict[str, str]) -> None:
    assert passed(environ, FIRST) == {}
    assert environ == {}


@pytest.mark.parametrize("names", ["acp:acp", "acp", "one:two", None])
def test_names_that_mean_nothing_are_refused(give: Pass, unix: Unix, names: str | None) -> None:
    environ = give(unix("a.sock"), unix("b.sock"), names=names)
    with pytest.raises(Refusal) as caught:
        passed(environ, FIRST)
    assert caught.value.code == USAGE


@pytest.mark.parametrize("kind", ["tcp", "datagram", "not listening", "file", "closed"])
def test_what_is_no_listening_unix_socket_is_refused(give: Pass, kind: str) -> None:
    family = socket.AF_INET if kind == "tcp" else socket.AF_UNIX
    type_ = socket.SOCK_DGRAM if kind == "datagram" else socket.SOCK_STREAM
    with socket.socket(family, type_) as sock:
        if kind == "tcp":
            sock.bind(("127.0.0.1", 0))
            sock.listen()
        environ = give(sock)
    if kind == "file":
        with open(os.devnull) as null:
            os.dup2(null.fileno(), FIRST)
    elif kind == "closed":
        os.close(FIRST)
    with pytest.raises(Refusal) as caught:
        passed(environ, FIRST)
    assert caught.value.code == USAGE
