"""S0-24, S0-25: every workaround is explained, and named where the code works around."""

from __future__ import annotations

import dataclasses
import re
from typing import Final

import pytest

from contract.workarounds import WORKAROUNDS, Workaround
from tests.support.structure import modules

NAMED: Final = re.compile(r'workaround "([^"\n]+)"', re.I)


def named_in_code() -> set[str]:
    """The entries that the product's sources name."""
    files = modules("adapter", "contract")
    del files["contract.workarounds"]
    return {name for path in files.values() for name in NAMED.findall(path.read_text("utf-8"))}


@pytest.mark.parametrize("entry", WORKAROUNDS, ids=[entry.name for entry in WORKAROUNDS])
def test_the_five_fields_are_filled(entry: Workaround) -> None:
    fields = dataclasses.asdict(entry)
    assert set(fields) == {
        "name", "rationale", "source", "limits", "reconciliation", "removal",
    }  # fmt: skip
    assert {key: value for key, value in fields.items() if len(value) < 10} == {}


def test_the_code_names_every_entry_and_no_other() -> None:
    assert named_in_code() == {entry.name for entry in WORKAROUNDS}


def test_a_name_stands_for_one_entry() -> None:
    assert len({entry.name for entry in WORKAROUNDS}) == len(WORKAROUNDS)


def test_a_name_in_a_comment_is_found() -> None:
    assert NAMED.findall('# Workaround "one idea": why. workaround "b".') == ["one idea", "b"]
