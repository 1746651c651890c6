"""Runs schedules and prints what was found; exit code 1 for any fault."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from tests.stress.schedules import run_all


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.stress")
    parser.add_argument("--schedules", type=int, default=40)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--stub", action="store_true")
    parser.add_argument("--restarts", action="store_true", help="the server is restarted as well")
    parser.add_argument("--log-level", default="error")
    given = parser.parse_args()
    seeds = range(given.seed, given.seed + given.schedules)
    with tempfile.TemporaryDirectory() as folder:
        running = run_all(
            Path(folder), seeds, stub=given.stub, restarts=given.restarts, level=given.log_level
        )
        summary = asyncio.run(running)
    for one in summary.found:
        print(one)
    turns = sum(summary.outcomes.values())
    print(
        f"{given.schedules} schedules, {turns} turns {dict(summary.outcomes)}, {summary.gaps} gaps "
        f"of turns, {summary.recovered} characters recovered, {len(summary.found)} faults"
    )
    return 1 if summary.found else 0


if __name__ == "__main__":
    sys.exit(main())
