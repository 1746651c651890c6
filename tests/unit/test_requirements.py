"""The page of requirements names tests that exist, and every requirement once."""

from __future__ import annotations

import ast
import re
from collections import Counter
from typing import Final

from stubs.parts import ROOT

PAGE: Final = (ROOT / "docs" / "requirements.md").read_text(encoding="utf-8")
ID: Final = r"(?:S\d-[A-Za-z]{0,2}\d*[a-z]?|[OX]-\d\d)"
HELD: Final = re.compile(rf"^\| ({ID}) \| [^|]+ \| ([^|]+) \|$", re.M)
REASONED: Final = re.compile(rf"^\| ({ID}(?:, {ID})*) \| [^|]+ \|$", re.M)
TEST: Final = re.compile(r"`([\w/]+\.py)::(test_\w+)`")

S4: Final = (
    *(f"{number:02}" for number in range(1, 22)),
    *("D1", "D1a", "D1b", "D2", "D3", "D3a", "D3b", "D4", "D4a", "D4b", "D4c"),
    *("P1", "P2", "P3", "P4", "a", "b", "c", "d", "Q1", "Q2", "Q3"),
)
S3: Final = (
    *(f"{number:02}" for number in range(1, 41)),
    *(f"E{number}" for number in range(1, 8)),
    *(f"L{number}" for number in range(1, 15)),
    "N1",
)
ALL: Final = frozenset(
    {f"S4-{name}" for name in S4}
    | {f"S3-{name}" for name in S3}
    | {f"S0-{number:02}" for number in range(1, 48)}
    | {f"S2-{number:02}" for number in range(1, 53)}
    | {f"O-{number:02}" for number in range(1, 36)}
    | {f"X-{number:02}" for number in range(1, 23)}
)


def names_in(file: str) -> set[str]:
    """The names of the tests of a module; empty for one that is not there."""
    path = ROOT / "tests" / file
    if not path.is_file():
        return set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.walk(tree) if isinstance(node, kinds)}


def test_every_test_that_is_named_exists() -> None:
    named = set(TEST.findall(PAGE))
    known = {file: names_in(file) for file, _ in named}
    assert [f"{file}::{name}" for file, name in sorted(named) if name not in known[file]] == []


def test_every_requirement_stands_there_once() -> None:
    held = [row[0] for row in HELD.findall(PAGE)]
    reasoned = [name for row in REASONED.findall(PAGE) for name in row.split(", ")]
    counted = Counter([*held, *reasoned])
    assert {name for name, times in counted.items() if times > 1} == set()
    assert set(counted) == ALL


def test_every_row_that_is_held_names_a_test_and_nothing_else() -> None:
    for name, tests in HELD.findall(PAGE):
        assert TEST.sub("", tests).strip(" ,") == "", name
        assert TEST.search(tests), name


def test_a_test_that_is_gone_would_be_noticed() -> None:
    assert TEST.findall("`unit/a.py::test_b`, `c.py::test_d`") == [
        ("unit/a.py", "test_b"),
        ("c.py", "test_d"),
    ]
    assert names_in("unit/gone.py") == set()
    assert "test_a_test_that_is_gone_would_be_noticed" in names_in("unit/test_requirements.py")
