"""Whether the server has the routes that are needed, asked once for all who want to know."""

from __future__ import annotations

import asyncio

from adapter.upstream.client import Server
from contract.errors import AcpError, Code
from contract.routes import missing


class RouteCheck:
    """Of one server, whichever process it is: `forget` once it is another."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._newest: asyncio.Task[None] | None = None
        # Also one that was forgotten: somebody may wait for it.
        self._running: set[asyncio.Task[None]] = set()

    async def passed(self) -> None:
        """Return if nothing is missing; asked again only after a failure.

        Raises AcpError -32054 that names what is missing, and UpstreamError.
        """
        if self._newest is None or _failed(self._newest):
            self._newest = asyncio.create_task(self._check(), name="contract")
            self._running.add(self._newest)
            self._newest.add_done_callback(self._ended)
        await asyncio.shield(self._newest)

    def forget(self) -> None:
        """Another process may answer now: ask it."""
        self._newest = None

    async def aclose(self) -> None:
        """Cancel what runs, and wait for its end."""
        running = frozenset(self._running)
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)

    async def _check(self) -> None:
        lacking = missing(await self._server.routes())
        if lacking:
            names = ", ".join(route.name for route in lacking[:3])
            more = f" and {len(lacking) - 3} more" if len(lacking) > 3 else ""
            raise AcpError(
                Code.ROUTE_MISSING,
                f"The OpenCode server lacks routes that the adapter needs: {names}{more}. "
                "OpenCode 2.0.15 has them.",
                {"missing": [route.name for route in lacking]},
            )

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        # Told to those who wait; there may be none left.
        _failed(task)


def _failed(task: asyncio.Task[None]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)
