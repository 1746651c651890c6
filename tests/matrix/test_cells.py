"""Every cell of the matrix, on the stub and on the real server, on the transport of the run.

The cells of a server are run side by side when the first of them is asked for.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from typing import Final

import pytest
import pytest_asyncio

from tests.matrix.cells import Cell, Run, cells, lanes, run_all
from tests.matrix.selection import cell_of
from tests.matrix.table import expected
from tests.scenarios.backends import backend_of
from tests.support.daemons import by_daemon

LANES: Final = {"stub": 8, "real": 1}
"""Servers, and so cells, at once. The real one takes a core of its own."""

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(1200)]


@pytest_asyncio.fixture(
    scope="session",
    loop_scope="session",
    params=["stub", pytest.param("real", marks=pytest.mark.real)],
)
async def runs(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Mapping[str, Run]]:
    """How the selected cells went, by key."""
    server = str(request.param)
    chosen = (cell_of(item) for item in request.session.items)
    todo = [cell for cell, where in filter(None, chosen) if where == server]
    async with AsyncExitStack() as stack:
        backends = [
            await stack.enter_async_context(backend_of(server, tmp_path_factory.mktemp(server)))
            for _ in range(LANES[server])
        ]
        ways = await stack.enter_async_context(lanes(backends))
        yield {run.cell.key: run for run in await run_all(todo, ways)}


@pytest.mark.parametrize("cell", cells(), ids=lambda cell: cell.key)
async def test_it_is_as_published(runs: Mapping[str, Run], cell: Cell) -> None:
    run = runs[cell.key]
    assert run.wrong == ()
    assert run.outcome == expected(cell.fault.key, cell.phase.key, by_daemon=by_daemon())
