"""The page of public reports has every number of both lists, and names tests that exist."""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

from stubs.parts import ROOT
from tests.unit.test_requirements import TEST, names_in

PAGE: Final = (ROOT / "docs" / "reports.md").read_text(encoding="utf-8")
ID: Final = r"[RA]-\d\d"
ROW: Final = re.compile(rf"^\| ({ID}) \|(.*)\|$", re.M)
REASONED: Final = re.compile(rf"^\| ({ID}(?:, {ID})*) \| [^|]+ \|$", re.M)
LINK: Final = re.compile(
    r"\[([\w.-]+)#(\d+)\]\(https://github\.com/[\w.-]+/\1/(?:issues|pull)/\2\)"
)

ALL: Final = [
    *(f"R-{number:02}" for number in range(1, 30)),
    *(f"A-{number:02}" for number in range(1, 26)),
]


def rows() -> list[tuple[str, list[str]]]:
    """Id and the other cells of each row with tests."""
    told = [(ident, rest.split(" | ")) for ident, rest in ROW.findall(PAGE)]
    return [(ident, [cell.strip() for cell in cells]) for ident, cells in told if len(cells) > 1]


def test_every_report_of_both_lists_stands_there_once_and_in_order() -> None:
    assert [ident for ident, _ in rows()] == ALL


def test_every_report_has_its_link_its_symptom_what_is_done_and_tests() -> None:
    for ident, cells in rows():
        links, symptom, done, tests = cells
        assert LINK.sub("", links).strip(" ,") == "", ident
        assert LINK.search(links), ident
        assert symptom and done, ident
        assert TEST.sub("", tests).strip(" ,`") == "", ident
        assert TEST.search(tests), ident


def test_no_test_is_named_twice_for_a_report() -> None:
    for ident, cells in rows():
        assert Counter(TEST.findall(cells[3])).most_common(1)[0][1] == 1, ident


def test_every_test_that_is_named_exists() -> None:
    named = set(TEST.findall(PAGE))
    known = {file: names_in(file) for file, _ in named}
    assert [f"{file}::{name}" for file, name in sorted(named) if name not in known[file]] == []


def test_what_is_left_to_others_is_of_reports_that_stand_there() -> None:
    left = [ident for idents in REASONED.findall(PAGE) for ident in idents.split(", ")]
    assert left
    assert set(left) <= set(ALL)
    assert len(left) == len(set(left))
