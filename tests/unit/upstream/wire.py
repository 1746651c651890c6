"""A small HTTP server on loopback whose every byte is written by the test."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self
from uuid import uuid4


class Wire:
    """One connection whose request was read; `request` is its head."""

    def __init__(self, request: bytes, writer: asyncio.StreamWriter) -> None:
        self.request = request
        self._writer = writer

    async def head(self, status: int = 200, media: str = "text/event-stream") -> None:
        lines = [f"HTTP/1.1 {status} X", f"content-type: {media}", "transfer-encoding: chunked"]
        await self.write(("\r\n".join(lines) + "\r\n\r\n").encode())

    async def chunk(self, data: bytes) -> None:
        await self.write(b"%x\r\n%s\r\n" % (len(data), data))

    async def event(self, kind: str, **data: object) -> None:
        body = {"id": f"evt_{uuid4().hex}", "created": 1, "type": kind, "data": data}
        await self.chunk(b"data: " + json.dumps(body).encode() + b"\n\n")

    async def connected(self) -> None:
        await self.head()
        await self.event("server.connected")

    async def end(self) -> None:
        """A clean end: the last chunk."""
        await self.write(b"0\r\n\r\n")

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()


Script = Callable[[Wire], Awaitable[None]]


class WireServer:
    """Runs the scripts in order, one a connection, the last one for all that follow.

    When a script returns its connection is closed.
    """

    def __init__(self, *scripts: Script, tls: ssl.SSLContext | None = None) -> None:
        self._scripts = scripts
        self._tls = tls
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.connections = 0
        self.requests: list[bytes] = []

    @property
    def url(self) -> str:
        assert self._server is not None
        scheme = "https" if self._tls else "http"
        return f"{scheme}://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=self._tls)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        script = self._scripts[min(self.connections, len(self._scripts) - 1)]
        self.connections += 1
        try:
            request = await reader.readuntil(b"\r\n\r\n")
            self.requests.append(request)
            await script(Wire(request, writer))
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


async def stay(wire: Wire) -> None:
    """Leaves the connection as it is until the other side goes."""
    await asyncio.Event().wait()
