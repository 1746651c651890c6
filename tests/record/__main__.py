"""Record all scenarios, or those that are named: `python -m tests.record [NAME ...]`."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path

from stubs.parts import ROOT
from stubs.real_server import real_server
from tests.record.recorder import Recorder
from tests.record.scenarios import PERMISSION, SCENARIOS

FOLDER = ROOT / "tests" / "data" / "recordings"


async def record(names: list[str], root: Path) -> None:
    """One server for all; a session and a file for each."""
    async with real_server(root, PERMISSION) as server, server.client() as client:
        for name in names:
            recording = await Recorder(server, client, name).run(SCENARIOS[name])
            (FOLDER / f"{name}.jsonl").write_text(recording, encoding="utf-8")
            print(f"{name}: {recording.count(chr(10))} lines, {len(recording) // 1024} KiB")


def main() -> int:
    """Record; the exit code."""
    names = sys.argv[1:] or list(SCENARIOS)
    if unknown := sorted(set(names) - set(SCENARIOS)):
        print(f"no such scenario: {', '.join(unknown)}", file=sys.stderr)
        return 2
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="recording-") as folder:
        asyncio.run(record(names, Path(folder).resolve()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
