"""Whole numbers that others write."""

from __future__ import annotations

import pytest

from contract.numbers import DIGITS, whole


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("007", 7), ("9" * DIGITS, 10**DIGITS - 1)])
def test_digits_are_a_number(text: str, number: int) -> None:
    assert whole(text) == number


@pytest.mark.parametrize(
    "text", ["", " 1", "-1", "+1", "1_0", "\u0663", "\u00b2", "x", "9" * 20, "9" * 5000]
)
def test_anything_else_is_none(text: str) -> None:
    assert whole(text) is None
