"""Settings: which source wins, and that no text form shows the password."""

from __future__ import annotations

import dataclasses
import logging
import traceback
from pathlib import Path

import pytest

from adapter.config import Settings, Waits, load
from adapter.options import Options
from adapter.settings.table import DEFAULT_SERVER
from adapter.settings.values import SettingError
from adapter.upstream.address import UrlError
from adapter.upstream.credentials import CredentialError

SECRET = "s3cret-pa55word"


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "password"
    path.write_text(f"{SECRET}\n")
    path.chmod(0o600)
    return str(path)


def other(tmp_path: Path, words: str) -> str:
    path = tmp_path / "other"
    path.write_text(words)
    path.chmod(0o600)
    return str(path)


def password(settings: Settings) -> str | None:
    return settings.credential.password if settings.credential else None


def test_defaults() -> None:
    settings = load(Options(), {})
    assert settings.server == DEFAULT_SERVER == "http://127.0.0.1:4096"
    assert settings.credential is None
    assert settings.interrupt_on_exit
    assert not settings.allow_always


@pytest.mark.parametrize(
    ("flag", "variable", "used"),
    [
        ("http://127.0.0.1:1", "http://127.0.0.1:2", "http://127.0.0.1:1"),
        (None, "http://127.0.0.1:2", "http://127.0.0.1:2"),
        (None, "", DEFAULT_SERVER),
        ("", "http://127.0.0.1:2", "http://127.0.0.1:2"),
        ("http://localhost:3/", None, "http://localhost:3"),
    ],
)
def test_the_server_is_that_of_the_flag_then_of_the_environment(
    flag: str | None, variable: str | None, used: str
) -> None:
    environ = {} if variable is None else {"OPENCODE_ACP_SERVER": variable}
    assert load(Options({"server": flag} if flag else {}), environ).server == used


def test_the_password_file_of_the_flag_wins(file: str, tmp_path: Path) -> None:
    environ = {
        "OPENCODE_ACP_PASSWORD_FILE": other(tmp_path, "file of the environment"),
        "OPENCODE_SERVER_PASSWORD": "server",
        "OPENCODE_PASSWORD": "plain",
    }
    found = []
    options = Options({"password_file": file})
    for variable in (None, *environ):
        environ.pop(variable or "", None)
        found.append(password(load(options, environ)))
        options = Options()
    assert found == [SECRET, "server", "plain", None]
    environ = {"OPENCODE_ACP_PASSWORD_FILE": file, "OPENCODE_SERVER_PASSWORD": "server"}
    assert password(load(Options(), environ)) == SECRET


def test_a_file_that_cannot_be_used_is_no_reason_to_try_another(tmp_path: Path) -> None:
    environ = {"OPENCODE_SERVER_PASSWORD": "server"}
    with pytest.raises(CredentialError):
        load(Options({"password_file": str(tmp_path / "none")}), environ)


@pytest.mark.parametrize(
    "url",
    ["http://example.com", "https://10.0.0.1", "ftp://127.0.0.1", "127.0.0.1:4096", "http://",
     f"http://opencode:{SECRET}@127.0.0.1", "http://127.0.0.1:99999", "http://127.0.0.1/path",
     f"http://[{SECRET}"],
)  # fmt: skip
def test_a_server_that_is_not_allowed_is_refused_in_one_sentence(url: str) -> None:
    with pytest.raises(UrlError) as caught:
        load(Options({"server": url}), {})
    assert str(caught.value).count("\n") == 0
    shown = "".join(traceback.format_exception(caught.value.with_traceback(None)))
    assert SECRET not in shown


def test_who_names_another_machine_is_told_the_setting_that_allows_it() -> None:
    remote = {"server": "https://example.org"}
    with pytest.raises(UrlError, match=r"--server.*--allow-remote yes"):
        load(Options(remote), {})
    assert load(Options({**remote, "allow_remote": "yes"}), {}).server == remote["server"]
    with pytest.raises(UrlError) as caught:
        load(Options({"server": "http://example.org", "allow_remote": "yes"}), {})
    assert "https" in str(caught.value) and "allow-remote" not in str(caught.value)


def test_no_text_form_of_the_settings_holds_the_password(
    file: str, caplog: pytest.LogCaptureFixture
) -> None:
    for settings in (
        load(Options({"password_file": file}), {}),
        load(Options(), {"OPENCODE_PASSWORD": SECRET}),
    ):
        assert password(settings) == SECRET
        logging.getLogger("test").warning("%s %r", settings, [settings.credential])
        assert SECRET not in f"{settings} {settings!r} {settings.credential!s}"
    assert SECRET not in caplog.text


def test_no_error_about_a_password_holds_it(file: str) -> None:
    Path(file).chmod(0o644)
    broken = {"OPENCODE_PASSWORD": f"{SECRET}\udcff"}
    for options, environ in ((Options({"password_file": file}), {}), (Options(), broken)):
        with pytest.raises(CredentialError) as caught:
            load(options, environ)
        assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_settings_cannot_be_changed_and_every_wait_is_positive() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        load(Options(), {}).server = "x"  # type: ignore[misc]
    waits = dataclasses.asdict(Waits())
    assert (waits.pop("patience"), waits.pop("longest")) == (None, None)
    assert all(seconds > 0 for seconds in waits.values())


def test_what_an_operator_may_turn() -> None:
    plain = load(Options(), {})
    assert plain.waits.patience is None
    assert plain.interrupt_on_exit
    assert not plain.allow_always
    assert (plain.mcp.policy, plain.mcp.seconds) == ("notice", 20)
    environ = {
        "OPENCODE_ACP_QUEUE_PATIENCE": "2.5",
        "OPENCODE_ACP_PROMPT_SECONDS": "60",
        "OPENCODE_ACP_ON_CLIENT_EXIT": "detach",
        "OPENCODE_ACP_ALLOW_ALWAYS": "yes",
        "OPENCODE_ACP_MCP": "register",
        "OPENCODE_ACP_MCP_SECONDS": "7.5",
    }
    turned = load(Options(), environ)
    assert (turned.waits.patience, turned.waits.longest) == (2.5, 60)
    assert turned.allow_always
    assert (turned.mcp.policy, turned.mcp.seconds) == ("register", 7.5)
    assert not turned.interrupt_on_exit


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OPENCODE_ACP_QUEUE_PATIENCE", "soon"),
        ("OPENCODE_ACP_QUEUE_PATIENCE", "-1"),
        ("OPENCODE_ACP_QUEUE_PATIENCE", "inf"),
        ("OPENCODE_ACP_QUEUE_PATIENCE", "nan"),
        ("OPENCODE_ACP_ON_CLIENT_EXIT", "stay"),
        ("OPENCODE_ACP_ALLOW_ALWAYS", "1"),
        ("OPENCODE_ACP_MCP", "yes"),
        ("OPENCODE_ACP_MCP_SECONDS", "0"),
    ],
)
def test_a_setting_without_a_meaning_is_refused(name: str, value: str) -> None:
    with pytest.raises(SettingError, match=name):
        load(Options(), {name: value})
