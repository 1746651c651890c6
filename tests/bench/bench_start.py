"""Spawn to the `initialize` answer as a ratio to bare Python: `python -m tests.bench.bench_start`.

Ratios of pairs taken one right after the other, and their median: on a busy machine
milliseconds say little. The bound is 8 times `python -c pass`.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

BOUND = 8.0
PAIRS = 25
PARAMS = {"protocolVersion": 1, "clientCapabilities": {}}
HELLO = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": PARAMS}
COMMAND = Path(sys.executable).with_name("opencode-acp")


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
    """Measure, print, and fail past the bound."""
    first_answer()
    ratios, exits = [], []
    for _ in range(PAIRS):
        base = bare()
        answered, left = first_answer()
        ratios.append(answered / base)
        exits.append(left)
    ratio = statistics.median(ratios)
    print(f"initialize answered after {ratio:.2f} x bare python (bound {BOUND:g})")
    print(f"exit after a probe: {statistics.median(exits) * 1000:.1f} ms")
    return 0 if ratio <= BOUND else 1


if __name__ == "__main__":
    sys.exit(main())
