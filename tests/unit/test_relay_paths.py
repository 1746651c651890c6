"""What the relay makes of the paths that it is given."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from adapter import relay
from adapter.relay import read
from contract.attach import AUTH
from tests.support.relays import ended, flags, one_sentence, starting
from tests.support.strangers import kept_out

HOME = {b"HOME": b"/home/u"}


def test_a_path_may_begin_at_the_home_of_the_client() -> None:
    variables = {b"OPENCODE_ACP_PASSWORD_FILE": b"~/secret", b"OPENCODE_ACP_MCP": b"reject"}
    wishes = read(["--socket=~/s", "--config", "~/f.toml"], HOME | variables)
    assert wishes is not None
    assert wishes.socket == "/home/u/s"
    assert wishes.settings == {
        "env:password_file": "/home/u/secret",
        "env:mcp": "reject",
        "set:config": "/home/u/f.toml",
    }


def test_what_only_looks_like_it_stays() -> None:
    for path, environ in (("~u/s", HOME), ("a/~/s", HOME), ("~/s", {}), ("~/s", {b"HOME": b"."})):
        wishes = read(["--socket", path], environ)
        assert wishes is not None
        assert wishes.socket == path


@pytest.mark.parametrize("kind", ["a file", "a folder", "a link", "a pipe"])
async def test_what_is_no_socket_is_told_and_only_auto_works_without_a_daemon(
    tmp_path: Path, kind: str
) -> None:
    """Nobody can listen there, so that a client in its own process passes over no daemon."""
    path = tmp_path / "s"
    match kind:
        case "a file":
            path.write_text("")
        case "a folder":
            path.mkdir()
        case "a link":
            (tmp_path / "file").write_text("")
            path.symlink_to(tmp_path / "file")
        case "a pipe":
            os.mkfifo(path)
    line = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}
    async with starting() as start:
        code, out, err = await ended(await start(*flags(path)))
        assert (code, out, one_sentence(err)) == (75, b"", True)
        assert f"{path} is no socket" in err
        process = await start(*flags(path, "auto"))
        answer, told = await process.communicate(json.dumps(line).encode() + b"\n")
    assert json.loads(answer)["result"]["protocolVersion"] == 1
    assert (process.returncode, one_sentence(told.decode())) == (0, True)
    assert f"{path} is no socket" in told.decode()


@pytest.mark.parametrize("mode", ["auto", "require"])
def test_a_user_whom_the_socket_keeps_out_is_told_for_good(
    tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """No second try helps, as with a user whom the daemon does not serve."""
    path = tmp_path / "s"
    monkeypatch.setattr("sys.argv", ["opencode-acp", *flags(path, mode)])
    with kept_out(path):
        assert relay.main() == AUTH
    out, err = capfd.readouterr()
    assert (out, one_sentence(err)) == ("", True)
    assert str(path) in err
