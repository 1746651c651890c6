"""Password sources and address rules."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from adapter.upstream.credentials import (
    Credential,
    CredentialError,
    UrlError,
    find_credential,
    server_url,
)

SECRET = "s3cret-word"


def password_file(folder: Path, data: bytes = SECRET.encode() + b"\n", mode: int = 0o600) -> str:
    file = folder / "password"
    file.write_bytes(data)
    file.chmod(mode)
    return str(file)


def test_nothing_configured_means_no_authentication() -> None:
    assert find_credential(None, {"OPENCODE_PASSWORD": ""}) is None


def test_the_file_goes_before_the_environment(tmp_path: Path) -> None:
    environ = {"OPENCODE_SERVER_PASSWORD": "other"}
    found = find_credential(password_file(tmp_path), environ)
    assert found is not None
    assert found.password == SECRET


def test_the_service_managers_goes_before_the_file(tmp_path: Path) -> None:
    Path(password_file(tmp_path)).rename(tmp_path / "opencode-password")
    (other := tmp_path / "other").write_text("x")
    other.chmod(0o600)
    found = find_credential(str(other), {"CREDENTIALS_DIRECTORY": str(tmp_path)})
    assert found is not None
    assert found.password == SECRET


@pytest.mark.parametrize("mode", [0o400, 0o440])
def test_the_service_manager_may_let_its_unit_in_by_an_access_list(
    tmp_path: Path, mode: int
) -> None:
    """Such a list shows as a right of the group; systemd uses one where it can."""
    given = tmp_path / "opencode-password"
    given.write_text("secret")
    given.chmod(mode)
    assert find_credential(None, {"CREDENTIALS_DIRECTORY": str(tmp_path)}) is not None
    given.chmod(0o444)
    with pytest.raises(CredentialError, match="open to group or others"):
        find_credential(None, {"CREDENTIALS_DIRECTORY": str(tmp_path)})


def test_the_servers_own_variables_in_order() -> None:
    environ = {"OPENCODE_PASSWORD": "second"}
    second = find_credential(None, environ)
    first = find_credential(None, environ | {"OPENCODE_SERVER_PASSWORD": "first"})
    assert first is not None
    assert second is not None
    assert (first.password, second.password) == ("first", "second")


@pytest.mark.parametrize(
    ("data", "password"),
    [(b"a", "a"), (b"a\n", "a"), (b"a\r\n", "a"), (b" a \n", " a "), ("ä".encode(), "ä")],
)
def test_only_the_last_newline_is_stripped(tmp_path: Path, data: bytes, password: str) -> None:
    found = find_credential(password_file(tmp_path, data), {})
    assert found is not None
    assert found.password == password


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o610])
def test_a_file_open_to_others_is_refused(tmp_path: Path, mode: int) -> None:
    with pytest.raises(CredentialError, match="open to group or others"):
        find_credential(password_file(tmp_path, mode=mode), {})


def test_an_unusable_file_is_never_skipped(tmp_path: Path) -> None:
    with pytest.raises(CredentialError, match="cannot be opened"):
        find_credential(str(tmp_path / "none"), {"OPENCODE_PASSWORD": "fallback"})


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(password_file(tmp_path))
    with pytest.raises(CredentialError, match="symbolic link"):
        find_credential(str(link), {})


def test_a_fifo_is_refused_without_waiting(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo, 0o600)
    with pytest.raises(CredentialError, match="not a regular file"):
        find_credential(str(fifo), {})


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CredentialError, match="not a regular file"):
        find_credential(str(tmp_path), {})


@pytest.mark.parametrize(
    ("data", "reason"),
    [(b"", "empty"), (b"\n", "empty"), (b"\xff\n", "not UTF-8"), (b"a" * 4097, "larger")],
)
def test_odd_contents_are_refused_without_telling_them(
    tmp_path: Path, data: bytes, reason: str
) -> None:
    with pytest.raises(CredentialError, match=reason) as caught:
        find_credential(password_file(tmp_path, data), {})
    assert caught.value.__cause__ is None


def test_a_repr_hides_the_password() -> None:
    assert SECRET not in repr(Credential(SECRET))


def test_what_quotes_the_password_is_freed_from_it() -> None:
    credential = Credential("hunter2 and more")
    quoted = f"Authorization: {credential.header()}; hunter2 and more, hunter2"
    hidden = "Authorization: Basic [hidden]; [hidden], hunter2"
    assert credential.hidden_in(quoted) == hidden


def test_the_header_is_basic_for_the_user_opencode() -> None:
    assert Credential("pw").header() == "Basic b3BlbmNvZGU6cHc="


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("http://127.0.0.1:4096", "http://127.0.0.1:4096"),
        ("http://127.8.9.1/", "http://127.8.9.1"),
        ("http://localhost:1", "http://localhost:1"),
        ("http://[::1]:4096", "http://[::1]:4096"),
        ("HTTPS://LOCALHOST:4096", "https://localhost:4096"),
    ],
)
def test_loopback_addresses(text: str, url: str) -> None:
    assert server_url(text) == url


@pytest.mark.parametrize(
    "text",
    ["", "127.0.0.1:4096", "ftp://127.0.0.1", "http://", "file:///etc/passwd", "http://10.0.0.1",
     "http://example.org", "https://example.org", "http://0.0.0.0:1", "http://127.0.0.1:99999",
     "http://127.0.0.1:x", "http://[::1", "http://127.0.0.1/api", "http://127.0.0.1?x=1",
     "http://127.0.0.1#x", "http://localhost.example.org", "http://127.1"],
)  # fmt: skip
def test_other_addresses_are_refused(text: str) -> None:
    with pytest.raises(UrlError):
        server_url(text)


@pytest.mark.parametrize("text", ["http://opencode:pw@127.0.0.1", "http://@127.0.0.1"])
def test_a_password_in_the_address_is_refused_and_not_told(text: str) -> None:
    with pytest.raises(UrlError) as caught:
        server_url(text)
    assert "pw" not in str(caught.value)


def test_a_remote_host_needs_https_and_the_setting() -> None:
    assert server_url("https://example.org:443", allow_remote=True) == "https://example.org:443"
    with pytest.raises(UrlError, match="loopback"):
        server_url("http://example.org", allow_remote=True)
