"""Asking the daemon that runs: where it is looked for, and what is said if nobody answers."""

from __future__ import annotations

import argparse
import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from adapter.commands.parser import parser
from adapter.settings.arguments import options
from adapter.start import read_start
from contract.attach import AUTH, OK, TEMPORARY, USAGE
from tests.support.strangers import NOBODY, as_root, kept_out, listening

MODES = ("status", "sessions")
BODY = json.dumps(
    {
        "version": "1\x9b", "pid": 1, "state": "serving", "seconds": 1, "server": {"url": "ü"},
        "feed": {"connected": False, "generation": 0, "losses": 0}, "tables": {}, "counted": {},
        "clients": [], "sessions": [], "later": 1,
    }
).encode()  # fmt: skip
STATE = f"HTTP/1.1 200 OK\r\ncontent-length: {len(BODY)}\r\n\r\n".encode() + BODY
"""The answer of a daemon."""


def given(*arguments: str) -> argparse.Namespace:
    return parser().parse_args(arguments)


@contextmanager
def answering(path: Path, answer: bytes) -> Iterator[None]:
    """A process that answers one request with these bytes."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        listener.listen()
        listener.settimeout(10)

        def serve() -> None:
            client, _ = listener.accept()
            with client:
                client.recv(65536)
                client.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield
        thread.join()


ANYWHERE: tuple[tuple[str, dict[str, str], tuple[str, ...], str], ...] = (
    ("", {}, (), "opencode-acp-admin.sock"),
    ("", {"OPENCODE_ACP_SOCKET": "own.sock"}, (), "own-admin.sock"),
    ("file.sock", {"OPENCODE_ACP_SOCKET": "own.sock"}, (), "file.sock"),
    ("file.sock", {}, ("--socket", "a.sock"), "file.sock"),
    ("file.sock", {"OPENCODE_ACP_ADMIN_SOCKET": "set.sock"}, (), "set.sock"),
    ("", {"OPENCODE_ACP_SOCKET": "own.sock"}, ("--socket", "a.sock"), "a-admin.sock"),
    ("file.sock", {"OPENCODE_ACP_ADMIN_SOCKET": "set.sock"}, ("--admin-socket", "b"), "b"),
)
"""Of the file, the environment and the command line, and where the operator is answered."""


@pytest.mark.parametrize("command", MODES)
@pytest.mark.parametrize("where", ANYWHERE)
def test_the_daemon_is_asked_where_serve_would_answer(
    command: str,
    where: tuple[str, dict[str, str], tuple[str, ...], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file, environ, flags, expected = where
    monkeypatch.chdir(tmp_path)
    config = tmp_path / "f.toml"
    config.write_text(f"admin_socket = '{file}'" if file else "")
    for name in ("SOCKET", "ADMIN_SOCKET"):
        monkeypatch.delenv(f"OPENCODE_ACP_{name}", raising=False)
    for name, value in {"XDG_RUNTIME_DIR": str(tmp_path), **environ}.items():
        monkeypatch.setenv(name, value)
    answer = b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n"
    chosen = given(command, "--config", "f.toml", *flags)
    start = read_start(options(chosen), os.environ)
    assert start.admin_socket in (expected, str(tmp_path / expected))
    with answering(tmp_path / expected, answer):
        assert chosen.run(chosen) == AUTH
    assert "does not serve this user" in capsys.readouterr().err


def test_a_fault_of_the_configuration_is_told_and_keeps_from_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The daemon may have started before the file was broken."""
    config = tmp_path / "f.toml"
    config.write_text("drain = 'perhaps'\nnothing = 1\nadmin_socket = 'a.sock'\n")
    chosen = given("status", "--json", "--config", str(config))
    with answering(tmp_path / "a.sock", STATE):
        assert chosen.run(chosen) == OK
    out, err = capsys.readouterr()
    assert json.loads(out)["version"]
    first, second = err.splitlines()
    assert "'nothing'" in first and "drain" in second


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


@pytest.mark.parametrize("command", MODES)
def test_a_user_whom_the_socket_keeps_out_is_told_for_good(
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """No second try helps, as with a user whom the daemon does not serve."""
    path = tmp_path / "a.sock"
    # A file of root's is none of that other user's.
    monkeypatch.setenv("XDG_CONFIG_HOME", "/nonexistent")
    chosen = given(command, "--admin-socket", str(path))
    with kept_out(path):
        assert chosen.run(chosen) == AUTH
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"opencode-acp: The socket {path} belongs to a daemon of another user.\n"


def test_json_is_plain_ascii(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chosen = given("status", "--json", "--admin-socket", str(tmp_path / "a.sock"))
    with answering(tmp_path / "a.sock", STATE):
        assert chosen.run(chosen) == 0
    out = capsys.readouterr().out
    assert out.isascii()
    assert json.loads(out)["server"]["url"] == "ü"


@as_root
@pytest.mark.parametrize("command", MODES)
def test_anybody_who_answers_is_not_asked(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tmp_path.chmod(0o1777)
    chosen = given(command, "--admin-socket", str(tmp_path / "a.sock"))
    with listening(tmp_path / "a.sock", NOBODY) as listener:
        assert chosen.run(chosen) == USAGE
        client, _ = listener.accept()
        with client:
            assert client.recv(64) == b""
    assert str(NOBODY) in capsys.readouterr().err
