"""The table of settings: from it come flags, variables, keys of the file, help and completion.

A setting `queue_patience` is the flag `--queue-patience`, the variable
`OPENCODE_ACP_QUEUE_PATIENCE` and the key `queue_patience` of the file. The limits are a table of
the file alone (`adapter.limits`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from contract.attach import PREFIX
from contract.policy import MCP_POLICIES


class Kind(Enum):
    """What a value is; the values are the words of the help."""

    URL = "URL"
    PATH = "PATH"
    SECONDS = "SECONDS"
    WORD = "WORD"
    USERS = "UID,..."


class Place(Enum):
    """Where a setting belongs to."""

    SERVICE = "the service: a client and its daemon have to agree on it"
    PROCESS = "one process, whose own affair it is"
    COMMAND = "one command line: it says which file or which daemon, so no file can hold it"


@dataclass(frozen=True, slots=True)
class Setting:
    """One row. `words` are those that a WORD can be, the default first."""

    name: str
    kind: Kind
    about: str
    default: str = ""
    words: tuple[str, ...] = ()
    place: Place = Place.SERVICE

    @property
    def flag(self) -> str:
        return f"--{self.name.replace('_', '-')}"

    @property
    def variable(self) -> str:
        return PREFIX + self.name.upper()

    @property
    def metavar(self) -> str:
        return "|".join(self.words) or self.kind.value


DEFAULT_SERVER: Final = "http://127.0.0.1:4096"

_YES: Final = ("no", "yes")

SETTINGS: Final[tuple[Setting, ...]] = (
    Setting("server", Kind.URL, "the OpenCode server", DEFAULT_SERVER),
    Setting(
        "allow_remote",
        Kind.WORD,
        "yes: the server may be on another machine, by https alone",
        words=_YES,
    ),
    Setting(
        "ca_file",
        Kind.PATH,
        "a PEM file of the authorities that vouch for a server with https, in place of public ones",
    ),
    Setting("password_file", Kind.PATH, "a file that holds the server's password"),
    Setting(
        "on_client_exit",
        Kind.WORD,
        "what becomes of the turns of a client that leaves",
        words=("interrupt", "detach"),
    ),
    Setting(
        "queue_patience",
        Kind.SECONDS,
        "after these a prompt that waits joins the running turn; without, it waits for its end",
    ),
    Setting(
        "prompt_seconds",
        Kind.SECONDS,
        "after these a turn that runs is stopped; without, it may run as long as it likes",
    ),
    Setting("allow_always", Kind.WORD, 'yes: permissions offer "always" as well', words=_YES),
    Setting(
        "mcp", Kind.WORD, "what becomes of the MCP servers that a client brings", words=MCP_POLICIES
    ),
    Setting(
        "mcp_seconds", Kind.SECONDS, "for all MCP servers of an opening, which waits so long", "20"
    ),
    Setting("config", Kind.PATH, "the operator's TOML file", place=Place.COMMAND),
    Setting("socket", Kind.PATH, "where the daemon listens for clients", place=Place.COMMAND),
    Setting(
        "daemon",
        Kind.WORD,
        "use the daemon if one listens, always, or not at all",
        words=("auto", "require", "never"),
        place=Place.COMMAND,
    ),
    Setting(
        "admin_socket", Kind.PATH, "where the daemon answers its operator", place=Place.PROCESS
    ),
    Setting(
        "allowed_uids",
        Kind.USERS,
        "users whose processes the daemon serves; without, its own user alone",
        place=Place.PROCESS,
    ),
    Setting(
        "drain_seconds",
        Kind.SECONDS,
        "a daemon that is stopped waits so long for turns in flight",
        "20",
        place=Place.PROCESS,
    ),
    Setting(
        "drain",
        Kind.WORD,
        "what becomes of turns that have not ended by then",
        words=("detach", "interrupt"),
        place=Place.PROCESS,
    ),
    Setting(
        "log_level",
        Kind.WORD,
        "what is logged; without, warning, and info by a daemon",
        words=("warning", "debug", "info", "error"),
        place=Place.PROCESS,
    ),
    Setting(
        "log_format",
        Kind.WORD,
        "the form of the log on standard error",
        words=("auto", "text", "json", "journal"),
        place=Place.PROCESS,
    ),
)

BY_NAME: Final[Mapping[str, Setting]] = {setting.name: setting for setting in SETTINGS}
