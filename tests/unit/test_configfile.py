"""The configuration file: what it may say, and what is told when it says something else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from adapter.config import load
from adapter.configfile import MAX_BYTES, ConfigFileError, examine, read_config
from adapter.limits import DEFAULTS, Limits
from adapter.options import Options


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "opencode-acp.toml"


def refused(path: Path | str) -> str:
    """The sentence that a start with this file ends with."""
    with pytest.raises(ConfigFileError) as caught:
        read_config(str(path))
    sentence = str(caught.value)
    assert str(path) in sentence
    assert "\n" not in sentence
    return sentence


@pytest.mark.parametrize("text", ["", "# nothing\n", "[limits]\n"])
def test_what_is_not_said_is_the_default(path: Path, text: str) -> None:
    path.write_text(text)
    assert read_config(str(path)).limits == DEFAULTS
    assert read_config(None).limits == DEFAULTS
    assert read_config("").limits == DEFAULTS


def test_limits_are_lowered(path: Path) -> None:
    path.write_text("[limits]\nprompts = 4\nidle_seconds = 1.5\n")
    assert read_config(str(path)).limits == Limits(prompts=4, idle_seconds=1.5)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[limits]\nprompts = 33\n", "prompts"),
        ("[limits]\nprompts = 0\n", "prompts"),
        ("[limits]\nprompts = '4'\n", "prompts"),
        ("[limits]\npromts = 4\n", "promts"),
        ("[limit]\nprompts = 4\n", "'limit'"),
        ("limits = 4\n", "'limits'"),
        ("server = 1979-05-27\n", "'server'"),
        ("server = ['http://[::1]']\n", "'server'"),
        ("password_file = 5\n", "'password_file'"),
        ("password_file = ''\n", "'password_file'"),
        ("mcp = true\n", "'mcp'"),
        ("log_level = 5\n", "'log_level'"),
        ("allow_always = 1\n", "'allow_always'"),
        ("prompt_seconds = '90'\n", "'prompt_seconds'"),
        ("prompt_seconds = true\n", "'prompt_seconds'"),
        ("allowed_uids = ['a']\n", "'allowed_uids'"),
        (f"allowed_uids = [{'9' * 5000}]\n", "a number of too many digits"),
        ("allowed_uids = [true]\n", "'allowed_uids'"),
        ("allowed_uids = []\n", "'allowed_uids'"),
        ("allowed_uids = 5\n", "'allowed_uids'"),
        ("Server = 'http://[::1]'\n", "'Server'"),
        ("prompts = 4\n", "'prompts'"),
        ("config = 'f'\n", "'config'"),
        ("socket = 's'\n", "'socket'"),
        ("daemon = 'auto'\n", "'daemon'"),
        ("password = 'x'\n", "'password'"),
        (f"[limits]\nidle_seconds = 1{'0' * 400}\n", "idle_seconds"),
        (f"prompt_seconds = 0x{'f' * 5000}\n", "digits"),
        ("[[limits]]\nprompts = 4\n", "'limits'"),
        ("[limits]\nprompts = 4\nprompts = 4\n", "TOML"),
        ("[limits\n", "TOML"),
        ("x = " + "[" * 5000, "nested"),
        ("#" * (MAX_BYTES + 1), "larger"),
    ],
)
def test_what_has_no_meaning_is_refused(path: Path, text: str, told: str) -> None:
    path.write_text(text)
    assert told in refused(path)


def test_each_fault_is_told_and_the_rest_is_read(path: Path) -> None:
    path.write_text(
        "mcp = 5\nnothing = 1\ndrain_seconds = 3\n[limits]\nprompts = 99\nsessions = 9\n"
    )
    file, faults = examine(str(path))
    assert file.values == {"drain_seconds": "3"}
    assert file.limits == Limits(sessions=9)
    assert [name for name in ("mcp", "nothing", "prompts") if name not in " ".join(faults)] == []
    assert len(faults) == 3
    with pytest.raises(ConfigFileError) as caught:
        read_config(str(path))
    assert (caught.value.faults, str(caught.value)) == (tuple(faults), faults[0])


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("queue_patienc = 3\n", "queue_patience is one"),
        ("limit = 3\n", "limits is one"),
        ("[limits]\npromts = 3\n", "prompts is one"),
        ("demon = 'auto'\n", None),
        ("zebra = 3\n", None),
        ("[limits]\nprompts = 99\n", None),
    ],
)
def test_what_a_name_was_meant_for_is_told(path: Path, text: str, near: str | None) -> None:
    path.write_text(text)
    told = refused(path)
    assert ("is one" in told) is (near is not None)
    assert near is None or near in told


def test_a_path_begins_at_its_file(path: Path, tmp_path: Path) -> None:
    path.write_text("password_file = '~secret'\nadmin_socket = '/run/a'\n")
    assert read_config(str(path)).values == {
        "password_file": str(tmp_path / "~secret"),
        "admin_socket": "/run/a",
    }


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("[limits]\nprompts = '8'\n", True),
        ("[limits]\nidle_seconds = '1.5'\n", True),
        ("prompt_seconds = '90'\n", True),
        ("allowed_uids = ['1000']\n", True),
        ("allowed_uids = '1000'\n", True),
        ("[limits]\nprompts = 99\n", False),
        ("prompt_seconds = 'soon'\n", False),
        ("[limits]\npromts = '8'\n", False),
        ("mcp = ['8']\n", False),
    ],
)
def test_a_number_in_quotes_is_told_that_it_stands_without(
    path: Path, text: str, quoted: bool
) -> None:
    path.write_text(text)
    assert refused(path).endswith("; a number stands without quotes.") is quoted


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_may_write_is_refused(path: Path, mode: int) -> None:
    path.write_text("server = 'http://127.0.0.1:1'\n")
    path.chmod(mode)
    assert "chmod go-w" in refused(path)
    assert examine(str(path))[0].values == {}
    path.chmod(0o644)
    assert read_config(str(path)).values == {"server": "http://127.0.0.1:1"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_file_of_another_user_is_refused(path: Path) -> None:
    path.write_text("")
    os.chown(path, 4242, -1)
    assert "another user" in refused(path)


def test_what_is_no_text_file_is_refused(path: Path, tmp_path: Path) -> None:
    assert "No such file" in refused(path)
    assert "regular" in refused(tmp_path)
    path.write_bytes(b"\xff")
    assert "UTF-8" in refused(path)
    os.mkfifo(tmp_path / "fifo")
    assert "regular" in refused(tmp_path / "fifo")
    assert "null" in refused("a\0b")


def test_the_flag_names_the_file_before_the_environment(path: Path, tmp_path: Path) -> None:
    path.write_text("[limits]\ncancel_seconds = 0.5\nsessions = 3\n")
    other = tmp_path / "other.toml"
    other.write_text("[limits]\nsessions = 4\n")
    environ = {"OPENCODE_ACP_CONFIG": str(other)}
    settings = load(Options({"config": str(path)}), environ)
    assert settings.limits == Limits(cancel_seconds=0.5, sessions=3)
    assert settings.waits.cancel == 0.5
    assert load(Options(), environ).limits.sessions == 4
    assert load(Options(), {"OPENCODE_ACP_CONFIG": ""}).limits == DEFAULTS


def test_a_start_with_a_bad_file_ends(path: Path) -> None:
    path.write_text("[limits]\nprompts = 33\n")
    with pytest.raises(ConfigFileError):
        load(Options(), {"OPENCODE_ACP_CONFIG": str(path)})
