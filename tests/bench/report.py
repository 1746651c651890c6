"""How a benchmark says what it measured."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

COMMAND: Final = Path(sys.executable).with_name("opencode-acp")


def report(
    what: str,
    values: Sequence[float],
    unit: str,
    bound: float | None = None,
    *,
    least: bool = False,
) -> bool:
    """Print median, least and most of `values`; whether the median keeps within `bound`.

    `bound` is the highest median that is good, or the lowest one if `least`.
    """
    median = statistics.median(values)
    kept = bound is None or (median >= bound if least else median <= bound)
    promised = f"  bound {bound:g} {unit}{'' if kept else ' MISSED'}" if bound is not None else ""
    print(
        f"  {what:<44} median {median:8.2f} {unit}"
        f"  min {min(values):.2f}  max {max(values):.2f}  n {len(values)}{promised}",
        flush=True,
    )
    return kept
