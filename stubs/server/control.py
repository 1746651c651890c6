"""POST /control: the faults over HTTP, for clients in another process. No credentials.

One JSON object with one or more of these keys:

    {"cut": {"after": N, "torn": false, "session": ID, "pattern": RE, "later": false}}
    {"silent": true}                         no bytes on feeds, old and new; false ends it
    {"rule": {"action": ..., "path": RE, "method": M, "times": K, "status": S, "seconds": T,
              "message": WORDS}}
    {"unauthorized": true}                   401 to everything
    {"clear": true}                          no faults of requests any more
    {"inject": EVENT}                        an event as it is
    {"oversize": {"size": BYTES, "session": ID}}
    {"restart": {"kind": "lost" | "terminated" | "finished", "down": SECONDS}}

The answer is {"subscribers", "events", "pid", "admissions", "log": [[method, path], ...]}.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import Any, Protocol

from aiohttp import web

from stubs.server.faults import ACTIONS, Faults, Rule
from stubs.server.feed import Feed
from stubs.server.host import Host, Seen
from stubs.server.replies import reply
from stubs.server.wire import Json


class Controlled(Protocol):
    """What the control route works on: the StubServer."""

    host: Host

    @property
    def faults(self) -> Faults:
        """Faults of requests."""

    @property
    def feed(self) -> Feed:
        """The event feed."""

    @property
    def log(self) -> deque[Seen]:
        """The requests seen."""

    @property
    def admissions(self) -> Counter[str]:
        """Admissions by message id."""

    def cut_feed(
        self,
        after: int = 0,
        *,
        torn: bool = False,
        session: str | None = None,
        pattern: str | None = None,
        later: bool = False,
    ) -> None:
        """Cut feed connections."""

    def inject(self, event: Json) -> None:
        """Send an event."""

    def inject_oversize(self, size: int, session: str = "ses_elsewhere") -> None:
        """Send a huge event."""

    def restart_soon(self, kind: Any, down: float = 0.0) -> None:
        """Restart once the request is answered."""


def add_control(app: web.Application, stub: Controlled) -> None:
    """Add the route to an application."""

    async def control(request: web.Request) -> web.Response:
        body = await request.json()
        if not isinstance(body, dict):
            return reply({"error": "an object is expected"}, 400)
        try:
            _apply(stub, body)
        except (KeyError, TypeError, ValueError) as error:
            return reply({"error": f"{type(error).__name__}: {error}"}, 400)
        return reply(
            {
                "subscribers": len(stub.feed.subscribers),
                "events": stub.feed.sent,
                "pid": stub.host.pid,
                "admissions": dict(stub.admissions),
                "log": [[seen.method, seen.path] for seen in stub.log],
            }
        )

    app.router.add_post("/control", control)


def _apply(stub: Controlled, body: Json) -> None:
    unknown = set(body) - _KEYS
    if unknown:
        raise ValueError(f"no such control: {', '.join(sorted(unknown))}")
    if "cut" in body:
        stub.cut_feed(**body["cut"])
    if "silent" in body:
        stub.feed.hush(bool(body["silent"]))
    if body.get("clear"):
        stub.faults.clear()
    if "rule" in body:
        rule = Rule(**body["rule"])
        if rule.action not in ACTIONS:
            raise ValueError(f"no such action: {rule.action}")
        stub.faults.add(rule)
    if "unauthorized" in body:
        stub.faults.unauthorized = bool(body["unauthorized"])
    if "inject" in body:
        stub.inject(body["inject"])
    if "oversize" in body:
        stub.inject_oversize(**body["oversize"])
    if "restart" in body:
        if body["restart"]["kind"] not in ("lost", "terminated", "finished"):
            raise ValueError(f"no such restart: {body['restart']['kind']}")
        stub.restart_soon(**body["restart"])


_KEYS = frozenset(
    ("cut", "silent", "clear", "rule", "unauthorized", "inject", "oversize", "restart")
)
