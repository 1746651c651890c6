"""Statuses and broken connections as errors, and what is tried again."""

from __future__ import annotations

import base64
import ssl
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import respx

from adapter.upstream.credentials import Credential
from adapter.upstream.errors import (
    Ambiguous,
    Refused,
    SessionMissing,
    ShapeMismatch,
    TooLarge,
    Unauthorised,
    Unreachable,
    UpstreamError,
)
from adapter.upstream.transport import Retry, ServerSettings, Transport
from contract import routes
from tests.unit.upstream.wire import Wire, WireServer

URL = "http://127.0.0.1:4096"
INFO = f"{URL}/api/info"
SESSION = f"{URL}/api/session/ses_a"
OK = httpx.Response(200, json={"data": {}})


class Pauses:
    """A sleep that takes no time and remembers how long it was to take."""

    def __init__(self) -> None:
        self.taken: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.taken.append(seconds)


@pytest.fixture
def pauses() -> Pauses:
    return Pauses()


@pytest.fixture
async def transport(pauses: Pauses) -> AsyncIterator[Transport]:
    transport = Transport(URL, Credential("pw"), ServerSettings(max_answer=1000), sleep=pauses)
    yield transport
    await transport.aclose()


def tagged(status: int, tag: str, message: str = "why") -> httpx.Response:
    return httpx.Response(status, json={"_tag": tag, "message": message})


@respx.mock
async def test_the_password_goes_as_basic_authentication(transport: Transport) -> None:
    route = respx.get(INFO).mock(return_value=OK)
    await transport.call(routes.INFO)
    expected = "Basic " + base64.b64encode(b"opencode:pw").decode()
    assert route.calls.last.request.headers["authorization"] == expected


@respx.mock
@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (httpx.Response(401), Unauthorised),
        (httpx.Response(403), Unauthorised),
        (tagged(404, "SessionNotFoundError"), SessionMissing),
        (tagged(404, "MessageNotFoundError"), Refused),
        (httpx.Response(404), Refused),
        (tagged(400, "InvalidRequestError"), Refused),
        (tagged(409, "ConflictError"), Refused),
        (httpx.Response(415, text="Unsupported content-type"), Refused),
        (httpx.Response(302, headers={"location": "http://elsewhere.test/"}), ShapeMismatch),
        (httpx.Response(500), Ambiguous),
        (httpx.Response(503, html="<html>"), Ambiguous),
    ],
)
async def test_statuses(
    transport: Transport, answer: httpx.Response, error: type[UpstreamError]
) -> None:
    respx.get(SESSION).mock(return_value=answer)
    with pytest.raises(UpstreamError) as caught:
        await transport.call(routes.SESSION_GET, {"sessionID": "ses_a"})
    assert type(caught.value) is error


@respx.mock
async def test_a_refusal_says_what_the_server_said(transport: Transport) -> None:
    respx.get(SESSION).mock(return_value=tagged(400, "InvalidRequestError", "Expected x"))
    with pytest.raises(Refused) as caught:
        await transport.call(routes.SESSION_GET, {"sessionID": "ses_a"})
    refused = caught.value
    assert (refused.status, refused.tag, refused.message) == (
        400,
        "InvalidRequestError",
        "Expected x",
    )


@respx.mock
@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (httpx.ConnectError("x"), Unreachable),
        (httpx.ConnectTimeout("x"), Unreachable),
        (httpx.PoolTimeout("x"), Unreachable),
        (httpx.ReadError("x"), Ambiguous),
        (httpx.ReadTimeout("x"), Ambiguous),
        (httpx.WriteError("x"), Ambiguous),
        (httpx.WriteTimeout("x"), Ambiguous),
        (httpx.RemoteProtocolError("x"), Ambiguous),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else type(value).__name__,
)
async def test_broken_connections(
    transport: Transport, failure: httpx.TransportError, error: type[UpstreamError]
) -> None:
    respx.get(INFO).mock(side_effect=failure)
    with pytest.raises(UpstreamError) as caught:
        await transport.call(routes.INFO)
    assert type(caught.value) is error


