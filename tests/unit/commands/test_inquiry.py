"""Asking the daemon that runs: where it is looked for, and what is said if nobody answers."""

from __future__ import annotations

import argparse
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from adapter.commands import inquiry
from adapter.commands.parser import parser
from contract.attach import TEMPORARY

MODES = ("status", "sessions")


def given(*arguments: str) -> argparse.Namespace:
    return parser().parse_args(arguments)


@contextmanager
def answering(path: Path, answer: bytes) -> Iterator[None]:
    """A process that answers one request with these bytes."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        listener.listen()

        def serve() -> None:
            client, _ = listener.accept()
            with client:
                client.recv(65536)
                client.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield
        thread.join()


def test_the_socket_is_by_flag_by_environment_or_beside_the_daemons(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/run/user/7")
    monkeypatch.delenv("OPENCODE_ACP_SOCKET", raising=False)
    monkeypatch.delenv("OPENCODE_ACP_ADMIN_SOCKET", raising=False)
    assert inquiry.path_of(given("status")) == "/run/user/7/opencode-acp-admin.sock"
    monkeypatch.setenv("OPENCODE_ACP_SOCKET", "/run/own.sock")
    assert inquiry.path_of(given("status")) == "/run/own-admin.sock"
    monkeypatch.setenv("OPENCODE_ACP_ADMIN_SOCKET", "/run/set.sock")
    assert inquiry.path_of(given("status")) == "/run/set.sock"
    assert inquiry.path_of(given("status", "--socket", "/a.sock")) == "/a-admin.sock"
    both = given("status", "--socket", "/a.sock", "--admin-socket", "/b.sock")
    assert inquiry.path_of(both) == "/b.sock"


@pytest.mark.parametrize("command", MODES)
def test_no_daemon_is_a_sentence_and_75(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = given(command, "--admin-socket", str(tmp_path / "none.sock"))
    assert chosen.run(chosen) == TEMPORARY
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"opencode-acp: No daemon answers at {tmp_path}/none.sock; ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n", "does not serve this user"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}", "no daemon of this version"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{", "no daemon of this version"),
        (b"75 not a daemon of yours\n", "does not answer as it should"),
        (b"", "does not answer as it should"),
    ],
)
def test_whoever_answers_otherwise_is_told_of_likewise(
    answer: bytes, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.sock"
    chosen = given("status", "--admin-socket", str(path))
    with answering(path, answer):
        assert chosen.run(chosen) == TEMPORARY
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert said in err


def test_json_is_plain_ascii(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = {
        "version": "1\x9b", "pid": 1, "state": "serving", "seconds": 1, "server": {"url": "ü"},
        "feed": {"connected": False, "generation": 0, "losses": 0}, "tables": {}, "counted": {},
        "clients": [], "sessions": [], "later": 1,
    }  # fmt: skip
    body = json.dumps(state).encode()
    head = f"HTTP/1.1 200 OK\r\ncontent-length: {len(body)}\r\n\r\n".encode()
    chosen = given("status", "--json", "--admin-socket", str(tmp_path / "a.sock"))
    with answering(tmp_path / "a.sock", head + body):
        assert chosen.run(chosen) == 0
    out = capsys.readouterr().out
    assert out.isascii()
    assert json.loads(out)["server"]["url"] == "ü"
