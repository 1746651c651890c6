"""What every cell has to come to. A change of a line here is a change of what users are told.

A word stands for a stop reason, `CODE name` for an error (docs/outcomes.md); behind a semicolon
comes the answer to what the client did beside its turn. Of a turn whose client has no answer it
is said what became of it at the server.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.matrix.phases import PHASES

NAMES: Final = tuple(phase.key for phase in PHASES)
Row = Mapping[str, str]


def row(rest: str, **phases: str) -> Row:
    """The outcomes of a fault by phase: `rest` where none is named."""
    return {name: phases.get(name, rest) for name in NAMES}


def beside(one: Row, answer: str) -> Row:
    """The same with the answer to what the client did beside its turn."""
    return {name: f"{outcome}; {answer}" for name, outcome in one.items()}


WHOLE: Final = row("end_turn", cancel="cancelled")
UNKNOWN: Final = "-32050 unknown"
REFUSED: Final = "-32603 not_admitted"
ELSEWHERE: Final = "-32055 ended_elsewhere"
PASSWORD: Final = "-32000 auth_required"
STOPPED: Final = "no answer: interrupted"
FINISHED: Final = "no answer: succeeded"
NEVER: Final = "no answer: never ran"
RESTARTED: Final = row(
    UNKNOWN, submitted="end_turn", queued="end_turn", cancel="cancelled", ended="end_turn"
)
LEFT: Final = row(STOPPED, queued=NEVER, ended=FINISHED)

EXPECTED: Final[Mapping[str, Row]] = {
    "none": WHOLE,
    "feed-closed": WHOLE,
    "feed-torn": WHOLE,
    "feed-silent": WHOLE,
    "feed-twice": WHOLE,
    "feed-unknown": WHOLE,
    "feed-garbage": WHOLE,
    "feed-huge": WHOLE,
    "reads-500": WHOLE,
    "reads-429": WHOLE,
    "refused": row(PASSWORD, cancel="cancelled"),
    "prompt-lost": WHOLE,
    "prompt-unheard": WHOLE,
    "prompt-late": WHOLE,
    "prompt-500": WHOLE,
    "prompt-503": WHOLE,
    "prompt-400": row(REFUSED),
    "prompt-404": row(REFUSED),
    "prompt-429": row(REFUSED),
    "reply-lost": WHOLE,
    "reply-unheard": WHOLE,
    "reply-500": WHOLE,
    "stop-lost": WHOLE,
    "stop-unheard": WHOLE,
    "stop-500": WHOLE,
    "away": WHOLE,
    "gone": row(UNKNOWN, cancel="cancelled"),
    "killed": RESTARTED,
    "terminated": RESTARTED,
    "slow-client": WHOLE,
    "client-leaves": LEFT,
    "agent-killed": LEFT,
    "second-prompt": beside(WHOLE, "-32051 busy"),
    "load": beside(WHOLE, "done"),
    "resume": beside(WHOLE, "done"),
    "close": beside(row("cancelled"), "done"),
    "foreign-queue": WHOLE,
    "foreign-steer": {**WHOLE, "tool": "end_turn, shared", "ask": "end_turn, shared"},
    "foreign-stop": {**WHOLE, "text": ELSEWHERE, "tool": ELSEWHERE, "ask": ELSEWHERE},
    "foreign-delete": row(ELSEWHERE, ended="end_turn"),
}

IN_PROCESS: Final[Mapping[str, Row]] = {
    # Nobody is left who could stop the turn. Behind a relay the daemon is.
    "agent-killed": row(FINISHED, submitted=NEVER, ask="no answer: its permission is open"),
}
"""Where an agent in its own process differs from one behind a daemon."""


def expected(fault: str, phase: str, *, by_daemon: bool) -> str:
    """The outcome that a cell has to have."""
    table = EXPECTED if by_daemon or fault not in IN_PROCESS else IN_PROCESS
    return table[fault][phase]
