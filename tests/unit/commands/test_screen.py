"""Words and columns for a terminal."""

from __future__ import annotations

import pytest

from adapter.commands.screen import columns, duration, plain


@pytest.mark.parametrize(
    "hidden",
    ["\x1b", "\n", "\r", "\x07", "\x00", "\x7f", "\x9b", "\u202e", "\u200b", "\u2028", "\ud800"],
)
def test_what_a_terminal_obeys_is_not_passed_on(hidden: str) -> None:
    assert plain(f"a{hidden}[2Jb") == "a\ufffd[2Jb"


def test_what_can_be_seen_stays() -> None:
    assert plain("/home/jürgen/プロジェクト x") == "/home/jürgen/プロジェクト x"


def test_columns_are_as_wide_as_they_must_be_with_numbers_at_the_right() -> None:
    rows = [("NO", "NAME", "TURNS"), (1, "acpx", 10), (12, "a\x1bb", 2)]
    assert columns(rows) == ["NO  NAME  TURNS", " 1  acpx     10", "12  a\ufffdb       2"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"), (59.9, "59 s"), (60, "1 min 0 s"), (3599, "59 min 59 s"),
        (3600, "1 h 0 min"), (90_061, "1 d 1 h"),
    ],
)  # fmt: skip
def test_a_duration_has_its_two_largest_units(seconds: float, text: str) -> None:
    assert duration(seconds) == text
