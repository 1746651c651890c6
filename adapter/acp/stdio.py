"""A Transport over two descriptors of any kind: pipe, socket, terminal, file, null device.

asyncio's own pipe transports refuse files and the null device, and both loops would switch
descriptors to non-blocking that other processes may share with us. So readiness is watched
through a selector of our own (the loop only ever sees the selector's descriptor), and at most
PIPE_BUF bytes are written to a descriptor that is ready, which does not block (pipe(7)).
"""

from __future__ import annotations

import asyncio
import os
import select
import selectors

CHUNK = 64 * 1024


class StdioTransport:
    """Reads `source` and writes `sink`; `pending` is what was read before."""

    def __init__(self, source: int, sink: int, pending: bytes = b"") -> None:
        self._source = source
        self._sink = sink
        self._pending = pending
        self._readable = _Readiness(source, selectors.EVENT_READ)
        self._writable = _Readiness(sink, selectors.EVENT_WRITE)
        self._unwritten = bytearray()
        self._refusal: OSError | None = None
        self._closed = False

    async def read(self) -> bytes:
        """The next bytes; b"" at EOF, on any error of the source, and once closed."""
        if self._pending and not self._closed:
            data, self._pending = self._pending, b""
            return data
        while True:
            # A source that is always ready must not keep the loop from everything else.
            await asyncio.sleep(0)
            await self._readable.wait()
            if self._closed:
                return b""
            try:
                return os.read(self._source, CHUNK)
            except BlockingIOError:
                continue
            except OSError:
                return b""

    def write(self, data: bytes) -> None:
        """Write as much as the descriptor takes now, and keep the rest for `drain`."""
        if not self._closed:
            self._unwritten += data
            self._push()

    async def drain(self) -> None:
        """Wait until everything is written; OSError (EPIPE: the client left) if it cannot be."""
        while self._unwritten and self._refusal is None:
            await self._writable.wait()
            self._push()
        if self._refusal is not None:
            raise self._refusal

    def close(self) -> None:
        """End both directions; the descriptors themselves stay open until the process exits."""
        self._closed = True
        self._unwritten.clear()
        self._readable.close()
        self._writable.close()

    def _push(self) -> None:
        try:
            while self._unwritten and self._writable.now():
                piece = bytes(self._unwritten[: select.PIPE_BUF])
                del self._unwritten[: os.write(self._sink, piece)]
        except BlockingIOError:
            pass
        except OSError as error:
            self._refusal = error


class _Readiness:
    """Whether one descriptor is ready for one kind of event."""

    def __init__(self, descriptor: int, event: int) -> None:
        self._selector = selectors.DefaultSelector()
        self._always = False
        self._waiter: asyncio.Future[None] | None = None
        self._closed = False
        try:
            self._selector.register(descriptor, event)
        except PermissionError:
            # epoll refuses what is always ready: regular files and the null device.
            self._always = True

    def now(self) -> bool:
        return self._always or self._closed or bool(self._selector.select(0))

    async def wait(self) -> None:
        """Until the descriptor is ready or `close` was called. One waiter at a time."""
        if self.now():
            return
        loop = asyncio.get_running_loop()
        self._waiter = loop.create_future()
        loop.add_reader(self._selector.fileno(), self._wake)
        try:
            await self._waiter
        finally:
            self._waiter = None
            if not self._closed:
                loop.remove_reader(self._selector.fileno())

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._waiter is not None:
            asyncio.get_running_loop().remove_reader(self._selector.fileno())
            self._wake()
        self._selector.close()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
