"""Where the daemon listens: one daemon a path, nothing of others removed, nobody else let in."""

from __future__ import annotations

import fcntl
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from adapter.daemon.listening import LOCK_SUFFIX, Listener, listen
from adapter.daemon.refusal import Refusal
from contract.attach import TEMPORARY, USAGE

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


class Doors:
    """Listeners that are closed after the test."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack

    def open(self, path: Path) -> Listener:
        listener = listen(str(path))
        self._stack.callback(listener.close)
        return listener


@pytest.fixture
def doors() -> Iterator[Doors]:
    with ExitStack() as stack:
        yield Doors(stack)


def answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        return client.connect_ex(str(path)) == 0


def leave_stale(path: Path) -> None:
    """A socket that nobody serves any more."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.bind(str(path))
        sock.listen()


def refusal(path: Path) -> Refusal:
    with pytest.raises(Refusal) as caught:
        listen(str(path))
    assert str(caught.value).count(". ") == 0
    assert str(caught.value).endswith(".")
    return caught.value


def in_place(listener: Listener) -> bool:
    return listener.in_place


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_only_its_user_reaches_the_socket_whatever_the_umask(tmp_path: Path, doors: Doors) -> None:
    path = tmp_path / "run" / "acp.sock"
    before = os.umask(0)
    try:
        listener = doors.open(path)
        assert os.umask(0) == 0
    finally:
        os.umask(before)
    assert (mode(path.parent), mode(path)) == (0o700, 0o600)
    assert mode(Path(f"{path}{LOCK_SUFFIX}")) == 0o600
    assert answers(path)
    assert listener.is_ours
    assert listener.in_place
    assert not listener.socket.getblocking()
    assert not listener.socket.get_inheritable()


def test_nothing_is_left_but_the_lock(tmp_path: Path, doors: Doors) -> None:
    path = tmp_path / "acp.sock"
    listener = doors.open(path)
    listener.close()
    listener.close()
    assert [one.name for one in tmp_path.iterdir()] == [f"acp.sock{LOCK_SUFFIX}"]
    assert doors.open(path).in_place


def waiting(path: Path, stack: ExitStack) -> list[socket.socket]:
    """Three that have connected and said who they are, and of whom nobody has taken note."""
    clients = [stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(3)]
    for client in clients:
        client.settimeout(10)
        client.connect(str(path))
        client.sendall(b"hello\n")
    return clients


def test_whoever_waits_at_its_end_is_told(tmp_path: Path, doors: Doors) -> None:
    path = tmp_path / "acp.sock"
    listener = doors.open(path)
    with ExitStack() as stack:
        clients = waiting(path, stack)
        listener.close(b"75 No.\n")
        assert [client.recv(64) for client in clients] == [b"75 No.\n"] * 3
    assert not path.exists()


def test_whoever_waits_at_a_socket_that_was_passed_is_left_there(tmp_path: Path) -> None:
    path = tmp_path / "acp.sock"
    with socket.socket(socket.AF_UNIX) as passed, ExitStack() as stack:
        passed.bind(str(path))
        passed.listen()
        passed.setblocking(False)
        clients = waiting(path, stack)
        Listener(passed.dup(), str(path)).close(b"75 No.\n")
        for _ in (*clients, *waiting(path, stack)):
            accepted, _ = passed.accept()
            accepted.close()


