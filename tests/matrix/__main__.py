"""`python -m tests.matrix`: runs every cell everywhere and writes the page and its picture.

Exit code 1, and nothing is written, if a cell is not what the table says or something is wrong in
it.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

from stubs.parts import ROOT
from tests.matrix.cells import Run, cells, lanes, run_all
from tests.matrix.faults import Fault
from tests.matrix.page import page
from tests.matrix.picture import draw
from tests.matrix.table import expected
from tests.scenarios.backends import backend_of
from tests.support.daemons import Daemons

LANES: Final = {"stub": 8, "real": 1}
PAGE: Final = ROOT / "docs" / "fault-matrix.md"
PICTURE: Final = ROOT / "docs" / "fault-matrix.svg"


async def run_on(server: str, root: Path, *, by_daemon: bool) -> list[Run]:
    """Every cell on one kind of server, on one transport."""
    Daemons.shared = Daemons() if by_daemon else None
    try:
        async with AsyncExitStack() as stack:
            backends = []
            for number in range(LANES[server]):
                place = root / f"{server}{by_daemon}{number}"
                place.mkdir()
                backends.append(await stack.enter_async_context(backend_of(server, place)))
            return await run_all(cells(), await stack.enter_async_context(lanes(backends)))
    finally:
        if Daemons.shared is not None:
            await Daemons.shared.aclose()
            Daemons.shared = None


async def main() -> int:
    found: list[str] = []
    told: dict[tuple[str, str, bool], str] = {}
    with tempfile.TemporaryDirectory() as root:
        for server in LANES:
            for by_daemon in (True, False):
                for run in await run_on(server, Path(root), by_daemon=by_daemon):
                    fault, phase = run.cell.fault.key, run.cell.phase.key
                    told[fault, phase, by_daemon] = run.outcome
                    wrong = list(run.wrong)
                    if run.outcome != expected(fault, phase, by_daemon=by_daemon):
                        wrong.append(f"it ended as {run.outcome!r}")
                    place = f"{server}, {'daemon' if by_daemon else 'process'}, {run.cell.key}"
                    found += [f"{place}: {one}" for one in wrong]
                sys.stderr.write(f"{server}, by daemon {by_daemon}: {len(cells())} cells\n")
    sys.stderr.writelines(f"{line}\n" for line in found)
    if found:
        return 1

    def outcome(fault: Fault, phase: str, by_daemon: bool) -> str:
        return told[fault.key, phase, by_daemon]

    PAGE.write_text(page(outcome), encoding="utf-8")
    draw(outcome, PICTURE)
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
