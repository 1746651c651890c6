"""docs/fault-matrix.svg: the matrix at a glance."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from tests.matrix.faults import FAULTS
from tests.matrix.page import Outcome
from tests.matrix.phases import PHASES

EDGE: Final = "#999999"
KINDS: Final = (
    ("finished or cancelled as asked, nothing lost", "#4c9f70", ("end_turn", "cancelled")),
    ("refused, and safe to send again", "#6c8ebf", ("-32603",)),
    ("ended by somebody else, and told so", "#b3a5c9", ("-32055",)),
    (
        "the client is gone; its turn was stopped or goes on",
        "#d0d0d0",
        ("no answer",),
    ),
    ("told as not known: nothing proves how it ended", "#e6a23c", ("-32050", "-32000")),
    ("the phase has nothing to break", "#ffffff", ("",)),
)
"""What a colour means, the colour, and how the outcomes of that kind begin."""


def draw(outcome: Outcome, path: Path) -> None:
    """Write the picture. Equal outcomes make equal files."""
    figure = Figure(figsize=(9, 0.24 * len(FAULTS) + 1.6), layout="constrained")
    axes = figure.add_subplot()
    for y, fault in enumerate(FAULTS):
        for x, phase in enumerate(PHASES):
            is_none = bool(fault.only) and phase.key not in fault.only
            told = "" if is_none else outcome(fault, phase.key, True)
            axes.barh(y, 0.94, 0.86, left=x, color=_colour(told), edgecolor=EDGE, linewidth=0.4)
    axes.set_yticks(range(len(FAULTS)), [fault.key for fault in FAULTS], fontsize=8)
    axes.set_xticks([x + 0.47 for x in range(len(PHASES))], [p.key for p in PHASES], fontsize=8)
    axes.xaxis.tick_top()
    axes.invert_yaxis()
    axes.margins(0.01, 0)
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)
    patches = [Patch(facecolor=c, edgecolor=EDGE, label=means) for means, c, _ in KINDS]
    figure.legend(handles=patches, loc="outside lower center", ncols=2, fontsize=8, frameon=False)
    with mpl.rc_context({"svg.hashsalt": "fault-matrix", "svg.fonttype": "none"}):
        figure.savefig(path, metadata={"Date": None, "Creator": None})


def _colour(told: str) -> str:
    return next(colour for _, colour, heads in KINDS if told.startswith(heads))
