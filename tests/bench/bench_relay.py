"""The relay: spawn to its first byte at the daemon, its memory, and its exit after the EOF.

Ratios of pairs taken one right after the other: on a busy machine milliseconds say little. The
daemon here is one socket that answers at once, so that nothing but the relay is measured.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from contract.attach import ACCEPTED
from tests.bench.report import COMMAND, report

RATIO_BOUND: Final = 1.5
EXIT_BOUND_MS: Final = 10.0
MEMORY_BOUND_MB: Final = 4.0
PAIRS: Final = 40
# Of compiled code, as installs have it: the first start of a checkout may write it here.
ENV: Final = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
FIRST: Final = "import sys; sys.stdout.write('x'); sys.stdout.flush()"


def bare(*interpreter: str) -> float:
    """Seconds from the spawn of a Python that writes one byte to that byte."""
    start = time.perf_counter()
    with subprocess.Popen([*interpreter, "-c", FIRST], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.read(1)
        return time.perf_counter() - start


def relay(command: Path, path: str, listener: socket.socket) -> tuple[float, float, float]:
    """Seconds to the first byte, megabytes of its own, and seconds from EOF to the exit."""
    start = time.perf_counter()
    argv = [str(command), "--socket", path, "--daemon", "require"]
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, env=ENV) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        connection, _ = listener.accept()
        with connection:
            connection.recv(1)
            came = time.perf_counter() - start
            connection.recv(64 * 1024)
            connection.sendall(ACCEPTED + b"y")
            process.stdout.read(1)
            own = private(process.pid)
            left = time.perf_counter()
            process.stdin.close()
            while connection.recv(1):
                pass
        process.wait()
        return came, own, time.perf_counter() - left


def private(pid: int) -> float:
    """Megabytes that no other process shares."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
    return sum(map(int, re.findall(r"Private_\w+: +(\d+) kB", rollup))) / 1024


def main() -> int:
    """Measure, print, and fail past a bound."""
    bases, firsts, exits, owns = [], [], [], []
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listener:
        path = f"{folder}/s.sock"
        listener.bind(path)
        listener.listen()
        relay(COMMAND, path, listener)
        for _ in range(PAIRS):
            bases.append(bare(sys.executable))
            first, own, left = relay(COMMAND, path, listener)
            firsts.append(first)
            owns.append(own)
            exits.append(left)
    ratios = [first / base for first, base in zip(firsts, bases, strict=True)]
    report("bare python to its first byte", [base * 1000 for base in bases], "ms")
    report("relay to its first byte", [first * 1000 for first in firsts], "ms")
    kept = report("  the same as a multiple of bare python", ratios, "x ", RATIO_BOUND)
    kept &= report("relay's own memory", owns, "MB", MEMORY_BOUND_MB)
    kept &= report("EOF to exit", [left * 1000 for left in exits], "ms", EXIT_BOUND_MS)
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
