"""Which addresses a server may have: the password goes nowhere else."""

from __future__ import annotations

import httpx
import pytest

from adapter.upstream.address import UrlError, server_url

LOOPBACK = {
    "http://127.0.0.1:4096": "http://127.0.0.1:4096",
    "http://127.8.9.1/": "http://127.8.9.1",
    "http://localhost:1": "http://localhost:1",
    "http://[::1]:4096": "http://[::1]:4096",
    "http://[0:0:0:0:0:0:0:1]": "http://[0:0:0:0:0:0:0:1]",
    "http://[::ffff:127.0.0.1]:1": "http://[::ffff:127.0.0.1]:1",
    "HTTPS://LOCALHOST:4096": "https://localhost:4096",
}
ELSEWHERE = (
    "10.0.0.1",
    "0.0.0.0",
    "[::]",
    "[::ffff:10.0.0.1]",
    "[::ffff:0.0.0.0]",
    "[fe80::1]",
    "example.org",
    "localhost.example.org",
    "xn--bcher-kva.example",
    # Names that lead to loopback, today and here.
    "localhost.",
    "ip6-localhost",
    "localhost.localdomain",
    "127.0.0.1.nip.io",
    "0x7f000001",
)
NOWHERE = (
    "127.1",
    "2130706433",
    "0x7f.1",
    "127.0.0.256",
    "127.0.0.1.",
    "[::1%25lo]",
    "[::1",
    "a..b",
    "a b",
    "-a",
    "xn--",
    "b\u00fccher.example",
    "a" * 64,
    "a." * 127 + "a",
    "",
)


@pytest.mark.parametrize("text", LOOPBACK)
@pytest.mark.parametrize("allow_remote", [False, True])
def test_loopback_is_always_allowed(text: str, allow_remote: bool) -> None:
    url = server_url(text, allow_remote=allow_remote)
    assert url == LOOPBACK[text]
    assert httpx.URL(url).host == httpx.URL(text).host


@pytest.mark.parametrize("host", ELSEWHERE)
def test_another_machine_wants_both_https_and_the_setting(host: str) -> None:
    for text, allow_remote in (
        (f"http://{host}:1", False),
        (f"https://{host}:1", False),
        (f"http://{host}:1", True),
    ):
        with pytest.raises(UrlError, match="loopback"):
            server_url(text, allow_remote=allow_remote)
    assert server_url(f"https://{host}:443", allow_remote=True) == f"https://{host}:443"


@pytest.mark.parametrize("host", ELSEWHERE)
def test_what_is_allowed_can_be_asked(host: str) -> None:
    """Or a request would end with an error of the library that makes it."""
    assert httpx.URL(server_url(f"https://{host}", allow_remote=True)).host


@pytest.mark.parametrize("host", NOWHERE)
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_what_is_no_machine_at_all_is_refused(scheme: str, host: str) -> None:
    with pytest.raises(UrlError):
        server_url(f"{scheme}://{host}", allow_remote=True)


@pytest.mark.parametrize(
    "text",
    ["", "127.0.0.1:4096", "ftp://127.0.0.1", "http://", "file:///etc/passwd",
     "http://127.0.0.1:99999", "http://127.0.0.1:x", "http://127.0.0.1/api", "http://127.0.0.1?x=1",
     "http://127.0.0.1#x"],
)  # fmt: skip
def test_what_is_no_address_of_a_server_is_refused(text: str) -> None:
    for allow_remote in (False, True):
        with pytest.raises(UrlError):
            server_url(text, allow_remote=allow_remote)


@pytest.mark.parametrize(
    "text", ["http://opencode:pw@127.0.0.1", "http://@127.0.0.1", "https://pw@example.org"]
)
def test_a_password_in_the_address_is_refused_and_not_told(text: str) -> None:
    for allow_remote in (False, True):
        with pytest.raises(UrlError) as caught:
            server_url(text, allow_remote=allow_remote)
        assert "pw" not in str(caught.value)
