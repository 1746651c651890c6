"""Spawn to the `initialize` answer, as a ratio to bare Python, and the exit of a mere probe.

Ratios of pairs taken one right after the other: on a busy machine milliseconds say little.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Final

from tests.bench.report import COMMAND, report

RATIO_BOUND: Final = 8.0
COLD_MS: Final = 300.0
EXIT_BOUND_MS: Final = 100.0
PAIRS: Final = 25
PARAMS: Final = {"protocolVersion": 1, "clientCapabilities": {}}
HELLO: Final = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": PARAMS}


def bare() -> float:
    """Seconds of `python -c pass`, from spawn to exit."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    return time.perf_counter() - start


def first_answer() -> tuple[float, float]:
    """Seconds from spawn to the answer, and from EOF to the exit of a client that only probes."""
    start = time.perf_counter()
    with subprocess.Popen([COMMAND], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(HELLO).encode() + b"\n")
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        answered = time.perf_counter()
        process.stdin.close()
        process.wait()
        ended = time.perf_counter()
    assert answer["result"]["protocolVersion"] == 1
    return answered - start, ended - answered


def main() -> int:
    """Measure, print, and fail past a bound."""
    first_answer()
    bases, answers, exits = [], [], []
    for _ in range(PAIRS):
        bases.append(bare())
        answered, left = first_answer()
        answers.append(answered)
        exits.append(left)
    ratios = [answered / base for answered, base in zip(answers, bases, strict=True)]
    report("bare python -c pass", [base * 1000 for base in bases], "ms")
    cold = [answered * 1000 for answered in answers]
    kept = report("spawn to the answer to initialize", cold, "ms", COLD_MS)
    kept &= report("  the same as a multiple of bare python", ratios, "x ", RATIO_BOUND)
    kept &= report("EOF to exit, only probed", [left * 1000 for left in exits], "ms", EXIT_BOUND_MS)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
