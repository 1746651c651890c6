"""What a start needs, read before anything is answered: a start that cannot work ends at once.

A client shows what an agent says on stderr only when it ends before it has answered `initialize`
(acpx facts, section 5), so this module imports nothing heavy.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, cast

from adapter.configfile import ConfigFileError, FileSettings, find_config, read_config
from adapter.limits import DEFAULTS, Limits
from adapter.options import Options
from adapter.settings.gather import Gathered, gather
from adapter.settings.table import BY_NAME, DEFAULT_SERVER
from adapter.settings.values import SettingError
from adapter.upstream.address import RemoteError, UrlError, server_url
from adapter.upstream.credentials import (
    Credential,
    CredentialError,
    find_credential,
)
from adapter.upstream.registration import find_registration
from contract.attach import admin_socket, at_home, default_socket
from contract.policy import McpPolicy

START_ERRORS: Final = (CredentialError, UrlError, SettingError, ConfigFileError)

LogFormat = Literal["auto", "text", "json", "journal"]
Drain = Literal["detach", "interrupt"]


@dataclass(frozen=True, slots=True)
class Start:
    """Where the server is, how to prove who we are, and what the operator has turned."""

    server: str = DEFAULT_SERVER
    credential: Credential | None = None
    ca_file: str | None = None
    """The authorities that vouch for it; None: the public ones."""
    queue_patience: float | None = None
    prompt_seconds: float | None = None
    interrupt_on_exit: bool = True
    allow_always: bool = False
    mcp: McpPolicy = "notice"
    mcp_seconds: float | None = None
    limits: Limits = DEFAULTS
    config: str | None = None
    """The file that was read; None: none was."""
    socket: str = ""
    admin_socket: str = ""
    allowed_uids: frozenset[int] | None = None
    """None: the daemon's own user."""
    drain_seconds: float = 20.0
    drain: Drain = "detach"
    log_level: str | None = None
    """None: nothing was said, and each process has a default of its own."""
    log_format: LogFormat = "auto"
    gathered: Gathered = field(default_factory=lambda: Gathered({}), compare=False)
    """All of that as it was said."""


def read_start(options: Options, environ: Mapping[str, str]) -> Start:
    """Flags over environment over file over defaults. Raises one of `START_ERRORS`."""
    file, said = read_said(options, environ)
    server, credential = find_server(said, environ)
    socket, admin = sockets(said, environ)
    level = said.given("log_level")
    return Start(
        server=server,
        credential=credential,
        ca_file=ca_file_of(said),
        queue_patience=said.seconds("queue_patience"),
        prompt_seconds=said.seconds("prompt_seconds"),
        interrupt_on_exit=said.word("on_client_exit") == "interrupt",
        allow_always=said.word("allow_always") == "yes",
        mcp=cast(McpPolicy, said.word("mcp")),
        mcp_seconds=said.seconds("mcp_seconds"),
        limits=file.limits,
        config=file.path or None,
        socket=socket,
        admin_socket=admin,
        allowed_uids=said.users("allowed_uids"),
        drain_seconds=said.seconds("drain_seconds") or 20.0,
        drain=cast(Drain, said.word("drain")),
        log_level=said.word("log_level") if level is not None else None,
        log_format=cast(LogFormat, said.word("log_format")),
        gathered=said,
    )


def read_said(options: Options, environ: Mapping[str, str]) -> tuple[FileSettings, Gathered]:
    """What the file says, and each setting as it was said last.

    Raises ConfigFileError or SettingError.
    """
    file = read_config(find_config(config_named(options, environ), environ))
    return file, gather(options.given, environ, file.values, file.path)


def sockets(said: Gathered, environ: Mapping[str, str]) -> tuple[str, str]:
    """Where the daemon listens for clients, and where it answers its operator."""
    socket = said.text("socket") or default_socket(environ.get("XDG_RUNTIME_DIR", ""), os.getuid())
    return socket, said.text("admin_socket") or admin_socket(socket)


def config_named(options: Options, environ: Mapping[str, str]) -> str | None:
    """The file that flag or environment names."""
    named = options.given.get("config") or environ.get(BY_NAME["config"].variable)
    return at_home(named, environ.get("HOME", "")) if named else None


def address_of(said: Gathered) -> str:
    """The server that was said, or the default. Raises UrlError, which names where it was said."""
    url = said.given("server")
    if url is None:
        return DEFAULT_SERVER
    try:
        return server_url(url.text, allow_remote=said.word("allow_remote") == "yes")
    except UrlError as error:
        told = f"{str(error).removesuffix('.')} ({url.origin})"
        if isinstance(error, RemoteError):
            told += f"; {BY_NAME['allow_remote'].flag} yes allows another machine, by https"
        raise UrlError(f"{told}.") from None


def ca_file_of(said: Gathered) -> str | None:
    """The file of authorities that was said, which can be used. Raises SettingError."""
    named = said.given("ca_file")
    if named is None:
        return None
    from adapter.upstream.trust import TrustError, authorities

    try:
        authorities(named.text)
    except TrustError as error:
        raise SettingError(
            f"The file of authorities {named.text} cannot be used: {error} ({named.origin})."
        ) from None
    return named.text


def find_server(said: Gathered, environ: Mapping[str, str]) -> tuple[str, Credential | None]:
    """The server and its password; OpenCode's own registration comes last.

    One that cannot be used is nothing to somebody who names a server. Raises UrlError or
    CredentialError.
    """
    server = address_of(said)
    credential = find_credential(said.text("password_file"), environ)
    if credential is not None:
        return server, credential
    is_named = said.given("server") is not None
    try:
        found = find_registration(environ)
    except (CredentialError, UrlError):
        if not is_named:
            raise
        return server, None
    if found is None or (is_named and found.server != server):
        return server, None
    return found.server, found.credential
