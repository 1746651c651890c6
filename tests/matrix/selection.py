"""Which cell a test runs, and where."""

from __future__ import annotations

import pytest

from tests.matrix.cells import Cell


def cell_of(item: pytest.Item) -> tuple[Cell, str] | None:
    """The cell of a test and its server, `stub` or `real`; None for other tests."""
    if not isinstance(item, pytest.Function) or not hasattr(item, "callspec"):
        return None
    cell, server = item.callspec.params.get("cell"), item.callspec.params.get("runs")
    return (cell, str(server)) if isinstance(cell, Cell) else None
