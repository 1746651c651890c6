"""Bounds of texts and values, in bytes of JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.acp.bounded import CLOSED, ITEMS, Room, cut, written
from adapter.acp.framing import encode

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=40,
)


def size(value: object) -> int:
    """Bytes of a value on the wire."""
    return len(encode({"v": value})) - len(encode({"v": ""})) + 2


def test_a_cut_says_how_much_is_missing() -> None:
    assert cut("abcdef", 6) == "abcdef"
    assert cut("abcdef", 2) == "ab… [4 characters more]"


@pytest.mark.parametrize(
    "text", ["plain", 'quo"te\\', "\x00\x1f\n\t", "é€😀", "\u2028\x7f", "lone \ud800"]
)
def test_bytes_are_counted_as_they_are_written(text: str) -> None:
    assert written(text) == size(text) - 2


@pytest.mark.parametrize("text", ["x" * 5000, "\x00" * 5000, "é" * 5000, "😀" * 5000, '"' * 5000])
def test_a_text_takes_no_more_bytes_than_there_is_room_for(text: str) -> None:
    kept = Room(1000).text(text, 10_000)
    head, mark, _ = kept.partition("…")
    assert mark
    assert 1000 - 12 <= written(head) <= 1000
    assert text.startswith(head)


def test_a_full_room_keeps_nothing_but_marks() -> None:
    room = Room(10)
    assert room.text("abc", 3) == "abc"
    assert room.is_full
    assert room.text("abc", 3) == "… [3 characters more]"
    assert room.value({"a": [1]}, 10) == CLOSED


def test_members_share_the_characters() -> None:
    kept = Room(10_000).value({"a": "x" * 900, "b": "y" * 900}, 400)
    assert kept == {"a": cut("x" * 900, 200), "b": cut("y" * 900, 200)}


def test_long_lists_and_deep_nests_are_closed() -> None:
    assert Room(10_000).value(list(range(1000)), 10) == list(range(ITEMS))
    deep: object = "end"
    for _ in range(50):
        deep = [deep]
    assert json.dumps(Room(10_000).value(deep, 10), ensure_ascii=False) == f'[[[[[["{CLOSED}"]]]]]]'


def test_keys_that_are_no_strings_become_strings() -> None:
    assert Room(1000).value({1: "a", None: "b"}, 100) == {"1": "a", "None": "b"}


@pytest.mark.parametrize(
    "leaf", ["\x00" * 100, 10**4000, 1.5, None, "x"], ids=["text", "number", "float", "null", "x"]
)
def test_a_wide_tree_stays_near_its_room(leaf: object) -> None:
    tree: object = leaf
    for _ in range(3):
        tree = {f"key{number}": tree for number in range(ITEMS)}
    assert size(Room(128 * 1024).value(tree, 16 * 1024)) < 160 * 1024


@settings(max_examples=100, deadline=None)
@given(JSON)
def test_any_json_is_bounded(value: object) -> None:
    assert size(Room(512).value(value, 512)) < 512 + 64 * 1024


@given(st.lists(st.none() | st.booleans() | st.integers(0, 99) | st.text(max_size=8), max_size=9))
def test_what_is_small_passes_as_it_is(value: list[object]) -> None:
    assert Room(8192).value(value, 512) == value
