"""Who of those that say nothing makes room for others."""

from __future__ import annotations

import pytest

from adapter.daemon.arrivals import Arrivals
from adapter.daemon.hello import Credentials


@pytest.mark.parametrize(
    ("came", "first"),
    [
        ("1:1 2:1 3:1", 0),
        ("1:1 2:1 3:1 2:1", 1),
        ("1:1 2:1 2:1 3:1 3:1", 1),
        # One user has most, by processes that have one each.
        ("1:1 1:1 2:2 3:2 4:2", 2),
        ("1:1 2:2 3:2 3:2", 2),
    ],
)
def test_the_first_of_those_who_have_most(came: str, first: int) -> None:
    arrivals = Arrivals[int]()
    for number, who in enumerate(came.split()):
        pid, uid = map(int, who.split(":"))
        arrivals.add(number, Credentials(pid, uid))
    assert arrivals.crowding() == first


def test_whoever_has_left_does_not_count() -> None:
    arrivals = Arrivals[int]()
    for number, pid in enumerate((1, 2, 2)):
        arrivals.add(number, Credentials(pid, 0))
    arrivals.discard(1)
    arrivals.discard(1)
    assert (len(arrivals), arrivals.crowding()) == (2, 0)
