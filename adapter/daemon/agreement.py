"""Whether a client asks for what the daemon is: one daemon has one server and one password."""

from __future__ import annotations

import os
from collections.abc import Callable

from adapter.daemon.hello import Hello
from adapter.start import Start
from adapter.upstream.credentials import UrlError, server_url

Differs = Callable[[Hello], str | None]
"""A sentence on the first setting of a client that is not the daemon's, or None."""


def agreement(start: Start, password_file: str | None) -> Differs:
    """Compares what clients have set with the daemon's start; `password_file` as it was named."""

    def differs(hello: Hello) -> str | None:
        server = hello.settings.get("server")
        if server is not None and not _is_server(server, start.server):
            return f"The daemon is in front of {start.server}; leave out the server or use it."
        file = hello.settings.get("password_file")
        if file is not None and not _is_file(file, hello.cwd, password_file):
            named = password_file or "no password file"
            return f"The daemon uses {named}; leave out the password file or name that one."
        return None

    return differs


def _is_server(given: str, known: str) -> bool:
    try:
        return server_url(given, allow_remote=True) == known
    except UrlError:
        return False


def _is_file(given: str, cwd: str, known: str | None) -> bool:
    return known is not None and os.path.join(cwd, given) == os.path.abspath(known)
