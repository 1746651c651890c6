"""Events that come twice are known, and what is remembered of them is bounded."""

from __future__ import annotations

import pytest

from adapter.upstream.recent import Recent


def test_an_id_that_went_by_is_known_again() -> None:
    recent = Recent()
    assert [recent.again(one) for one in ("evt_1", "evt_2", "evt_1", "evt_2", "evt_3")] == [
        False,
        False,
        True,
        True,
        False,
    ]


@pytest.mark.parametrize("none", [None, 5, ["evt_1"], {}])
def test_what_is_no_id_is_always_new(none: object) -> None:
    recent = Recent()
    assert not recent.again(none)
    assert not recent.again(none)


def test_the_oldest_goes() -> None:
    recent = Recent(kept=2)
    for event in ("evt_1", "evt_2", "evt_3"):
        assert not recent.again(event)
    assert recent.again("evt_2")
    assert not recent.again("evt_1")
