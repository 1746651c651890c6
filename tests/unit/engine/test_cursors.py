"""A cursor of ours comes back as the walk that it stands for, and nothing else does."""

from __future__ import annotations

import base64
import json
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.engine.cursors import CursorError, Leg, Place, Walk, read, write
from contract.limits import CURSOR_CHARS

FILTERS: Final = ("/srv/a", False)
WALK: Final = Walk((Leg("abc"), Leg(None, begun=True), None), Place(1796069912964, "ses_a"))

LEGS = st.lists(
    st.one_of(st.none(), st.builds(Leg, st.one_of(st.none(), st.text(max_size=50)), st.booleans())),
    min_size=1,
    max_size=3,
).filter(any)
PLACES = st.one_of(st.none(), st.builds(Place, st.floats(0, 1e14), st.text(max_size=50)))


def altered(**parts: Any) -> str:
    """A cursor of ours with other contents."""
    text = write(WALK, FILTERS)
    written = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    raw = json.dumps(written | parts).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


@given(LEGS, PLACES)
def test_a_cursor_comes_back_as_it_went(legs: list[Leg | None], last: Place | None) -> None:
    walk = Walk(tuple(legs), last)
    text = write(walk, FILTERS)
    assert read(text, FILTERS, len(legs)) == walk
    assert len(text) <= CURSOR_CHARS


@pytest.mark.parametrize("filters", [("/srv/a", True), ("/srv/b", False), (None, False), ()])
def test_a_cursor_belongs_to_its_list(filters: tuple[object, ...]) -> None:
    with pytest.raises(CursorError, match="other filters"):
        read(write(WALK, FILTERS), filters, 3)


@pytest.mark.parametrize("legs", [1, 2, 4])
def test_a_cursor_has_a_leg_for_each_list(legs: int) -> None:
    with pytest.raises(CursorError):
        read(write(WALK, FILTERS), FILTERS, legs)


@pytest.mark.parametrize(
    "text",
    [
        "", "x", "%%%", "é", "bnVsbA", "W10", "e30", write(WALK, FILTERS)[:-3],
        altered(version=2), altered(legs=[None] * 3), altered(legs="abc"), altered(last=[1, "x"]),
        altered(last={"updated": "x", "id": "y"}),
        altered(last={"updated": float("nan"), "id": ""}),
        altered(legs=[{"cursor": 7, "begun": False}] * 3), altered(more=1), altered(filters=None),
    ],
)  # fmt: skip
def test_what_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(CursorError):
        read(text, FILTERS, 3)


@given(st.text(max_size=200))
def test_no_text_does_worse_than_be_refused(text: str) -> None:
    with pytest.raises(CursorError):
        read(text, FILTERS, 3)


def test_a_cursor_that_no_client_could_send_back_is_not_made() -> None:
    with pytest.raises(CursorError, match="too long"):
        write(Walk((Leg("x" * CURSOR_CHARS),)), FILTERS)
