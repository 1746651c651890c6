"""What `make test` leaves to `make test-long`."""

from __future__ import annotations

from typing import Final

import pytest

from tests.matrix.selection import cell_of
from tests.support.daemons import by_daemon

TENTH: Final = 10
# Without a daemon the engine is the same: what differs is who is left when somebody goes.
OF_THE_PROCESS: Final = ("none", "client-leaves", "agent-killed", "slow-client", "killed")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of the stub's cells are run through a daemon, and a fixed tenth of the real ones."""
    real = 0
    for item in items:
        cell, server = cell_of(item) or (None, "")
        if cell is None:
            continue
        real += server == "real"
        if server == "real":
            wanted = by_daemon() and real % TENTH == 1
        else:
            wanted = by_daemon() or cell.fault.key in OF_THE_PROCESS
        if not wanted:
            item.add_marker(pytest.mark.long)
