"""What the admin socket answers: GET alone, and nothing that changes anything."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Final

from aiohttp import web
from prometheus_client.exposition import choose_encoder

from adapter.daemon.admin.readiness import Look
from adapter.daemon.admin.shapes import Health, Shape
from adapter.daemon.daemon import Daemon
from adapter.daemon.metrics import Metrics
from adapter.daemon.state import state
from contract.version import VERSION

HEALTH: Final = "/healthz"
READINESS: Final = "/readyz"
METRICS: Final = "/metrics"
STATE: Final = "/debug/state"
# Seconds that a connection is kept between two requests, and that the last ones have at the end.
IDLE: Final = 15.0
CLOSING: Final = 1.0


class Site:
    """The application at work; the connections are handed to it."""

    def __init__(self, daemon: Daemon, metrics: Metrics, look: Look, since: float) -> None:
        answers = Answers(daemon, metrics, look, since)
        self._runner = web.AppRunner(
            answers.application(),
            access_log=None,
            handle_signals=False,
            keepalive_timeout=IDLE,
            shutdown_timeout=CLOSING,
        )

    async def start(self) -> None:
        await self._runner.setup()

    def protocol(self) -> asyncio.Protocol:
        """One for each connection, between `start` and `aclose`."""
        if self._runner.server is None:
            raise RuntimeError("the application does not run")
        return self._runner.server()

    async def aclose(self) -> None:
        await self._runner.cleanup()


class Answers:
    """The handlers. Whoever gets an answer knows that the event loop turns."""

    def __init__(self, daemon: Daemon, metrics: Metrics, look: Look, since: float) -> None:
        self._daemon = daemon
        self._metrics = metrics
        self._look = look
        self._since = since

    def application(self) -> web.Application:
        """The application with its four routes."""
        app = web.Application(client_max_size=0)
        app.router.add_get(HEALTH, self.health)
        app.router.add_get(READINESS, self.readiness)
        app.router.add_get(METRICS, self.metrics)
        app.router.add_get(STATE, self.state)
        return app

    async def health(self, _: web.Request) -> web.Response:
        """The process is there and its loop turns, whatever the server does."""
        seconds = round(self._daemon.engine.clock() - self._since, 3)
        return _json(Health(ok=True, version=VERSION, seconds=seconds))

    async def readiness(self, _: web.Request) -> web.Response:
        """200 if a prompt would be served, else 503; the body says what is missing."""
        readiness = await self._look.readiness()
        status = HTTPStatus.OK if readiness.ready else HTTPStatus.SERVICE_UNAVAILABLE
        return _json(readiness, status)

    async def metrics(self, request: web.Request) -> web.Response:
        """In the format that the request accepts, as Prometheus asks for it."""
        encode, media = choose_encoder(request.headers.get("accept", ""))
        return web.Response(body=encode(self._metrics.registry), headers={"content-type": media})

    async def state(self, _: web.Request) -> web.Response:
        """Every client and session as they stand."""
        return _json(state(self._daemon, self._since))


def _json(shape: Shape, status: HTTPStatus = HTTPStatus.OK) -> web.Response:
    text = shape.model_dump_json() + "\n"
    return web.Response(text=text, status=status, content_type="application/json")
