"""The relay of each way to install: spawn to its first byte, to that of the install's own Python.

Ratios of pairs taken one right after the other, the ways in turn: on a busy machine milliseconds
say little. It asks the package index that pip is told of.
"""

from __future__ import annotations

import socket
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.bench.bench_relay import RATIO_BOUND, bare, relay
from tests.bench.report import report
from tests.support import installs

PAIRS: Final = 40
WAYS: Final = (installs.oldest_pip, installs.pipx_over_pip, installs.pipx_over_uv, installs.uv)


def main() -> int:
    """Measure, print, and fail past the bound."""
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listener:
        wheel = installs.build(Path(folder))
        commands = {}
        for way in WAYS:
            home = Path(folder, way.__name__)
            home.mkdir()
            commands[way.__name__] = way(wheel, home)
        path = f"{folder}/s.sock"
        listener.bind(path)
        listener.listen()
        ratios: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(PAIRS):
            for name, command in commands.items():
                base = bare(*installs.interpreter(command))
                ratios[name].append(relay(command, path, listener)[0] / base)
    kept = [
        report(f"relay by {name}, in multiples of its Python", taken, "x ", RATIO_BOUND)
        for name, taken in ratios.items()
    ]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
