"""What a client may set: what the daemon has set, or nothing."""

from __future__ import annotations

import pytest

from adapter.daemon.agreement import agreement
from adapter.daemon.hello import Hello
from adapter.start import Start

START = Start(server="http://127.0.0.1:4096")


def difference(file: str | None = "/etc/oc/password", **settings: str) -> str | None:
    return agreement(START, file)(Hello(cwd="/etc/oc", settings=settings))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"server": "http://127.0.0.1:4096"},
        {"server": "http://127.0.0.1:4096/"},
        {"password_file": "/etc/oc/password"},
        {"password_file": "password"},
    ],
)
def test_the_same_is_no_difference(settings: dict[str, str]) -> None:
    assert difference(**settings) is None


@pytest.mark.parametrize(
    "server", ["", "http://127.0.0.1:4097", "https://127.0.0.1:4096", "http://u:secret@[::1]:1"]
)
def test_another_server_is_told_without_what_the_client_gave(server: str) -> None:
    sentence = difference(server=server)
    assert sentence is not None
    assert "http://127.0.0.1:4096" in sentence
    assert "secret" not in sentence


@pytest.mark.parametrize("known", [None, "/etc/oc/other"])
def test_another_password_file_is_told(known: str | None) -> None:
    assert difference(known, password_file="/etc/oc/password") is not None
