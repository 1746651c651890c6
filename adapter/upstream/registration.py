"""OpenCode's own background server, as it registers itself: its address and its password.

`opencode service start` writes `opencode/service.json` into the user's state directory, mode 0600:
`{"id", "version", "url", "pid", "password"}` (seen with 2.0.15). `opencode serve` writes none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from adapter.upstream.address import UrlError, server_url
from adapter.upstream.credentials import (
    Credential,
    CredentialError,
    checked,
    read_secret,
)
from adapter.upstream.userfiles import user_file

FILE: Final = "opencode/service.json"


@dataclass(frozen=True, slots=True)
class Registration:
    """A server of this user that runs, or ran."""

    server: str
    credential: Credential


def find_registration(environ: Mapping[str, str]) -> Registration | None:
    """The registration in the user's state directory; None without one.

    Raises CredentialError for one that is not the user's alone or holds something else, and
    UrlError for an address that is not on loopback.
    """
    path = user_file(environ, "XDG_STATE_HOME", ".local/state", FILE)
    if path is None:
        return None
    text = read_secret(path, "registration file")
    try:
        told = json.loads(text)
        url, password = told["url"], told["password"]
    except (ValueError, KeyError, TypeError, RecursionError):
        # Without `from`: the cause would carry the file's text.
        raise CredentialError(f"The registration file {path} is none of OpenCode 2.") from None
    if not isinstance(url, str) or not isinstance(password, str):
        raise CredentialError(f"The registration file {path} is none of OpenCode 2.")
    password = checked(password, f"The registration file {path}")
    try:
        server = server_url(url)
    except UrlError as error:
        raise UrlError(f"{str(error).removesuffix('.')} (url in {path}).") from None
    return Registration(server, Credential(password, source=f"the file {path}"))
