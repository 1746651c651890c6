"""Counted nouns are of one or of many, in the log too."""

from __future__ import annotations

import re
from pathlib import Path

import adapter
from contract.words import counted

ALWAYS_MANY = re.compile(r"%d (?!is\b|was\b|has\b)[a-z]+s\b")


def test_one_and_many() -> None:
    assert [counted(number, "turn") for number in (1, 0, 2)] == ["1 turn", "0 turns", "2 turns"]


def test_no_line_of_the_log_counts_one_as_many() -> None:
    assert ALWAYS_MANY.search("%d turns") and not ALWAYS_MANY.search("client %d has left")
    files = Path(adapter.__file__).parent.rglob("*.py")
    texts = {path.name: ALWAYS_MANY.findall(path.read_text(encoding="utf-8")) for path in files}
    assert {name: found for name, found in texts.items() if found} == {}
