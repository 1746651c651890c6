"""What the command line hands to the rest of the program."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Options:
    """The flags; None or the default where a flag was not given."""

    server: str | None = None
    """http(s) URL of the OpenCode server, without user or password."""
    password_file: str | None = None
    config: str | None = None
    """Path of the operator's configuration file."""
    log_level: str = "warning"
    """`debug`, `info`, `warning` or `error`."""


@dataclass(frozen=True, slots=True)
class Opening:
    """The connection as it stands when the first line has been looked at."""

    client: dict[str, object] | None
    """Params of the `initialize` that was answered; None if the first line was something else."""
    pending: bytes
    """Everything that was read from the client and not answered."""
    source: int = 0
    """Descriptor to read the client from."""
    sink: int = 1
    """Descriptor to write ACP to; 1 itself leads to stderr once `reserve_stdout` was called."""
