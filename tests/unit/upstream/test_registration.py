"""What OpenCode has registered: the last source of a password, and an address where none is set."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from adapter.options import Options
from adapter.settings.table import DEFAULT_SERVER
from adapter.start import START_ERRORS, Start, read_start
from adapter.upstream.address import UrlError
from adapter.upstream.credentials import CredentialError
from adapter.upstream.registration import find_registration

URL = "http://127.0.0.1:49374"
SECRET = "s3cret-word"
TOLD = {"id": "e9501f0c", "version": "2.0.15", "url": URL, "pid": 340, "password": SECRET}


def registered(root: Path, told: object = TOLD, mode: int = 0o600) -> Path:
    """As `opencode service start` of 2.0.15 leaves it."""
    (root / "opencode").mkdir(exist_ok=True)
    file = root / "opencode" / "service.json"
    file.write_text(told if isinstance(told, str) else json.dumps(told))
    file.chmod(mode)
    return file


def secret(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(0o600)
    return str(path)


def used(start: Start) -> tuple[str, str | None]:
    """The server and the password."""
    return start.server, start.credential.password if start.credential else None


def test_each_source_goes_before_the_next(tmp_path: Path) -> None:
    registered(tmp_path)
    secret(tmp_path / "opencode-password", "service")
    flag = {"password_file": secret(tmp_path / "file", "file")}
    environ = {
        "CREDENTIALS_DIRECTORY": str(tmp_path),
        "OPENCODE_ACP_PASSWORD_FILE": secret(tmp_path / "other", "other"),
        "OPENCODE_SERVER_PASSWORD": "server",
        "OPENCODE_PASSWORD": "plain",
        "XDG_STATE_HOME": str(tmp_path),
    }
    found = [used(read_start(Options(flag), environ))]
    del environ["CREDENTIALS_DIRECTORY"]
    found.append(used(read_start(Options(flag), environ)))
    for variable in list(environ):
        found.append(used(read_start(Options(), environ)))
        del environ[variable]
    found.append(used(read_start(Options(), environ)))
    assert found == [
        (DEFAULT_SERVER, "service"),
        (DEFAULT_SERVER, "file"),
        (DEFAULT_SERVER, "other"),
        (DEFAULT_SERVER, "server"),
        (DEFAULT_SERVER, "plain"),
        (URL, SECRET),
        (DEFAULT_SERVER, None),
    ]


@pytest.mark.parametrize(
    ("server", "password"),
    [(URL, SECRET), (f"{URL}/", SECRET), ("http://127.0.0.1:4096", None), ("https://[::1]", None)],
)
def test_its_password_is_for_its_server_alone(
    tmp_path: Path, server: str, password: str | None
) -> None:
    registered(tmp_path)
    start = read_start(Options({"server": server}), {"XDG_STATE_HOME": str(tmp_path)})
    assert used(start) == (server.rstrip("/"), password)


@pytest.mark.parametrize(("told", "mode"), [("{", 0o600), (TOLD, 0o644), ({"url": 5}, 0o600)])
def test_one_that_cannot_be_used_is_nothing_to_whoever_names_a_server(
    tmp_path: Path, told: object, mode: int
) -> None:
    registered(tmp_path, told, mode)
    (file := tmp_path / "f.toml").write_text(f"server = '{URL}'\n")
    state = {"XDG_STATE_HOME": str(tmp_path)}
    for flags, environ in (
        ({"server": URL}, {}),
        ({}, {"OPENCODE_ACP_SERVER": URL}),
        ({"config": str(file)}, {}),
    ):
        assert used(read_start(Options(flags), state | environ)) == (URL, None)
    with pytest.raises(CredentialError, match=r"service\.json"):
        read_start(Options(), state)


def test_it_is_looked_for_in_the_users_state(tmp_path: Path) -> None:
    (state := tmp_path / ".local" / "state").mkdir(parents=True)
    registered(state)
    for environ, is_there in (
        ({"HOME": str(tmp_path)}, True),
        ({"HOME": str(tmp_path), "XDG_STATE_HOME": ""}, True),
        ({"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)}, False),
        ({}, False),
    ):
        assert (find_registration(environ) is not None) is is_there


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o644, 0o601])
def test_one_that_others_may_touch_is_refused(tmp_path: Path, mode: int) -> None:
    registered(tmp_path, mode=mode)
    with pytest.raises(CredentialError, match="open to group or others"):
        read_start(Options(), {"XDG_STATE_HOME": str(tmp_path)})


@pytest.mark.parametrize("fault", ["a link", "a fifo", "a folder", "a loop"])
def test_one_that_is_no_file_is_refused(tmp_path: Path, fault: str) -> None:
    file = tmp_path / "opencode" / "service.json"
    if fault == "a loop":
        file.parent.symlink_to("opencode")
    else:
        file.parent.mkdir()
    match fault:
        case "a link":
            file.symlink_to(secret(tmp_path / "x", json.dumps(TOLD)))
        case "a fifo":
            os.mkfifo(file, 0o600)
        case "a folder":
            file.mkdir(mode=0o700)
    with pytest.raises(CredentialError, match=r"service\.json"):
        read_start(Options(), {"XDG_STATE_HOME": str(tmp_path)})


@pytest.mark.parametrize(
    "told",
    [
        "",
        SECRET,
        f'{{"password": "{SECRET}"',
        "[" * 4000,
        [SECRET],
        {"password": SECRET},
        {"url": URL},
        {"url": URL, "password": 5},
        {"url": [URL], "password": SECRET},
        {"url": URL, "password": f"{SECRET}\ud800"},
        {"url": "http://192.0.2.1", "password": SECRET},
        {"url": "https://example.org", "password": SECRET},
        {"url": f"http://u:{SECRET}@127.0.0.1", "password": SECRET},
    ],
)
def test_one_that_says_something_else_is_refused_without_telling_it(
    tmp_path: Path, told: object
) -> None:
    file = registered(tmp_path, told)
    for remote in ("no", "yes"):
        with pytest.raises(START_ERRORS) as caught:
            read_start(Options({"allow_remote": remote}), {"XDG_STATE_HOME": str(tmp_path)})
        assert isinstance(caught.value, (CredentialError, UrlError))
        assert str(file) in str(caught.value)
        assert "allow-remote" not in str(caught.value)
        assert SECRET not in str(caught.value)
        assert caught.value.__cause__ is None
