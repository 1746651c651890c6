"""What the relay makes of the paths that it is given."""

from __future__ import annotations

from adapter.relay import read

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
