"""The notes for operators: what they copy is shipped, and every exit code is there."""

from __future__ import annotations

import re
from typing import Final

from contract import attach
from stubs.parts import ROOT

NOTES: Final = (ROOT / "docs" / "operations.md").read_text("utf-8")


def test_every_file_that_is_copied_is_shipped() -> None:
    named = set(re.findall(r"\bdeploy/[\w./*-]+", NOTES))
    assert len(named) > 5
    for pattern in named:
        assert list(ROOT.glob(pattern.rstrip("./")))


def test_every_exit_code_is_explained() -> None:
    rows = re.findall(r"^\| (\d+) \|", NOTES, re.MULTILINE)
    known = (
        attach.OK,
        attach.FAULT,
        attach.USAGE,
        attach.AUTH,
        attach.CONTRACT,
        attach.TEMPORARY,
        attach.INTERRUPTED,
    )
    assert tuple(map(int, rows)) == known
