"""Patches of the server as old and new text."""

from __future__ import annotations

import pytest

from adapter.acp.diffs import DiffText, hunks
from contract.events import PermissionAsked
from stubs.server.workspace import change
from tests.support.recordings import recorded

HEAD = "Index: a\n" + "=" * 67 + "\n--- a\n+++ a\n"


def texts(patch: str, *, added: bool = False) -> list[DiffText]:
    return list(hunks(patch, added=added))


def test_the_patch_of_a_real_edit() -> None:
    asked = next(e for e in recorded("q5_edit") if isinstance(e, PermissionAsked))
    (file,) = (asked.ask.metadata or {})["files"]
    assert texts(file["patch"]) == [DiffText("hello\n", "hullo\n")]


@pytest.mark.parametrize("patch", ["", HEAD, "no patch at all", "+only\n-lines\n"])
def test_a_patch_without_hunks_shows_no_change(patch: str) -> None:
    assert texts(patch) == []


def test_each_hunk_is_a_pair_with_its_context() -> None:
    patch = f"{HEAD}@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n@@ -10,2 +10,3 @@ def f():\n x\n+y\n z\n"
    assert texts(patch) == [DiffText("a\nb\nc\n", "a\nB\nc\n"), DiffText("x\nz\n", "x\ny\nz\n")]


def test_counts_of_one_may_be_left_out() -> None:
    assert texts(f"{HEAD}@@ -1 +1 @@\n-a\n+b\n") == [DiffText("a\n", "b\n")]


def test_lines_that_look_like_file_heads_are_lines() -> None:
    patch = f"{HEAD}@@ -1,2 +1,2 @@\n--- old\n-@@ -1 +1 @@\n+++ new\n+@@ x @@\n"
    assert texts(patch) == [DiffText("-- old\n@@ -1 +1 @@\n", "++ new\n@@ x @@\n")]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a\nb\n", "a\nc\n"),
        ("a\nb", "a\nc"),
        ("a\nb", "a\nb\n"),
        ("a\nb\n", "a\nb"),
        ("a\r\nb\r\n", "a\r\nc\r\n"),
        ("a\nb\r", "a\nc\r"),
        ("a\u2028b\x0cc\n", "a\u2028b\x85c\n"),
        ("é😀\n", "é\n"),
        ("a\n\n\nb\n", "a\n\nb\n"),
        ("gone\n", ""),
        ("", "came\n"),
    ],
)
def test_a_small_file_comes_back_whole(old: str, new: str) -> None:
    patch = unified(old, new)
    assert texts(patch) == [DiffText(old, new)]


def unified(old: str, new: str) -> str:
    """All of both texts as one hunk, the way the server writes it: lines end at LF alone."""
    body = ""
    for sign, text in (("-", old), ("+", new)):
        lines = [line + "\n" for line in text.split("\n")]
        lines = lines[:-1] if lines[-1] == "\n" else [*lines[:-1], lines[-1]]
        body += "".join(sign + line for line in lines)
        if text and not text.endswith("\n"):
            body += "\\ No newline at end of file\n"
    return f"{HEAD}@@ -1,1 +1,1 @@\n{body}"


def test_no_newline_after_a_context_line_counts_for_both_sides() -> None:
    patch = f"{HEAD}@@ -1,2 +1,2 @@\n-a\n+b\n end\n\\ No newline at end of file\n"
    assert texts(patch) == [DiffText("a\nend", "b\nend")]


def test_a_context_line_whose_blank_was_trimmed_is_an_empty_line() -> None:
    assert texts(f"{HEAD}@@ -1,2 +1,2 @@\n-a\n+b\n\n") == [DiffText("a\n\n", "b\n\n")]


def test_a_new_file_has_no_old_text() -> None:
    patch = change("new.txt", None, "one\ntwo\n")["patch"]
    assert texts(patch, added=True) == [DiffText(None, "one\ntwo\n")]
    # A change that only adds lines is no new file.
    assert texts(patch) == [DiffText("", "one\ntwo\n")]


def test_a_file_that_was_emptied_has_an_empty_new_text() -> None:
    assert texts(change("old.txt", "one\n", "")["patch"]) == [DiffText("one\n", "")]


def test_a_torn_patch_gives_what_is_there() -> None:
    assert texts(f"{HEAD}@@ -1,9 +1,9 @@\n a\n-b") == [DiffText("a\nb", "a\n")]
    assert texts(f"{HEAD}@@ -1,9 +1,9 @@\n\\ No newline") == [DiffText("", "")]
