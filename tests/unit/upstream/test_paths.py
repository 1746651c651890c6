"""No id changes the path of a request: it fits the grammar and stands there whole, or none is sent.

Ids come from clients and from the server; either may say anything.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl

import httpx
import pytest
import respx
from hypothesis import given
from hypothesis import strategies as st

from adapter.upstream.client import Server
from adapter.upstream.decode import clean
from adapter.upstream.gasp import last_gasp
from adapter.upstream.transport import ServerSettings, Transport
from contract.routes import USED, Route

URL: Final = "http://127.0.0.1:4096"
# Written anew, so that a grammar that was loosened is found.
ALLOWED: Final[Mapping[str, str]] = {
    "sessionID": r"ses_[A-Za-z0-9_-]+",
    "messageID": r"msg_[A-Za-z0-9_-]+",
    "inboxID": r"msg_[A-Za-z0-9_-]+",
    "requestID": r"per_[A-Za-z0-9_-]+",
    "formID": r"frm_[A-Za-z0-9_-]+",
    "server": r"acp_[0-9a-z_]+",
}
TAILS: Final = st.text(max_size=8) | st.sampled_from(
    (
        "a-B_9",
        ".",
        "..",
        "/..",
        "/../x",
        "a/b",
        "a%2fb",
        "a%00",
        "a?x=1",
        "a#x",
        "a\n",
        "a b",
        "a\\",
    )
)
HEADS: Final = st.sampled_from(("ses_", "msg_", "per_", "frm_", "acp_0123456789", "/", "../", ""))
TEXTS: Final = st.builds(str.__add__, HEADS, TAILS)
WITH_IDS: Final = [route for route in USED if "{" in route.path]


def names_of(route: Route) -> list[str]:
    return re.findall(r"\{(\w+)\}", route.path)


def filled(route: Route, ids: Mapping[str, str]) -> str:
    """The path with the ids as they are: nothing of a good one needs an escape."""
    return re.sub(r"\{(\w+)\}", lambda found: ids[found.group(1)], route.path)


async def sent(route: Route, ids: Mapping[str, str]) -> list[httpx.Request] | None:
    """What was sent for these ids; None if they were refused."""
    transport = Transport(URL, None, ServerSettings(attempts=1))
    with respx.mock(assert_all_called=False) as router:
        router.route().mock(httpx.Response(200, json={}))
        try:
            await transport.call(route, ids)
        except ValueError:
            assert not router.calls
            return None
        finally:
            await transport.aclose()
        return [call.request for call in router.calls]


@pytest.mark.parametrize("route", WITH_IDS, ids=lambda route: route.name)
@given(data=st.data())
def test_an_id_is_sent_whole_or_not_at_all(route: Route, data: st.DataObject) -> None:
    good = {name: f"{ALLOWED[name].partition('[')[0]}0123456789" for name in names_of(route)}
    ids = {name: data.draw(TEXTS | st.just(value), label=name) for name, value in good.items()}
    fits = all(re.fullmatch(ALLOWED[name], value, re.ASCII) for name, value in ids.items())
    requests = asyncio.run(sent(route, ids))
    if requests is None:
        assert ids != good
        return
    (request,) = requests
    assert fits
    assert request.method == route.method
    assert request.url.raw_path == filled(route, ids).encode("ascii")
    assert request.url.host == "127.0.0.1"


@given(st.text(max_size=30) | TEXTS)
def test_a_directory_stays_in_its_parameter(directory: str) -> None:
    async def asked() -> httpx.Request:
        with respx.mock() as router:
            router.route().mock(httpx.Response(200, json={}))
            async with Server(URL, None, ServerSettings(attempts=1)) as server:
                assert await server.has_directory(directory)
            requests: list[httpx.Request] = [call.request for call in router.calls]
            return requests[0]

    request = asyncio.run(asked())
    path, _, query = request.url.raw_path.decode("ascii").partition("?")
    assert path == "/api/location"
    pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=True)
    assert pairs == [("location[directory]", clean(directory))]


@given(TEXTS)
def test_the_parent_of_children_is_an_id(session: str) -> None:
    async def asked() -> list[httpx.URL]:
        with respx.mock(assert_all_called=False) as router:
            router.route().mock(httpx.Response(200, json={"data": [], "cursor": {}}))
            async with Server(URL, None, ServerSettings(attempts=1)) as server:
                try:
                    await server.children(session)
                except ValueError:
                    assert not router.calls
            return [call.request.url for call in router.calls]

    for url in asyncio.run(asked()):
        assert re.fullmatch(ALLOWED["sessionID"], session, re.ASCII)
        assert (url.path, url.params["parentID"]) == ("/api/session", session)


@given(TEXTS, TEXTS)
def test_the_last_requests_are_held_to_the_same(session: str, message: str) -> None:
    """They are written without the client; nobody listens here."""
    good = [
        re.fullmatch(ALLOWED[name], value, re.ASCII) is not None
        for name, value in (("sessionID", session), ("inboxID", message))
    ]
    for interrupts, withdrawals, fits in (
        ([session], [], good[0]),
        ([], [(session, message)], all(good)),
    ):
        try:
            asyncio.run(
                last_gasp(
                    "http://127.0.0.1:1", None, interrupts=interrupts, withdrawals=withdrawals
                )
            )
        except ValueError:
            assert not fits
        else:
            assert fits
