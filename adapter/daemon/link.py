"""A `Transport` over one connected socket: nothing is held for a client that says nothing."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Final

CHUNK: Final = 64 * 1024


class Link:
    """The socket is non-blocking and belongs to the link. One reader and one drainer at a time."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._descriptor = sock.fileno()
        self._pending = b""
        self._unwritten = bytearray()
        self._refusal: OSError | None = None
        self._readable: asyncio.Future[None] | None = None
        self._writable: asyncio.Future[None] | None = None
        self._ended = False
        self._closed = False

    def unread(self, data: bytes) -> None:
        """Put back what was read too far; it is what `read` returns next."""
        self._pending = data + self._pending

    def end(self) -> None:
        """Read nothing more, as if the client had closed its side; writing goes on."""
        self._ended = True
        self._pending = b""
        if self._readable is not None:
            _wake(self._readable)

    async def read(self) -> bytes:
        """The next bytes; b"" at EOF, on any error of the socket, and once ended or closed."""
        # A client that always sends must not keep the loop from everybody else.
        await asyncio.sleep(0)
        if self._pending:
            data, self._pending = self._pending, b""
            return data
        while not self._ended:
            try:
                return self._socket.recv(CHUNK)
            except (BlockingIOError, InterruptedError):
                await self._until_readable()
            except OSError:
                break
        return b""

    def write(self, data: bytes) -> None:
        """Write as much as the socket takes now, and keep the rest for `drain`."""
        if not self._closed:
            self._unwritten += data
            self._push()

    async def drain(self) -> None:
        """Wait until everything is written; OSError if the client does not take it any more."""
        while self._unwritten and self._refusal is None:
            await self._until_writable()
            self._push()
        if self._refusal is not None:
            raise self._refusal

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._ended = True
        self._pending = b""
        self._unwritten.clear()
        loop = asyncio.get_running_loop()
        # A descriptor that is closed may be another's in a moment, so nobody may wait for it.
        if self._readable is not None:
            loop.remove_reader(self._descriptor)
            _wake(self._readable)
        if self._writable is not None:
            loop.remove_writer(self._descriptor)
            _wake(self._writable)
        self._socket.close()

    def _push(self) -> None:
        if self._refusal is not None or self._closed:
            return
        try:
            while self._unwritten:
                with memoryview(self._unwritten) as view, view[:CHUNK] as piece:
                    sent = self._socket.send(piece)
                del self._unwritten[:sent]
        except (BlockingIOError, InterruptedError):
            pass
        except OSError as error:
            self._refusal = error
            self._unwritten.clear()

    async def _until_readable(self) -> None:
        loop = asyncio.get_running_loop()
        self._readable = loop.create_future()
        loop.add_reader(self._descriptor, _wake, self._readable)
        try:
            await self._readable
        finally:
            self._readable = None
            self._forget(loop.remove_reader)

    async def _until_writable(self) -> None:
        loop = asyncio.get_running_loop()
        self._writable = loop.create_future()
        loop.add_writer(self._descriptor, _wake, self._writable)
        try:
            await self._writable
        finally:
            self._writable = None
            self._forget(loop.remove_writer)

    def _forget(self, remove: Callable[[int], object]) -> None:
        if not self._closed:
            remove(self._descriptor)


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
