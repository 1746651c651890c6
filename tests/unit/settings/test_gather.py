"""Flags over environment over file over defaults, for every setting of the table."""

from __future__ import annotations

from pathlib import Path

import pytest

from adapter.configfile import ConfigFileError
from adapter.flags import parse_flags
from adapter.options import Options
from adapter.settings.gather import gather
from adapter.settings.table import SETTINGS, Kind, Place, Setting
from adapter.settings.values import SettingError
from adapter.start import read_start
from adapter.upstream.address import UrlError

# Three values of each kind.
THREE = {
    Kind.URL: ("http://127.0.0.1:1", "http://127.0.0.1:2", "http://127.0.0.1:3"),
    Kind.PATH: ("/a", "/b", "/c"),
    Kind.SECONDS: ("1", "2", "3.5"),
    Kind.USERS: ("1", "2,3", "4"),
}


def values(setting: Setting) -> tuple[str, ...]:
    return THREE.get(setting.kind) or (*setting.words, *setting.words)[:3]


EACH = pytest.mark.parametrize("setting", SETTINGS, ids=[setting.name for setting in SETTINGS])


@EACH
def test_a_flag_wins_over_a_variable_and_that_over_the_file(setting: Setting) -> None:
    flag, variable, text = values(setting)
    file = {} if setting.place is Place.COMMAND else {setting.name: text}
    flags = parse_flags([setting.flag, flag]).given
    environ = {setting.variable: variable}
    assert gather(flags, environ, file).text(setting.name) == flag
    assert gather({}, environ, file).text(setting.name) == variable
    if file:
        assert gather({}, {setting.variable: ""}, file).text(setting.name) == text
    assert gather({}, {}, {}).given(setting.name) is None


@EACH
def test_what_has_no_meaning_is_told_with_its_origin_and_changes_nothing(setting: Setting) -> None:
    bad = {Kind.URL: "", Kind.PATH: "a\0b"}.get(setting.kind, "nonsense")
    if not bad:
        return
    for flags, environ, origin in (
        ({setting.name: bad}, {}, setting.flag),
        ({}, {setting.variable: bad}, setting.variable),
    ):
        with pytest.raises(SettingError, match=origin):
            gather(flags, environ, {})
    with pytest.raises(SettingError, match=setting.name):
        gather({}, {}, {setting.name: bad}, "F")


@EACH
def test_a_path_may_begin_at_the_home_wherever_it_is_said(setting: Setting) -> None:
    if setting.kind is not Kind.PATH:
        return
    home = {"HOME": "/home/u/"}
    flags, variable, name = {setting.name: "~/x y"}, {setting.variable: "~/x y"}, setting.name
    assert gather(flags, home, {}).text(name) == "/home/u/x y"
    assert gather({}, home | variable, {}).text(name) == "/home/u/x y"
    assert gather({}, home, flags, "F").text(name) == "/home/u/x y"
    assert gather({name: "~u/x"}, home, {}).text(name) == "~u/x"
    for nowhere in ({}, {"HOME": ""}, {"HOME": "u"}):
        with pytest.raises(SettingError, match=f"{setting.flag} begins at the home"):
            gather(flags, nowhere, {})


def test_the_files_of_a_start_may_be_at_home(tmp_path: Path) -> None:
    (tmp_path / "f.toml").write_text("password_file = '~/secret'\nadmin_socket = '~/a.sock'\n")
    (tmp_path / "secret").write_text("word")
    (tmp_path / "secret").chmod(0o600)
    environ = {"HOME": str(tmp_path), "OPENCODE_ACP_SOCKET": "~/s.sock"}
    for flags, more in (
        ({"config": "~/f.toml"}, {}),
        ({}, {"OPENCODE_ACP_CONFIG": "~/f.toml"}),
    ):
        start = read_start(Options(flags), environ | more)
        assert start.credential is not None and start.credential.password == "word"
        assert start.config == str(tmp_path / "f.toml")
        assert (start.socket, start.admin_socket) == (f"{tmp_path}/s.sock", f"{tmp_path}/a.sock")


def test_a_server_that_cannot_be_is_told_with_its_origin(tmp_path: Path) -> None:
    (file := tmp_path / "f.toml").write_text("server = 'http://192.0.2.1'\n")
    for flags, environ, origin in (
        ({"server": "http://192.0.2.1"}, {}, "--server"),
        ({}, {"OPENCODE_ACP_SERVER": "ftp://[::1]"}, "OPENCODE_ACP_SERVER"),
        ({"config": str(file)}, {}, f"server in {file}"),
    ):
        with pytest.raises(UrlError) as caught:
            read_start(Options(flags), environ)
        assert origin in str(caught.value)


def test_a_file_says_what_the_environment_could(tmp_path: Path) -> None:
    (file := tmp_path / "f.toml").write_text(
        "server = 'http://127.0.0.1:9'\nallow_always = true\nprompt_seconds = 90\n"
        "on_client_exit = 'detach'\nallowed_uids = [1, 2]\ndrain_seconds = 1.5\nmcp = 'reject'\n"
        "log_level = 'error'\nlog_format = 'json'\nadmin_socket = '/a'\ndrain = 'interrupt'\n"
    )
    start = read_start(Options({"config": str(file), "socket": "/s.sock"}), {})
    assert (start.server, start.allow_always, start.prompt_seconds) == (
        "http://127.0.0.1:9",
        True,
        90.0,
    )
    assert not start.interrupt_on_exit
    assert start.allowed_uids == frozenset({1, 2})
    assert (start.drain_seconds, start.drain) == (1.5, "interrupt")
    assert (start.mcp, start.log_level, start.log_format) == ("reject", "error", "json")
    assert (start.socket, start.admin_socket) == ("/s.sock", "/a")


def test_the_users_own_file_is_read_if_there_is_one(tmp_path: Path) -> None:
    folder = tmp_path / ".config" / "opencode-acp"
    environ = {"HOME": str(tmp_path)}
    assert read_start(Options(), environ).config is None
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text("mcp = 'reject'\n")
    assert read_start(Options(), environ).mcp == "reject"
    elsewhere = {**environ, "XDG_CONFIG_HOME": str(tmp_path / "none")}
    assert read_start(Options(), elsewhere).mcp == "notice"


def test_no_folder_of_a_client_is_looked_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is not absolute counts as not set, or it would lead into a client's project."""
    (folder := tmp_path / ".config" / "opencode-acp").mkdir(parents=True)
    (folder / "config.toml").write_text("mcp = 'reject'\n")
    monkeypatch.chdir(tmp_path)
    for environ in (
        {"HOME": "."},
        {"XDG_CONFIG_HOME": ".config"},
        {"HOME": "/nonexistent", "XDG_CONFIG_HOME": ".config"},
        {},
    ):
        assert read_start(Options(), environ).config is None


def test_a_file_of_the_users_own_that_cannot_be_looked_at_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "opencode-acp").symlink_to("opencode-acp")
    with pytest.raises(ConfigFileError, match=r"config\.toml"):
        read_start(Options(), {"XDG_CONFIG_HOME": str(tmp_path)})
