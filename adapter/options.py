"""What the command line hands to the rest of the program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Options:
    """The settings that stand on the command line, by their names in the table."""

    given: Mapping[str, str] = field(default_factory=dict)


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
