"""The last writes: whole requests, no waiting, no error."""

from __future__ import annotations

import time

import pytest

from adapter.upstream.credentials import Credential
from adapter.upstream.gasp import last_gasp
from stubs.waiting import until
from tests.unit.upstream.wire import WireServer, stay


async def arrived(server: WireServer, count: int) -> list[str]:
    async def all_of_them() -> bool:
        return len(server.requests) >= count

    await until("requests arrive", all_of_them)
    return sorted(request.decode().split("\r\n")[0] for request in server.requests)


async def test_requests_arrive_whole_and_no_answer_is_awaited() -> None:
    async with WireServer(stay) as server:
        before = time.monotonic()
        written = await last_gasp(
            server.url,
            Credential("pw"),
            interrupts=["ses_a", "ses_b"],
            withdrawals=[("ses_c", "msg_c")],
        )
        assert time.monotonic() - before < 0.5
        assert written == 3
        assert await arrived(server, 3) == [
            "DELETE /api/session/ses_c/inbox/msg_c HTTP/1.1",
            "POST /api/session/ses_a/interrupt HTTP/1.1",
            "POST /api/session/ses_b/interrupt HTTP/1.1",
        ]
        assert all(b"Authorization: Basic b3BlbmNvZGU6cHc=\r\n" in r for r in server.requests)


async def test_nobody_listening_is_no_error() -> None:
    async with WireServer(stay) as server:
        url = server.url
    assert await last_gasp(url, None, interrupts=["ses_a"]) == 0


async def test_nothing_to_say_connects_to_nobody() -> None:
    async with WireServer(stay) as server:
        assert await last_gasp(server.url, None) == 0
        assert server.connections == 0


async def test_a_bad_id_is_refused() -> None:
    with pytest.raises(ValueError, match="no valid sessionID"):
        await last_gasp("http://127.0.0.1:1", None, interrupts=["ses_a\r\nX: y"])
