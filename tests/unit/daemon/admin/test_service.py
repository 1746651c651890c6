"""The admin socket: who gets in, what it survives, and what it costs those who never ask."""

from __future__ import annotations

import asyncio
import os
import stat
import subprocess
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from adapter.daemon.admin.service import CONNECTIONS
from adapter.daemon.daemon import Terms
from stubs.parts import ROOT
from stubs.waiting import until
from tests.unit.daemon.admin.office import office, visit

GET = b"GET /healthz HTTP/1.1\r\nhost: admin\r\n\r\n"


async def test_the_socket_is_its_owners_alone_and_goes_with_the_daemon(tmp_path: Path) -> None:
    async with office(tmp_path) as place:
        assert stat.S_IMODE(place.path.stat().st_mode) == 0o600
        assert stat.S_IMODE(place.path.parent.stat().st_mode) == 0o700
        said = await place.get("/healthz")
        assert (said.status, said.media) == (200, "application/json; charset=utf-8")
    assert not place.path.exists()


async def test_another_user_is_sent_away_before_a_byte_of_it_is_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    terms = Terms(allowed_uids=frozenset({os.getuid() + 1}))
    async with office(tmp_path, terms=terms) as place:
        reader, writer = await visit(place.path)
        async with asyncio.timeout(5):
            assert (await reader.read()).startswith(b"HTTP/1.1 403 ")
        writer.close()
    assert "refused at the admin socket" in caplog.text


@pytest.mark.parametrize("path", ["/", "/debug", "/healthz/", "/metrics/../debug/state"])
async def test_there_is_nothing_else(tmp_path: Path, path: str) -> None:
    async with office(tmp_path) as place:
        reader, writer = await visit(place.path)
        writer.write(f"GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n".encode())
        assert (await reader.read()).startswith(b"HTTP/1.1 404 ")
        writer.close()


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
async def test_nothing_can_be_changed(tmp_path: Path, method: str) -> None:
    async with office(tmp_path) as place:
        reader, writer = await visit(place.path)
        head = f"{method} /debug/state HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n"
        writer.write(f"{head}connection: close\r\n\r\n".encode())
        answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 405 ")
        assert b"\r\nallow: GET, HEAD\r\n" in answer
        writer.close()


async def test_connections_that_hang_keep_nobody_out(tmp_path: Path) -> None:
    async with office(tmp_path) as place, AsyncExitStack() as stack:
        hanging = []
        for _ in range(CONNECTIONS + 1):
            reader, writer = await visit(place.path)
            stack.callback(writer.close)
            hanging.append(reader)
            writer.write(GET)
            await reader.readuntil(b"\r\n\r\n")
        assert (await place.get("/healthz")).status == 200
        async with asyncio.timeout(5):
            await hanging[0].read()
        assert hanging[0].at_eof()
        assert not hanging[-1].at_eof()


async def test_a_socket_that_somebody_removes_is_made_again(tmp_path: Path) -> None:
    async def quick(seconds: float) -> None:
        await asyncio.sleep(seconds / 100)

    async with office(tmp_path, sleep=quick) as place:
        place.path.unlink()

        async def answers() -> bool:
            return place.path.exists() and (await place.get("/healthz")).status == 200

        await until("the socket is back", answers)
        assert stat.S_IMODE(place.path.stat().st_mode) == 0o600


async def test_it_ends_at_once_with_a_connection_open(tmp_path: Path) -> None:
    async with office(tmp_path) as place:
        reader, writer = await visit(place.path)
        writer.write(GET)
        await reader.readuntil(b"\r\n\r\n")
        loop = asyncio.get_running_loop()
        begun = loop.time()
    assert loop.time() - begun < 5
    writer.close()


@pytest.mark.parametrize(
    ("module", "absent"),
    [
        ("adapter.run", ("aiohttp", "prometheus_client")),
        ("adapter.commands.serve", ("aiohttp",)),
    ],
)
def test_who_needs_no_metrics_or_no_http_server_does_not_load_them(
    module: str, absent: tuple[str, ...]
) -> None:
    """8 MB and 0.2 s; the agent in its own process pays for neither."""
    code = f"import sys, {module}; sys.exit(any(name in sys.modules for name in {absent!r}))"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
