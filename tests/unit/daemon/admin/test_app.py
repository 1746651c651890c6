"""The answers of the admin socket as a whole (O-21): there with a server that fails, discreet."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Final

import pytest

from adapter.daemon.admin.shapes import Health
from adapter.upstream.credentials import Credential
from contract.version import VERSION
from stubs.waiting import until
from tests.unit.daemon.admin.office import Office, office

ROUTES: Final = ("/healthz", "/readyz", "/metrics", "/debug/state")
CHUNK: Final = 64 * 1024
BODY: Final = 256 * CHUNK
"""More than the buffers of a connection hold."""
CANARY: Final = "canary-7f3a9"


async def everything(place: Office) -> str:
    said = await asyncio.gather(*(place.get(route) for route in ROUTES))
    return "\n".join(one.text for one in said)


@pytest.mark.parametrize("refused", [False, True])
async def test_the_password_is_in_no_answer_and_in_no_line_of_the_log(
    tmp_path: Path, refused: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with office(tmp_path, credential=Credential(CANARY)) as place:
        assert await place.home.engine.feed.ready(10)
        caller = await place.home.client()
        session = await caller.new(tmp_path)
        place.home.stub.faults.unauthorized = refused
        await caller.answer(await caller.prompt(session, "@@text 1@@"))
        said = await everything(place)
    header = Credential(CANARY).header().removeprefix("Basic ")
    assert not [one for one in (CANARY, header) if one in said + caplog.text]


async def test_health_is_told_with_a_server_that_does_not_answer(tmp_path: Path) -> None:
    async with office(tmp_path) as place:
        assert await place.home.engine.feed.ready(10)
        await place.home.stub.__aexit__(None, None, None)

        async def down() -> bool:
            return not place.home.engine.feed.is_connected

        await until("the server is gone", down)
        said = await place.get("/healthz")
        health = Health.model_validate_json(said.text)
        assert (said.status, health.ok, health.version) == (200, True, VERSION)
        assert health.seconds >= 0
        state = await place.state()
        assert (state.feed.connected, state.feed.silent_seconds) == (False, None)
        assert await place.value("sse_connected") == 0


async def test_a_body_is_not_read(tmp_path: Path) -> None:
    async with office(tmp_path) as place:
        reader, writer = await asyncio.open_unix_connection(str(place.path))
        writer.write(b"GET /healthz HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000000000\r\n\r\n")
        answer = await reader.readuntil(b"\r\n\r\n")
        sent = 0
        with pytest.raises(ConnectionError):
            while sent < BODY:
                writer.write(b"x" * CHUNK)
                await writer.drain()
                sent += CHUNK
        writer.close()
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert (await place.get("/healthz")).status == 200


async def test_head_is_answered_as_get_is(tmp_path: Path) -> None:
    async with office(tmp_path) as place:
        reader, writer = await asyncio.open_unix_connection(str(place.path))
        writer.write(b"HEAD /healthz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
        answer = await reader.read()
        writer.close()
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert answer.endswith(b"\r\n\r\n")
