"""docs/fault-matrix.md, made of outcomes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.matrix.faults import FAULTS, Fault
from tests.matrix.phases import PHASES

Outcome = Callable[[Fault, str, bool], str]
"""Of a fault, a phase's key, and whether the agent is behind a daemon."""

TEMPLATE: Final = Path(__file__).with_name("page.md")


def page(outcome: Outcome) -> str:
    """The whole page."""
    phases = "".join(f"- **{phase.key}**: {phase.means}\n" for phase in PHASES)
    table = "\n".join(_table(outcome))
    return TEMPLATE.read_text(encoding="utf-8").format(phases=phases, table=table)


def _table(outcome: Outcome) -> list[str]:
    names = [phase.key for phase in PHASES]
    lines = [_line(["fault", *names]), _line(["---"] * (len(names) + 1))]
    for fault in FAULTS:
        cells = [_cell(outcome, fault, name) for name in names]
        lines.append(_line([f"**{fault.key}**: {fault.means}", *cells]))
    return lines


def _cell(outcome: Outcome, fault: Fault, phase: str) -> str:
    if fault.only and phase not in fault.only:
        return "-"
    both = dict.fromkeys(outcome(fault, phase, by_daemon) for by_daemon in (True, False))
    return " / ".join(both)


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
