"""What a start needs, read before anything is answered: a start that cannot work ends at once.

A client shows what an agent says on stderr only when it ends before it has answered `initialize`
(acpx facts, section 5), so this module imports nothing heavy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from adapter.configfile import ConfigFileError, read_config
from adapter.limits import DEFAULTS, Limits
from adapter.options import Options
from adapter.upstream.credentials import (
    Credential,
    CredentialError,
    UrlError,
    find_credential,
    server_url,
)
from contract.policy import MCP_POLICIES, McpPolicy

Word = TypeVar("Word", bound=str)

DEFAULT_SERVER: Final = "http://127.0.0.1:4096"
SERVER_VARIABLE: Final = "OPENCODE_ACP_SERVER"
PATIENCE_VARIABLE: Final = "OPENCODE_ACP_QUEUE_PATIENCE"
LONGEST_VARIABLE: Final = "OPENCODE_ACP_PROMPT_SECONDS"
CONFIG_VARIABLE: Final = "OPENCODE_ACP_CONFIG"
EXIT_VARIABLE: Final = "OPENCODE_ACP_ON_CLIENT_EXIT"
ALWAYS_VARIABLE: Final = "OPENCODE_ACP_ALLOW_ALWAYS"
MCP_VARIABLE: Final = "OPENCODE_ACP_MCP"
MCP_SECONDS_VARIABLE: Final = "OPENCODE_ACP_MCP_SECONDS"


class SettingError(Exception):
    """A setting of the environment has no meaning. `str()` is one sentence."""


START_ERRORS: Final = (CredentialError, UrlError, SettingError, ConfigFileError)


@dataclass(frozen=True, slots=True)
class Start:
    """Where the server is, how to prove who we are, and what the operator has turned."""

    server: str = DEFAULT_SERVER
    credential: Credential | None = None
    queue_patience: float | None = None
    prompt_seconds: float | None = None
    interrupt_on_exit: bool = True
    allow_always: bool = False
    mcp: McpPolicy = "notice"
    mcp_seconds: float | None = None
    limits: Limits = DEFAULTS


def read_start(options: Options, environ: Mapping[str, str]) -> Start:
    """Flags over environment over file over defaults. Raises one of `START_ERRORS`."""
    file = read_config(options.config or environ.get(CONFIG_VARIABLE))
    url = options.server or environ.get(SERVER_VARIABLE) or DEFAULT_SERVER
    return Start(
        server=server_url(url),
        credential=find_credential(options.password_file, environ),
        queue_patience=_seconds(environ, PATIENCE_VARIABLE),
        prompt_seconds=_seconds(environ, LONGEST_VARIABLE),
        interrupt_on_exit=_choice(environ, EXIT_VARIABLE, ("interrupt", "detach")) == "interrupt",
        allow_always=_choice(environ, ALWAYS_VARIABLE, ("no", "yes")) == "yes",
        mcp=_choice(environ, MCP_VARIABLE, MCP_POLICIES),
        mcp_seconds=_seconds(environ, MCP_SECONDS_VARIABLE),
        limits=file.limits,
    )


def _choice(environ: Mapping[str, str], name: str, words: tuple[Word, ...]) -> Word:
    """One of these words; the first is the default."""
    value = environ.get(name) or words[0]
    for word in words:
        if word == value:
            return word
    raise SettingError(f"{name} takes {', '.join(words[:-1])} or {words[-1]}.")


def _seconds(environ: Mapping[str, str], name: str) -> float | None:
    """Seconds above 0; None when it is not set."""
    value = environ.get(name)
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise SettingError(f"{name} takes a number of seconds above 0.")
    return seconds
