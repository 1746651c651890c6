"""The sessions whose events are heard."""

from __future__ import annotations

from adapter.engine.following import Following
from adapter.upstream.watch import Watch


def test_descendants_go_with_their_root() -> None:
    watch = Watch()
    following = Following(watch)
    assert following.open("ses_a")
    assert following.open("ses_z")
    following.add("ses_b", "ses_a")
    following.add("ses_y", "ses_z")
    assert [following.root_of(one) for one in ("ses_a", "ses_b", "ses_q", None)] == [
        "ses_a", "ses_a", None, None,
    ]  # fmt: skip
    following.close("ses_a")
    assert [one in watch for one in ("ses_a", "ses_b", "ses_z", "ses_y")] == [
        False, False, True, True,
    ]  # fmt: skip
    assert len(following) == len(watch) == 2


def test_a_descendant_is_let_go_of_by_its_root_alone() -> None:
    watch = Watch()
    following = Following(watch)
    following.open("ses_a")
    following.add("ses_b", "ses_a")
    following.discard("ses_b", "ses_z")
    following.discard("ses_a", "ses_a")
    assert ("ses_a" in watch, "ses_b" in watch) == (True, True)
    following.discard("ses_b", "ses_a")
    assert ("ses_b" in watch, len(following)) == (False, 1)


def test_one_that_is_open_itself_stays_a_root() -> None:
    watch = Watch()
    following = Following(watch)
    following.open("ses_a")
    following.open("ses_b")
    following.add("ses_b", "ses_a")
    following.close("ses_a")
    assert following.root_of("ses_b") == "ses_b"
    assert "ses_b" in watch


def test_at_the_limit_of_the_watch_nothing_more_is_followed() -> None:
    following = Following(Watch(limit=2))
    assert following.open("ses_a")
    following.add("ses_b", "ses_a")
    following.add("ses_c", "ses_a")
    assert (following.root_of("ses_c"), following.open("ses_d")) == (None, False)
