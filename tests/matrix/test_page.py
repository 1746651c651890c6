"""The published page is that of the table, and the table has a place for every cell."""

from __future__ import annotations

from tests.matrix.__main__ import PAGE
from tests.matrix.faults import FAULTS, Fault
from tests.matrix.page import page
from tests.matrix.phases import PHASES
from tests.matrix.table import EXPECTED, IN_PROCESS, expected


def test_the_page_is_that_of_the_table() -> None:
    def outcome(fault: Fault, phase: str, by_daemon: bool) -> str:
        return expected(fault.key, phase, by_daemon=by_daemon)

    assert PAGE.read_text(encoding="utf-8") == page(outcome)


def test_every_fault_has_an_outcome_in_every_phase() -> None:
    assert list(EXPECTED) == [fault.key for fault in FAULTS]
    assert IN_PROCESS.keys() <= EXPECTED.keys()
    names = {phase.key for phase in PHASES}
    for row in (*EXPECTED.values(), *IN_PROCESS.values()):
        assert set(row) == names
        assert all(row.values())


def test_what_a_fault_cannot_break_says_why() -> None:
    names = {phase.key for phase in PHASES}
    for fault in FAULTS:
        assert set(fault.only) <= names
        assert bool(fault.only) == bool(fault.why)
