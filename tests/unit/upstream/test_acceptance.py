"""Whether the password is taken is told once each way, whichever request the answer was to."""

from __future__ import annotations

import httpx
import pytest
import respx

from adapter.upstream.acceptance import Acceptance
from adapter.upstream.credentials import Credential
from adapter.upstream.errors import Unauthorised
from adapter.upstream.transport import ServerSettings, Transport
from contract import routes

URL = "http://127.0.0.1:4096"


def heard(*statuses: int) -> list[bool]:
    told: list[bool] = []
    acceptance = Acceptance(told.append)
    for status in statuses:
        acceptance.answered(status)
    return told


@pytest.mark.parametrize(
    ("statuses", "told"),
    [
        ((200, 204), []),
        ((401, 401, 403), [True]),
        ((401, 200, 200), [True, False]),
        ((401, 0, 302, 404, 409, 500), [True]),
        ((0, 404, 500), []),
        ((401, 200, 403, 204), [True, False, True, False]),
    ],
)
def test_each_change_is_told_once(statuses: tuple[int, ...], told: list[bool]) -> None:
    assert heard(*statuses) == told


def test_another_password_that_is_refused_too_is_news() -> None:
    told: list[bool] = []
    acceptance = Acceptance(told.append)
    acceptance.renew()
    acceptance.answered(200)
    assert told == []
    acceptance.answered(401)
    acceptance.renew()
    assert acceptance.is_refused
    acceptance.answered(401)
    acceptance.answered(401)
    assert told == [True, True]


@respx.mock
async def test_the_feed_and_any_request_say_so_by_the_password_of_now() -> None:
    told: list[bool] = []
    transport = Transport(
        URL, Credential("a"), ServerSettings(), acceptance=Acceptance(told.append)
    )
    info = respx.get(f"{URL}/api/info")
    info.mock(return_value=httpx.Response(401))
    with pytest.raises(Unauthorised):
        await transport.call(routes.INFO)
    respx.get(f"{URL}/api/event").mock(return_value=httpx.Response(200))
    async with transport.stream(silence=1.0):
        assert told == [True, False]

    def reloaded(_: httpx.Request) -> httpx.Response:
        transport.authenticate(Credential("b"))
        return httpx.Response(401)

    info.mock(side_effect=reloaded)
    with pytest.raises(Unauthorised):
        await transport.call(routes.INFO)
    # The answer was to the password of before.
    assert told == [True, False]
    await transport.aclose()
