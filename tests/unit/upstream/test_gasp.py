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
            removals=[("/srv/a b&c", "acp_0123456789_x")],
        )
        assert time.monotonic() - before < 0.5
        assert written == 4
        assert await arrived(server, 4) == [
            "DELETE /api/experimental/mcp/acp_0123456789_x"
            "?location%5Bdirectory%5D=%2Fsrv%2Fa+b%26c HTTP/1.1",
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


async def test_no_mcp_server_but_one_of_ours_is_removed() -> None:
    with pytest.raises(ValueError, match="no valid server"):
        await last_gasp("http://127.0.0.1:1", None, removals=[("/srv", "the_operators")])
