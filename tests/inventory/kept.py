"""What is said of a container that the source does not say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Kept:
    """One container: `module.Class.attribute`, below `adapter`.

    `key`: what an entry is of, or found by. `bound`: how many there can be, a limit of an operator
    in backticks by its name. `full`: what happens at the bound. `cleared`: what ends an entry.
    """

    where: str
    key: str
    bound: str
    full: str
    cleared: str


NEVER: Final = "cannot come to it"
