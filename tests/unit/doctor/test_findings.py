"""Which exit code a set of findings has."""

from __future__ import annotations

from itertools import permutations

from adapter.doctor.findings import exit_code, failed, good, skipped, warning
from contract.attach import AUTH, CONTRACT, OK, TEMPORARY, USAGE


def test_nothing_that_failed_is_no_failure() -> None:
    assert exit_code((good("a", "."), warning("b", ".", "."), skipped("c", "."))) == OK


def test_the_worst_decides_whatever_the_order() -> None:
    codes = (USAGE, AUTH, CONTRACT, TEMPORARY)
    for worst in range(len(codes)):
        for some in permutations(codes[worst:]):
            assert exit_code(failed(str(code), code, ".", ".") for code in some) == codes[worst]
