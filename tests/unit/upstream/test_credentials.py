"""Which source of a password is used, and which are refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from adapter.upstream.credentials import (
    Credential,
    CredentialError,
    find_credential,
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


@pytest.mark.parametrize("fault", ["a folder", "a loop", "nothing to read"])
def test_what_the_service_manager_gave_is_never_skipped(tmp_path: Path, fault: str) -> None:
    folder = tmp_path / "credentials"
    if fault == "a loop":
        folder.symlink_to("credentials")
    else:
        folder.mkdir()
        given = folder / "opencode-password"
        given.mkdir() if fault == "a folder" else given.write_text("")
    environ = {"CREDENTIALS_DIRECTORY": str(folder), "OPENCODE_PASSWORD": "fallback"}
    with pytest.raises(CredentialError, match="opencode-password"):
        find_credential(password_file(tmp_path), environ)


def test_other_credentials_of_a_service_are_left_alone(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "none"):
        environ = {"CREDENTIALS_DIRECTORY": str(folder), "OPENCODE_PASSWORD": "plain"}
        found = find_credential(None, environ)
        assert found is not None
        assert found.password == "plain"


@pytest.mark.parametrize(("owner", "fits"), [("root", True), ("own", True), ("other", False)])
def test_a_file_is_of_this_user_or_of_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: str, fits: bool
) -> None:
    file = password_file(tmp_path)
    own = os.stat(file).st_uid
    real = os.fstat
    uid = {"root": 0, "own": own, "other": own + 1}[owner]

    def told(handle: int) -> os.stat_result:
        fields = list(real(handle))
        fields[4] = uid
        return os.stat_result(fields)

    monkeypatch.setattr(os, "fstat", told)
    if fits:
        assert find_credential(file, {}) is not None
    else:
        with pytest.raises(CredentialError, match="another user"):
            find_credential(file, {})
