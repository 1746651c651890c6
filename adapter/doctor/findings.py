"""What a look found, and which exit code follows from all of them. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from contract.attach import AUTH, CONTRACT, OK, TEMPORARY, USAGE


class State(Enum):
    """Of one thing that was looked at."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Finding:
    """`sentence` says what is, `fix` what to do about it; `code` is an exit code if it failed."""

    name: str
    state: State
    sentence: str
    fix: str = ""
    code: int = OK


def good(name: str, sentence: str) -> Finding:
    return Finding(name, State.OK, sentence)


def warning(name: str, sentence: str, fix: str) -> Finding:
    return Finding(name, State.WARNING, sentence, fix)


def failed(name: str, code: int, sentence: str, fix: str) -> Finding:
    return Finding(name, State.FAILED, sentence, fix, code)


def skipped(name: str, why: str) -> Finding:
    return Finding(name, State.SKIPPED, why)


# The worst first: what is wrong on this side is mended before what is wrong on the other.
WORST: Final = (USAGE, AUTH, CONTRACT, TEMPORARY)


def exit_code(findings: Iterable[Finding]) -> int:
    """The worst code of those that failed; 0 without one."""
    codes = {finding.code for finding in findings if finding.state is State.FAILED}
    return next((code for code in WORST if code in codes), max(codes, default=OK))
