"""`python -m tests.soak --seconds 600 --users 50 --seed 1`; exit code 1 for anything wrong."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from tests.soak.soak import Report, soak
from tests.soak.watch import growth

MEGA = 1e6


def told(report: Report) -> str:
    """A few lines on what there was."""
    tally, samples = report.tally, report.samples
    rss = [one.rss / MEGA for one in samples]
    lines = [
        f"prompts {tally.prompts}, characters {tally.characters}, unanswered {tally.unanswered}",
        *(f"  {outcome}: {count}" for outcome, count in sorted(tally.outcomes.items())),
        f"counted by the daemon: {report.counted}",
        f"memory {min(rss):.1f} to {max(rss):.1f} MB, last quarter / second {growth(samples):.3f}",
        f"descriptors at most {max(one.descriptors for one in samples)}",
        *(f"WRONG {one}" for one in report.wrong),
    ]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--users", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        report = asyncio.run(soak(Path(root), given.users, given.seconds, given.seed))
    sys.stdout.write(told(report) + "\n")
    return 1 if report.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
