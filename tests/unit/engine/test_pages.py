"""Pages of one and of two lists of the server, walked to the end while sessions change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.engine.cursors import Leg, Place, Walk
from adapter.engine.pages import Merged, merge, place
from adapter.upstream.errors import ShapeMismatch
from adapter.upstream.sessions import SessionPage
from contract.reads import SessionRow

LIMIT: Final = 3


def row(updated: float, name: str = "a") -> SessionRow:
    return SessionRow.model_validate(
        {"id": f"ses_{name}{updated:g}", "time": {"created": 1, "updated": updated}}
    )


class Lists:
    """The server's lists, newest first; a cursor is the time of the last row that was given."""

    def __init__(self, *times: list[int]) -> None:
        self.lists = [
            sorted((row(time, "abc"[n]) for time in each), key=place_of, reverse=True)
            for n, each in enumerate(times)
        ]

    def page(self, number: int, leg: Leg | None, limit: int) -> SessionPage | None:
        if leg is None:
            return None
        rows = self.lists[number]
        if leg.cursor is not None:
            rows = [one for one in rows if place(one).updated < float(leg.cursor)]
        found = tuple(rows[:limit])
        full = len(found) == limit
        return SessionPage(found, str(place(found[-1]).updated) if full else None)

    def touch(self, number: int, time: int) -> None:
        """A session changes: it goes to the top of its list under a new time."""
        rows = self.lists[number]
        if rows:
            rows.pop()
            rows.insert(0, row(time, "abc"[number]))

    def walk(
        self, limit: int = LIMIT, between: Callable[[int], None] = lambda _: None
    ) -> list[Merged]:
        walk = Walk(tuple(Leg() for _ in self.lists))
        pages: list[Merged] = []
        while any(walk.legs):
            found = [self.page(n, leg, limit) for n, leg in enumerate(walk.legs)]
            pages.append(merge(walk, found, limit))
            walk = pages[-1].walk
            between(len(pages))
            assert len(pages) < 200
        return pages


def place_of(one: SessionRow) -> tuple[float, str]:
    return place(one).updated, place(one).id


TIMES = st.lists(st.integers(1, 10_000), unique=True, max_size=20)


@given(TIMES, TIMES, st.integers(1, 5))
def test_two_lists_are_walked_as_one(one: list[int], two: list[int], limit: int) -> None:
    lists = Lists(one, two)
    pages = lists.walk(limit)
    walked = [place_of(found) for page in pages for found in page.rows]
    assert walked == sorted((place_of(r) for each in lists.lists for r in each), reverse=True)
    assert all(len(page.rows) <= limit for page in pages)


@given(TIMES)
def test_one_list_is_walked_in_the_pages_of_the_server(times: list[int]) -> None:
    pages = Lists(times).walk()
    assert [len(page.rows) for page in pages[:-1]] == [LIMIT] * (len(pages) - 1)
    assert sum(len(page.rows) for page in pages) == len(times)


@given(TIMES, TIMES, st.lists(st.integers(0, 1), max_size=5))
def test_what_changes_on_the_way_is_given_once_at_most(
    one: list[int], two: list[int], touched: list[int]
) -> None:
    """It stands above the walk then, as it does in a list of the server itself."""
    lists = Lists(one, two)

    def change(number: int) -> None:
        if number <= len(touched):
            lists.touch(touched[number - 1], 20_000 + number)

    walked = [place_of(found) for page in lists.walk(between=change) for found in page.rows]
    assert walked == sorted(set(walked), reverse=True)
    assert all(time <= 10_000 for time, _ in walked)


def test_rows_that_are_left_over_make_a_next_page_sure() -> None:
    (first, *_) = Lists([1, 2], [3, 4]).walk()
    assert (len(first.rows), first.sure) == (3, True)
    (only,) = Lists([1, 2], []).walk()
    assert (len(only.rows), only.sure, any(only.walk.legs)) == (2, False, False)


def test_a_page_that_leads_back_is_a_failure_and_no_list() -> None:
    walk = Walk((Leg("c"),), Place(5, "ses_a5"))
    with pytest.raises(ShapeMismatch):
        merge(walk, [SessionPage((row(9),), None)], LIMIT)


def test_a_session_without_a_change_stands_by_its_creation() -> None:
    fresh = SessionRow.model_validate({"id": "ses_a", "time": {"created": 7}})
    assert place(fresh) == Place(7, "ses_a")