@respx.mock
async def test_a_read_is_tried_again_with_growing_pauses(
    transport: Transport, pauses: Pauses
) -> None:
    failures: list[httpx.Response | Exception] = [
        httpx.ConnectError("x"),
        httpx.Response(500),
        httpx.ReadError("x"),
        OK,
    ]
    route = respx.get(INFO).mock(side_effect=failures)
    assert (await transport.call(routes.INFO)).status == 200
    assert route.call_count == 4
    assert pauses.taken[0] < 0.11
    assert pauses.taken[0] < pauses.taken[2]


@respx.mock
async def test_a_read_is_given_up_after_the_attempts(transport: Transport) -> None:
    route = respx.get(INFO).respond(503)
    with pytest.raises(Ambiguous) as caught:
        await transport.call(routes.INFO)
    assert (route.call_count, caught.value.status) == (4, 503)


@respx.mock
async def test_an_answer_is_not_tried_again(transport: Transport) -> None:
    route = respx.get(INFO).respond(400)
    with pytest.raises(Refused):
        await transport.call(routes.INFO)
    assert route.call_count == 1


@respx.mock
async def test_one_attempt_that_was_sent_makes_the_call_ambiguous(transport: Transport) -> None:
    refused = httpx.ConnectError("x")
    respx.get(INFO).mock(side_effect=[httpx.ReadError("x"), refused, refused, refused])
    with pytest.raises(Ambiguous):
        await transport.call(routes.INFO)


@respx.mock
async def test_what_must_happen_once_is_tried_again_only_unsent(transport: Transport) -> None:
    route = respx.get(INFO).mock(side_effect=[httpx.ConnectError("x"), httpx.ReadError("x"), OK])
    with pytest.raises(Ambiguous):
        await transport.call(routes.INFO, retry=Retry.UNSENT)
    assert route.call_count == 2


@respx.mock
async def test_never_means_one_attempt(transport: Transport) -> None:
    route = respx.get(INFO).mock(side_effect=httpx.ConnectError("x"))
    with pytest.raises(Unreachable):
        await transport.call(routes.INFO, retry=Retry.NEVER)
    assert route.call_count == 1


@respx.mock
async def test_a_deadline_ends_all_attempts() -> None:
    route = respx.get(INFO).respond(503)
    transport = Transport(URL, None, ServerSettings(attempts=1000))
    with pytest.raises(Ambiguous):
        await transport.call(routes.INFO, deadline=0.2)
    await transport.aclose()
    assert 1 <= route.call_count < 10


@respx.mock
async def test_an_accepted_status_needs_an_error_of_the_api(transport: Transport) -> None:
    respx.get(INFO).mock(side_effect=[tagged(404, "MessageNotFoundError"), httpx.Response(404)])
    assert (await transport.call(routes.INFO, accept=(404,))).status == 404
    with pytest.raises(Refused):
        await transport.call(routes.INFO, accept=(404,))


@respx.mock
async def test_an_answer_is_bounded(transport: Transport) -> None:
    respx.get(INFO).respond(content=b"x" * 1001)
    with pytest.raises(TooLarge):
        await transport.call(routes.INFO)


@respx.mock
@pytest.mark.parametrize(
    "answer",
    [httpx.Response(200, html="<html>sEcret"), httpx.Response(200, content=b'{"sEcret"')],
)
async def test_no_json_is_a_mismatch_that_hides_the_body(
    transport: Transport, answer: httpx.Response
) -> None:
    respx.get(INFO).mock(return_value=answer)
    with pytest.raises(ShapeMismatch) as caught:
        (await transport.call(routes.INFO)).json()
    assert "sEcret" not in str(caught.value)
    assert caught.value.__cause__ is None


async def test_a_bad_id_is_refused_before_anything_is_sent(transport: Transport) -> None:
    with pytest.raises(ValueError, match="no valid sessionID"):
        await transport.call(routes.SESSION_GET, {"sessionID": "../x"})


