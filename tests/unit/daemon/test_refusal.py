"""Why a client is not served, from the daemon to the relay."""

from __future__ import annotations

import socket

import pytest

from adapter.daemon.refusal import Refusal
from adapter.relay import Refused, Wishes, introduce
from contract.attach import ANSWER_BYTES


@pytest.mark.parametrize(
    ("sentence", "told"),
    [
        ("No room.", "No room."),
        ("Two\nlines\tand\0more ü.", "Two lines and\0more ü."),
        ("long " * ANSWER_BYTES, None),
    ],
)
def test_a_relay_hears_it_even_if_it_has_not_said_who_it_is(
    sentence: str, told: str | None
) -> None:
    near, far = socket.socketpair()
    with near, far:
        far.sendall(Refusal(75, sentence).line())
        far.close()
        with pytest.raises(Refused) as caught:
            introduce(near, Wishes("auto", "/run/s", {}))
    assert caught.value.code == 75
    assert str(caught.value) == (told or sentence[: len(str(caught.value))])
