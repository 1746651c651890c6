"""The password for the server: never from argv, never logged.

A configured password file that cannot be used is an error and never a reason to try the next
source: a wrong file must not end in a request without or with another password.
"""

from __future__ import annotations

import base64
import errno
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from adapter.upstream.userfiles import may_exist
from contract.errors import Plain
from contract.semantics import USER

FOLDER_VARIABLE: Final = "CREDENTIALS_DIRECTORY"
SERVICE_CREDENTIAL: Final = "opencode-password"
"""Where the service manager puts a credential, and under which name (systemd.exec(5))."""
PASSWORD_VARIABLES: Final = ("OPENCODE_SERVER_PASSWORD", "OPENCODE_PASSWORD")
MAX_FILE_BYTES: Final = 4096
HIDDEN: Final = "[hidden]"
"""In place of a password."""

OWN: Final = 0o077
MANAGED: Final = 0o037
"""Rights that a file with a secret must not give: one of a user's own, and the service manager's,
which may let its unit in by an access list. That shows as a right of the group (acl(5))."""


class CredentialError(Plain, Exception):
    """The configured password cannot be used. `str()` is one sentence without the secret."""


@dataclass(frozen=True)
class Credential:
    """A password for the user `opencode`; its repr hides it."""

    password: str = field(repr=False)
    source: str = "given"

    def header(self) -> str:
        """The value of an `Authorization` header."""
        return f"Basic {self._pair}"

    def hidden_in(self, text: str) -> str:
        """`text` without the password in either form: who answers may quote the request."""
        return text.replace(self._pair, HIDDEN).replace(self.password, HIDDEN)

    @property
    def _pair(self) -> str:
        return base64.b64encode(f"{USER}:{self.password}".encode()).decode("ascii")


def find_credential(password_file: str | None, environ: Mapping[str, str]) -> Credential | None:
    """The service manager's, else that of `password_file`, else of the environment.

    None = no authentication. Raises `CredentialError` when a configured file cannot be used.
    """
    folder = environ.get(FOLDER_VARIABLE)
    given = f"{folder}/{SERVICE_CREDENTIAL}" if folder else ""
    if given and may_exist(given):
        return Credential(_password(given, MANAGED), source=f"the file {given}")
    if password_file:
        return Credential(_password(password_file, OWN), source=f"the file {password_file}")
    for name in PASSWORD_VARIABLES:
        password = environ.get(name)
        if password:
            return Credential(checked(password, name), source=name)
    return None


def _password(path: str, closed: int) -> str:
    password = read_secret(path, "password file", closed).removesuffix("\n").removesuffix("\r")
    if not password:
        raise CredentialError(f"The password file {path} is empty.")
    return checked(password, f"The password file {path}")


def read_secret(path: str, what: str, closed: int = OWN) -> str:
    """The text of a file of this user or root that gives none of the rights `closed`.

    Raises `CredentialError`, whose sentence calls the file `what` and holds nothing of it.
    """
    try:
        # O_NONBLOCK: opening a FIFO would wait for a writer.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        handle = os.open(path, flags)
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno == errno.ELOOP:
            raise CredentialError(
                f"The {what} {path} is a symbolic link: name the file itself."
            ) from error
        reason = error.strerror if isinstance(error, OSError) else "no valid path"
        raise CredentialError(f"The {what} {path} cannot be opened: {reason}.") from error
    try:
        _check_file(path, what, closed, os.fstat(handle))
        data = os.read(handle, MAX_FILE_BYTES + 1)
    except OSError as error:
        raise CredentialError(f"The {what} {path} cannot be read: {error.strerror}.") from error
    finally:
        os.close(handle)
    if len(data) > MAX_FILE_BYTES:
        raise CredentialError(f"The {what} {path} is larger than {MAX_FILE_BYTES} bytes.")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        # Without `from`: the cause would carry the bytes of the secret.
        raise CredentialError(f"The {what} {path} is not UTF-8 text.") from None


def _check_file(path: str, what: str, closed: int, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise CredentialError(f"The {what} {path} is not a regular file.")
    if status.st_uid not in (os.geteuid(), 0):
        raise CredentialError(f"The {what} {path} belongs to another user.")
    if stat.S_IMODE(status.st_mode) & closed:
        raise CredentialError(f"The {what} {path} is open to group or others: chmod 600 it.")


def checked(password: str, source: str) -> str:
    """The password, if it can be sent. Raises `CredentialError`."""
    try:
        password.encode("utf-8")
    except UnicodeEncodeError:
        raise CredentialError(f"{source} holds a password that is not UTF-8 text.") from None
    return password