class Told:
    """What a transport tells of its exchanges, by a clock that moves with each look."""

    def __init__(self) -> None:
        self.exchanges: list[tuple[str, int, float]] = []
        self._now = 0.0

    def clock(self) -> float:
        self._now += 1.0
        return self._now

    def requested(self, route: str, status: int, seconds: float) -> None:
        self.exchanges.append((route, status, seconds))


@respx.mock
async def test_each_exchange_is_told_of_once_with_its_route_and_status(pauses: Pauses) -> None:
    told = Told()
    respx.get(INFO).mock(
        side_effect=[httpx.ConnectError("refused"), httpx.Response(503), httpx.ReadTimeout(""), OK]
    )
    respx.get(f"{URL}/api/event").mock(return_value=httpx.Response(401))
    transport = Transport(
        URL, None, ServerSettings(), sleep=pauses, clock=told.clock, requested=told.requested
    )
    await transport.call(routes.INFO)
    async with transport.stream(silence=1.0) as response:
        assert response.status_code == 401
    await transport.aclose()
    name = routes.INFO.name
    assert [(route, status) for route, status, _ in told.exchanges] == [
        (name, 0),
        (name, 503),
        (name, 0),
        (name, 200),
        (routes.EVENT.name, 401),
    ]
    assert all(seconds == 1.0 for _, _, seconds in told.exchanges)


async def moved(wire: Wire, url: str) -> None:
    await wire.write(
        f"HTTP/1.1 307 X\r\nlocation: {url}/api/info\r\ncontent-length: 0\r\n\r\n".encode()
    )


async def test_the_password_follows_no_redirect_and_goes_through_no_proxy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with WireServer(Wire.connected) as other:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, other.url)
        async with WireServer(lambda wire: moved(wire, other.url)) as server:
            transport = Transport(server.url, Credential("pw"), ServerSettings())
            with pytest.raises(UpstreamError):
                await transport.call(routes.INFO)
            async with transport.stream(silence=5) as response:
                assert response.status_code == 307
            await transport.aclose()
        assert (server.connections > 0, other.connections) == (True, 0)


@respx.mock
async def test_no_cookie_is_kept_or_sent(transport: Transport) -> None:
    cookies = [("set-cookie", f"c{number}=1; Path=/") for number in range(3)]
    route = respx.get(INFO).respond(200, headers=cookies, json={"data": {}})
    for _ in range(2):
        await transport.call(routes.INFO)
    assert ["cookie" in call.request.headers for call in route.calls] == [False, False]


@respx.mock
@pytest.mark.parametrize("after", [Credential("the-new-one"), None])
async def test_a_request_is_sent_and_cleaned_by_the_password_that_it_began_with(
    after: Credential | None,
) -> None:
    before = Credential("the-old-one")
    transport = Transport(URL, before, ServerSettings())

    def reloaded(request: httpx.Request) -> httpx.Response:
        transport.authenticate(after)
        said = f"{request.headers.get('authorization')}, the-old-one"
        return tagged(400, "ProxyError", said)

    route = respx.get(INFO).mock(side_effect=reloaded)
    with pytest.raises(Refused) as caught:
        await transport.call(routes.INFO)
    assert "the-old-one" not in str(caught.value)
    assert before.header().split()[1] not in str(caught.value)
    route.mock(side_effect=None, return_value=OK)
    await transport.call(routes.INFO)
    expected = None if after is None else after.header()
    assert route.calls.last.request.headers.get("authorization") == expected
    await transport.aclose()


@pytest.mark.parametrize(("url", "loads"), [("http://127.0.0.1:1", False), ("https://a", True)])
async def test_certificates_are_loaded_for_a_server_with_tls_alone(
    url: str, loads: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They cost an agent in its own process 30 ms of its start."""
    loaded: list[object] = []
    load = ssl.create_default_context

    def counting(*given: Any, **named: Any) -> ssl.SSLContext:
        loaded.append(named)
        return load(*given, **named)

    monkeypatch.setattr(ssl, "create_default_context", counting)
    await Transport(url, None, ServerSettings()).aclose()
    assert bool(loaded) is loads
