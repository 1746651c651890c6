"""What the admin socket answers: GET alone, and nothing that changes anything.

Of aiohttp the low-level server alone: its applications would take another megabyte.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Final

from aiohttp.web_request import BaseRequest
from aiohttp.web_response import Response
from aiohttp.web_server import Server
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
METHODS: Final = ("GET", "HEAD")
# Seconds that a connection is kept between two requests, and that the last ones have at the end.
IDLE: Final = 15.0
CLOSING: Final = 1.0

Answer = Callable[[BaseRequest], Awaitable[Response]]


class Site:
    """HTTP at work; the connections are handed to it. A loop must run."""

    def __init__(self, daemon: Daemon, metrics: Metrics, look: Look, since: float) -> None:
        answers = Answers(daemon, metrics, look, since)
        # Nobody asks for a body: aiohttp would read and drop one for 10 s, whatever it brings.
        self._server = Server(answers.to, access_log=None, keepalive_timeout=IDLE, lingering_time=0)

    def protocol(self) -> asyncio.Protocol:
        """One for each connection, until `aclose`."""
        return self._server()

    async def aclose(self) -> None:
        self._server.pre_shutdown()
        await self._server.shutdown(CLOSING)


class Answers:
    """The handlers. Whoever gets an answer knows that the event loop turns."""

    def __init__(self, daemon: Daemon, metrics: Metrics, look: Look, since: float) -> None:
        self._daemon = daemon
        self._metrics = metrics
        self._look = look
        self._since = since
        self._paths: Mapping[str, Answer] = {
            HEALTH: self.health,
            READINESS: self.readiness,
            METRICS: self.metrics,
            STATE: self.state,
        }

    async def to(self, request: BaseRequest) -> Response:
        """The answer to any request; aiohttp leaves out the body where HEAD is asked."""
        answer = self._paths.get(request.path)
        if answer is None:
            return Response(status=HTTPStatus.NOT_FOUND)
        if request.method not in METHODS:
            allowed = {"allow": ", ".join(METHODS)}
            return Response(status=HTTPStatus.METHOD_NOT_ALLOWED, headers=allowed)
        return await answer(request)

    async def health(self, _: BaseRequest) -> Response:
        """The process is there and its loop turns, whatever the server does."""
        seconds = round(self._daemon.engine.clock() - self._since, 3)
        return _json(Health(ok=True, version=VERSION, seconds=seconds))

    async def readiness(self, _: BaseRequest) -> Response:
        """200 if a prompt would be served, else 503; the body says what is missing."""
        readiness = await self._look.readiness()
        status = HTTPStatus.OK if readiness.ready else HTTPStatus.SERVICE_UNAVAILABLE
        return _json(readiness, status)

    async def metrics(self, request: BaseRequest) -> Response:
        """In the format that the request accepts, as Prometheus asks for it."""
        encode, media = choose_encoder(request.headers.get("accept", ""))
        return Response(body=encode(self._metrics.registry), headers={"content-type": media})

    async def state(self, _: BaseRequest) -> Response:
        """Every client and session as they stand."""
        return _json(state(self._daemon, self._since))


def _json(shape: Shape, status: HTTPStatus = HTTPStatus.OK) -> Response:
    text = shape.model_dump_json() + "\n"
    return Response(text=text, status=status, content_type="application/json")
