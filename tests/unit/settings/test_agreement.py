"""What a client may set: what its daemon has, or nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NoReturn

import pytest

from adapter.options import Options
from adapter.settings.agreement import Agreement
from adapter.settings.table import SETTINGS, Place
from adapter.start import Start, read_start
from contract.attach import UNSAID


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """A daemon with a password file, a file, and a time."""
    (tmp_path / "password").write_text("x")
    (tmp_path / "password").chmod(0o600)
    (tmp_path / "f.toml").write_text("prompt_seconds = 90\n")
    given = {name: str(tmp_path / file) for name, file in FILES.items()}
    return read_start(Options({"server": "http://127.0.0.1:4096", **given}), {})


FILES = {"password_file": "password", "config": "f.toml"}


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"server": "http://127.0.0.1:4096"},
        {"server": "http://127.0.0.1:4096/"},
        FILES,
        {"password_file": "./password"},
        {"prompt_seconds": "90.0", "mcp": "notice", "on_client_exit": "interrupt"},
        {"log_level": "debug", "log_format": "json", "drain_seconds": "1"},
    ],
)
def test_the_same_is_no_difference(start: Start, tmp_path: Path, settings: dict[str, str]) -> None:
    assert Agreement(start).differing(settings, str(tmp_path)) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("server", "http://127.0.0.1:4097"),
        ("server", "https://127.0.0.1:4096"),
        ("password_file", "other"),
        ("config", "other"),
        ("prompt_seconds", "91"),
        ("queue_patience", "5"),
        ("mcp", "register"),
        ("on_client_exit", "detach"),
        ("nothing", "x"),
        ("log_level", "loud"),
        ("drain_seconds", "2_0x"),
    ],
)
def test_another_value_is_told(start: Start, tmp_path: Path, name: str, value: str) -> None:
    sentence = Agreement(start).differing({name: value}, str(tmp_path))
    assert sentence is not None
    assert name in sentence.replace("-", "_")
    assert "\n" not in sentence


def test_a_variable_of_another_version_is_left_alone(start: Start, tmp_path: Path) -> None:
    assert Agreement(start).differing({}, str(tmp_path), {"nothing": "x", "mcp": "notice"}) is None
    sentence = Agreement(start).differing(
        {}, str(tmp_path), {"mcp": "register", "password_file": "x" * 999}
    )
    assert sentence is not None
    assert len(sentence) < 500


@pytest.mark.parametrize("name", [one.name for one in SETTINGS if one.place is not Place.PROCESS])
def test_a_variable_whose_value_could_not_be_said_is_another(start: Start, name: str) -> None:
    """Nothing may be taken for what the client asked for; of another version, it is nothing."""
    sentence = Agreement(start).differing({}, variables={"nothing": UNSAID, name: UNSAID})
    assert sentence is not None
    assert name in sentence.replace("-", "_").lower()


def test_both_values_and_the_way_out_are_named(start: Start, tmp_path: Path) -> None:
    sentence = Agreement(start).differing({"server": "http://[::1]:9"}, str(tmp_path))
    assert sentence is not None
    for part in ("server", "http://127.0.0.1:4096", "http://[::1]:9", "--daemon never"):
        assert part in sentence


def test_the_default_file_of_both_is_the_same_one(tmp_path: Path) -> None:
    """As the daemon was told it, and as its file is really called."""
    (folder := tmp_path / "opencode-acp").mkdir()
    (folder / "config.toml").write_text("")
    (tmp_path / "link").symlink_to(tmp_path)
    start = read_start(Options(), {"XDG_CONFIG_HOME": str(tmp_path / "link")})
    agreed = Agreement(start)
    for same in ("link/opencode-acp/config.toml", "opencode-acp/x/../config.toml"):
        assert agreed.differing({"config": same}, str(tmp_path)) is None
    assert agreed.differing({"config": "link/other.toml"}, str(tmp_path)) is not None


def test_a_path_of_the_daemon_begins_where_it_did(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    start = Start(config="f.toml")
    agreed = Agreement(start, str(tmp_path / "run"))
    assert agreed.differing({"config": "run/f.toml"}, str(tmp_path)) is None
    assert agreed.differing({"config": "f.toml"}, str(tmp_path)) is not None


@pytest.mark.parametrize("path", ["/none/" + "../" * 21_000 + "x", "/a" * 32_000])
def test_no_disk_is_asked_for_a_path_of_a_client(
    start: Start, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be one that never answers, and everybody would wait for it."""
    agreed = Agreement(start)

    def ask(path: str, *_: object, **__: object) -> NoReturn:
        raise AssertionError(path)

    with monkeypatch.context() as patched:
        for name in ("lstat", "stat", "readlink", "getcwd"):
            patched.setattr(os, name, ask)
        sentence = agreed.differing({"password_file": path})
    assert sentence is not None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("server", "http://u:secret@[::1]:1"),
        ("mcp", "secret"),
        ("server", ""),
        ("password", "secret"),
    ],
)
def test_what_has_no_meaning_is_told_without_its_value(start: Start, name: str, value: str) -> None:
    sentence = Agreement(start).differing({name: value})
    assert sentence is not None
    assert "secret" not in sentence