def test_nobody_gets_into_a_queue_that_is_given_up(
    tmp_path: Path, doors: Doors, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "acp.sock"
    listener = doors.open(path)
    with ExitStack() as stack:
        clients = waiting(path, stack)
        # As for those who looked the path up in the moment before.
        monkeypatch.setattr(os, "unlink", lambda _: None)
        told: list[bool] = []

        class Late(socket.socket):
            def accept(self) -> tuple[socket.socket, object]:
                told.append(answers(path))
                return super().accept()

        listener.socket = stack.enter_context(Late(fileno=listener.socket.detach()))
        listener.socket.setblocking(False)
        listener.close(b"75 No.\n")
        assert told == [False] * (len(clients) + 1)


def test_a_second_daemon_is_sent_away_and_the_first_goes_on(tmp_path: Path, doors: Doors) -> None:
    path = tmp_path / "acp.sock"
    doors.open(path)
    told = refusal(path)
    assert told.code == TEMPORARY
    assert f"Another daemon, process {os.getpid()}, holds the lock {path}" in str(told)
    assert "opencode-acp status" in str(told)
    assert answers(path)


def test_a_lock_that_does_not_say_who_holds_it(tmp_path: Path, doors: Doors) -> None:
    path = tmp_path / "acp.sock"
    doors.open(path)
    Path(f"{path}{LOCK_SUFFIX}").write_text("somebody")
    assert "Another daemon holds the lock" in str(refusal(path))


def test_the_lock_names_its_newest_holder(tmp_path: Path, doors: Doors) -> None:
    path = tmp_path / "acp.sock"
    lock = Path(f"{path}{LOCK_SUFFIX}")
    lock.write_text("999999999 and more\n")
    doors.open(path)
    assert lock.read_text() == f"{os.getpid()}\n"


def test_a_stale_socket_is_replaced(tmp_path: Path, doors: Doors) -> None:
    path = tmp_path / "acp.sock"
    leave_stale(path)
    assert not answers(path)
    doors.open(path)
    assert answers(path)


def test_a_socket_that_another_program_serves_is_left(tmp_path: Path) -> None:
    path = tmp_path / "acp.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.bind(str(path))
        sock.listen()
        told = refusal(path)
        assert told.code == TEMPORARY
        assert f"opened by process {os.getpid()};" in str(told)
        assert answers(path)


def test_a_server_whose_queue_is_full_is_not_taken_for_dead(tmp_path: Path) -> None:
    path = tmp_path / "acp.sock"
    with ExitStack() as stack:
        server = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        server.bind(str(path))
        server.listen(0)
        while True:
            client = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            client.setblocking(False)
            if client.connect_ex(str(path)):
                break
        told = refusal(path)
        assert told.code == TEMPORARY
        assert "another process;" in str(told)


@pytest.mark.parametrize("kind", ["file", "directory", "link", "datagram"])
def test_what_is_no_socket_of_ours_is_left(tmp_path: Path, kind: str) -> None:
    path, other = tmp_path / "acp.sock", tmp_path / "other"
    with ExitStack() as stack:
        if kind == "file":
            path.write_text("mine")
        elif kind == "directory":
            path.mkdir()
        elif kind == "link":
            leave_stale(other)
            path.symlink_to(other)
        else:
            datagram = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
            datagram.bind(str(path))
        before = path.lstat()
        assert refusal(path).code in (USAGE, TEMPORARY)
        assert path.lstat() == before


@as_root
def test_a_stale_socket_of_another_user_is_left(tmp_path: Path) -> None:
    path = tmp_path / "acp.sock"
    leave_stale(path)
    os.chown(path, NOBODY, NOBODY)
    assert refusal(path).code == USAGE
    assert path.is_socket()


@pytest.mark.parametrize("bits", [0o770, 0o707, 0o777, 0o1777])
def test_a_directory_in_which_others_write_is_refused(tmp_path: Path, bits: int) -> None:
    """In a sticky one nobody removes what is ours, but anybody may be there before us."""
    directory = tmp_path / "run"
    directory.mkdir()
    directory.chmod(bits)
    assert refusal(directory / "acp.sock").code == USAGE
    assert list(directory.iterdir()) == []


@pytest.mark.parametrize(("bits", "will_do"), [(0o777, False), (0o1777, True)])
def test_what_is_above_the_directory(
    tmp_path: Path, doors: Doors, bits: int, will_do: bool
) -> None:
    above = tmp_path / "above"
    (above / "run").mkdir(parents=True, mode=0o700)
    above.chmod(bits)
    path = above / "run" / "acp.sock"
    if will_do:
        assert answers(Path(doors.open(path).path))
    else:
        assert str(above) in str(refusal(path))


@as_root
def test_a_directory_of_another_user_is_refused(tmp_path: Path) -> None:
    directory = tmp_path / "run"
    directory.mkdir(mode=0o700)
    os.chown(directory, NOBODY, NOBODY)
    assert refusal(directory / "acp.sock").code == USAGE


@pytest.mark.parametrize("name", ["file/acp.sock", f"{'n' * 120}.sock"])
def test_a_path_that_cannot_be_is_told(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    assert refusal(tmp_path / name).code == USAGE


def test_the_lock_is_no_way_to_another_file(tmp_path: Path) -> None:
    target = tmp_path / "target"
    (tmp_path / f"acp.sock{LOCK_SUFFIX}").symlink_to(target)
    assert refusal(tmp_path / "acp.sock").code == USAGE
    assert not target.exists()


def test_a_start_that_fails_lets_go_of_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "acp.sock"
    path.write_text("in the way")
    refusal(path)
    with open(f"{path}{LOCK_SUFFIX}") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_what_another_put_in_its_place_is_left(tmp_path: Path, doors: Doors) -> None:
    path = tmp_path / "acp.sock"
    listener = doors.open(path)
    path.unlink()
    leave_stale(path)
    assert not listener.in_place
    listener.close()
    assert path.is_socket()


@pytest.mark.parametrize("gone", ["socket", "directory"])
def test_a_socket_that_is_gone_is_made_again(tmp_path: Path, doors: Doors, gone: str) -> None:
    path = tmp_path / "run" / "acp.sock"
    listener = doors.open(path)
    path.unlink()
    if gone == "directory":
        Path(f"{path}{LOCK_SUFFIX}").unlink()
        path.parent.rmdir()
    assert not in_place(listener)
    listener.renew()
    assert in_place(listener)
    assert answers(path)
    assert refusal(path).code == TEMPORARY
    listener.close()
    assert not path.exists()


def test_it_is_not_made_again_over_that_of_a_new_daemon(tmp_path: Path, doors: Doors) -> None:
    path = tmp_path / "run" / "acp.sock"
    listener = doors.open(path)
    path.unlink()
    Path(f"{path}{LOCK_SUFFIX}").unlink()
    fresh = doors.open(path)
    with pytest.raises(Refusal):
        listener.renew()
    listener.close()
    assert fresh.in_place
    assert answers(path)
