"""What a client is told that comes to a daemon that ends."""

from __future__ import annotations

import pytest

from adapter.daemon.ending import awaited, sentence


@pytest.mark.parametrize(
    ("path", "turns", "seconds", "told"),
    [
        (
            "/run/a.sock",
            0,
            20,
            "The daemon at /run/a.sock is ending; start this command again in a few seconds.",
        ),
        (
            "/run/a.sock",
            2,
            17.2,
            "The daemon at /run/a.sock is ending: it waits for 2 turns, 18 s at most; start this "
            "command again after that.",
        ),
        ("", 0, 0, "The daemon is ending; start this command again in a few seconds."),
    ],
)
def test_the_sentence(path: str, turns: int, seconds: float, told: str) -> None:
    assert sentence(path, turns, seconds) == told


@pytest.mark.parametrize(
    ("turns", "seconds", "told"),
    [(1, 20, "1 turn, 20 s at most"), (3, 0, "3 turns, 1 s at most")],
)
def test_what_it_waits_for(turns: int, seconds: float, told: str) -> None:
    assert awaited(turns, seconds) == told
