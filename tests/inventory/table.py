"""What is said of every container of the adapter; the finder says which there are."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from adapter.engine.newest import CHILDREN
from tests.inventory.kept import Kept
from tests.inventory.of_core import OF_CORE
from tests.inventory.of_edges import OF_EDGES
from tests.inventory.of_engine import OF_ENGINE

TABLE: Final[tuple[Kept, ...]] = (*OF_CORE, *OF_ENGINE, *OF_EDGES)

PASSING: Final[Mapping[str, str]] = MappingProxyType(
    {
        "acp.omitted.Omitted": "one update; the limits that there are",
        "core.ownrows.OwnRows": "one load; two rows without what they say",
        "engine.newest.Search": f"one reading; {2 * CHILDREN} children",
        "engine.replay.Replay": "one load, and what was held back in it; the rows that are shown",
        "upstream.history.History": "one load; the pages that are read",
        "upstream.shaped.Walk": "one list; the pages that are read",
    }
)
"""Classes whose objects end with what made them: what that is, and what it bounds."""


def is_passing(where: str) -> bool:
    """Whether a container is of an object that ends with the call that made it."""
    return where.rpartition(".")[0] in PASSING
