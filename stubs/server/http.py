"""The HTTP surface: the table of routes, credentials, faults, and the feed's connection."""

from __future__ import annotations

import asyncio
import base64
import hmac
from collections.abc import Awaitable, Callable
from typing import Final

from aiohttp import web

from stubs.server import routes_ask as ask
from stubs.server import routes_call as calls
from stubs.server import routes_catalog as catalog
from stubs.server import routes_import as imports
from stubs.server import routes_mcp as mcp
from stubs.server import routes_prompt as prompts
from stubs.server import routes_session as sessions
from stubs.server.faults import Rule
from stubs.server.feed import HEARTBEAT, End, Subscriber
from stubs.server.host import Host, Seen
from stubs.server.replies import HOST, RefusalError, empty, host_of, reply
from stubs.server.wire import Json

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

MAX_BODY: Final = 256 * 1024 * 1024
HALF_A_LINE: Final = b'data: {"id":"evt_torn","type":"session.te'
PAGE: Final = "<!doctype html><html><head><title>OpenCode</title></head><body></body></html>"


async def feed(request: web.Request) -> web.StreamResponse:
    """GET /api/event: all events of all sessions, a heartbeat at once and every 15 s."""
    host = host_of(request)
    subscriber = host.feed.subscribe()
    response = web.StreamResponse(
        headers={
            "cache-control": "no-cache, no-transform",
            "x-accel-buffering": "no",
            "content-type": "text/event-stream",
        }
    )
    response.enable_chunked_encoding()
    try:
        if not subscriber.silent:
            await response.prepare(request)
        await _pump(host, subscriber, response)
        if subscriber.end is End.TORN:
            if response.prepared:
                await response.write(HALF_A_LINE)
            _tear(request)
    except ConnectionError:
        pass  # the client has left
    finally:
        host.feed.leave(subscriber)
    return response


async def _pump(host: Host, subscriber: Subscriber, response: web.StreamResponse) -> None:
    """Write what comes until the connection has ended and its queue is empty."""
    loop = asyncio.get_running_loop()
    beat = loop.time() + host.settings.heartbeat
    while subscriber.lines or subscriber.end is None:
        try:
            async with asyncio.timeout_at(beat):
                await subscriber.more.wait()
        except TimeoutError:
            beat = loop.time() + host.settings.heartbeat
            if not subscriber.silent:
                await response.write(HEARTBEAT)
        waiting = subscriber.take()
        if waiting:
            await response.write(waiting)


def _tear(request: web.Request) -> None:
    """Close in the middle of the body: no last chunk."""
    if request.transport is not None:
        request.transport.close()


ROUTES: Final[tuple[tuple[str, str, Handler, str], ...]] = (
    ("GET", "/api/info", catalog.info, "server.info"),
    ("GET", "/api/location", catalog.location, "location.get"),
    ("GET", "/api/agent", catalog.agents, "agent.list"),
    ("GET", "/api/agent/{agentID}", catalog.agent, "agent.get"),
    ("GET", "/api/model", catalog.models, "model.list"),
    ("GET", "/api/model/default", catalog.default_model, "model.default"),
    ("GET", "/api/plugin", catalog.plugins, "plugin.list"),
    ("GET", "/api/provider", catalog.providers, "provider.list"),
    ("GET", "/api/command", catalog.commands, "command.list"),
    ("GET", "/api/skill", catalog.skills, "skill.list"),
    ("GET", "/api/mcp", mcp.listing, "mcp.list"),
    ("POST", "/api/location/reload", mcp.reload, "location.reload"),
    ("PUT", "/api/experimental/mcp/{server}", mcp.put, "experimental.mcp.put"),
    ("DELETE", "/api/experimental/mcp/{server}", mcp.remove, "experimental.mcp.remove"),
    ("GET", "/api/reference", catalog.nothing, "reference.list"),
    ("GET", "/api/project", catalog.projects, "project.list"),
    ("GET", "/api/event", feed, "event.subscribe"),
    ("GET", "/api/session", sessions.listing, "session.list"),
    ("POST", "/api/session", sessions.create, "session.create"),
    ("GET", "/api/session/active", sessions.active, "session.active"),
    ("GET", "/api/session/{sessionID}", sessions.get, "session.get"),
    ("PATCH", "/api/session/{sessionID}", sessions.update, "session.update"),
    ("DELETE", "/api/session/{sessionID}", sessions.remove, "session.remove"),
    ("POST", "/api/session/{sessionID}/fork", sessions.fork, "session.fork"),
    ("POST", "/api/session/{sessionID}/agent", sessions.select_agent, "session.switchAgent"),
    ("POST", "/api/session/{sessionID}/model", sessions.select_model, "session.switchModel"),
    ("GET", "/api/session/{sessionID}/message", sessions.messages, "session.message.list"),
    (
        "GET",
        "/api/session/{sessionID}/message/{messageID}",
        sessions.message,
        "session.message.get",
    ),
    ("GET", "/api/session/{sessionID}/context", sessions.context, "session.context"),
    (
        "POST",
        "/api/experimental/session/{sessionID}/wait",
        sessions.wait,
        "experimental.session.wait",
    ),
    (
        "POST",
        "/api/experimental/session/import",
        imports.imported,
        "experimental.session.import",
    ),
    ("GET", "/api/experimental/session/{sessionID}/log", catalog.log, "session.log"),
    ("POST", "/api/session/{sessionID}/prompt", prompts.prompt, "session.prompt"),
    ("POST", "/api/session/{sessionID}/background", prompts.background, "session.background"),
    ("POST", "/api/session/{sessionID}/command", calls.command, "session.command"),
    ("POST", "/api/session/{sessionID}/compact", calls.compact, "session.compact"),
    ("POST", "/api/session/{sessionID}/interrupt", prompts.interrupt, "session.interrupt"),
    ("GET", "/api/session/{sessionID}/inbox", prompts.inbox, "session.inbox.list"),
    (
        "DELETE",
        "/api/session/{sessionID}/inbox/{inboxID}",
        prompts.cancel,
        "session.inbox.cancel",
    ),
    (
        "PATCH",
        "/api/session/{sessionID}/inbox/{inboxID}",
        prompts.redeliver,
        "session.inbox.update",
    ),
    ("GET", "/api/session/{sessionID}/permission", ask.permissions, "session.permission.list"),
    (
        "GET",
        "/api/session/{sessionID}/permission/{requestID}",
        ask.permission,
        "session.permission.get",
    ),
    (
        "POST",
        "/api/session/{sessionID}/permission/{requestID}/reply",
        ask.permission_reply,
        "session.permission.reply",
    ),
    ("GET", "/api/permission/request", ask.permission_requests, "permission.request.list"),
    ("GET", "/api/permission/saved", ask.saved, "permission.saved.list"),
    ("DELETE", "/api/permission/saved/{id}", ask.forget, "permission.saved.remove"),
    ("GET", "/api/form", ask.location_forms, "form.list"),
    ("GET", "/api/session/{sessionID}/form", ask.forms, "session.form.list"),
    ("POST", "/api/session/{sessionID}/form", ask.form_make, "session.form.create"),
    ("GET", "/api/session/{sessionID}/form/{formID}", ask.form, "session.form.get"),
    ("DELETE", "/api/session/{sessionID}/form/{formID}", ask.form_cancel, "session.form.cancel"),
    (
        "POST",
        "/api/session/{sessionID}/form/{formID}/reply",
        ask.form_reply,
        "session.form.reply",
    ),
)


async def openapi(_: web.Request) -> web.Response:
    """GET /openapi.json: the routes of this stub, with the paths of the real server."""
    paths: Json = {}
    for method, path, _handler, operation in ROUTES:
        paths.setdefault(path, {})[method.lower()] = {"operationId": operation}
    info = {"title": "opencode HttpApi", "version": "0.0.1"}
    return reply({"openapi": "3.1.0", "info": info, "paths": paths})


def make_app(host: Host) -> web.Application:
    """The application, without the control route."""
    app = web.Application(client_max_size=MAX_BODY, middlewares=[_front])
    app[HOST] = host
    for method, path, handler, _operation in ROUTES:
        app.router.add_route(method, path, handler)
    app.router.add_get("/openapi.json", openapi)
    return app


@web.middleware
async def _front(request: web.Request, handler: Handler) -> web.StreamResponse:
    """What every request passes: the log, its fault, the credentials, and the odd paths.

    A request that came in whole takes effect, also when its client hangs up before the answer, as
    on the real server. Reads end with their client: the feed notices so that nobody listens.
    """
    if request.path == "/control":
        return await handler(request)
    host = host_of(request)
    body = await request.read()
    text = body[:4096].decode(errors="replace")
    host.log.append(Seen(request.method, request.path, request.query_string, text))
    serving = _serve(host, request, handler)
    ends_with_its_client = request.method == "GET" or request.path.endswith("/command")
    return await (serving if ends_with_its_client else host.requests.outlive(serving))


async def _serve(host: Host, request: web.Request, handler: Handler) -> web.StreamResponse:
    rule = host.faults.strike(request.method, request.path)
    if rule is not None and rule.action != "drop_after":
        response = await _strike(request, rule)
        if response is not None:
            return response
    response = await _answer(request, handler)
    if rule is not None and rule.action == "drop_after":
        _tear(request)
    if not response.prepared:
        response.headers["Keep-Alive"] = f"timeout={host.settings.keep_alive:g}"
    return response


async def _strike(request: web.Request, rule: Rule) -> web.StreamResponse | None:
    if rule.action == "delay":
        await asyncio.sleep(rule.seconds)
        return None
    if rule.action == "drop_before":
        _tear(request)
    if rule.message:
        return reply({"_tag": "UnknownError", "message": rule.message}, rule.status)
    return empty(rule.status)


async def _answer(request: web.Request, handler: Handler) -> web.StreamResponse:
    api = request.path.startswith("/api")
    if not api and request.path != "/openapi.json":
        return web.Response(text=PAGE, content_type="text/html")
    if not _is_authorized(request):
        response = empty(401)
        response.headers["WWW-Authenticate"] = 'Basic realm="Secure Area"'
        return response
    try:
        return await handler(request)
    except RefusalError as refusal:
        return refusal.response
    except web.HTTPException as error:
        if error.status in (404, 405):
            return empty(404)
        raise


def _is_authorized(request: web.Request) -> bool:
    host = host_of(request)
    if host.faults.unauthorized:
        return False
    if host.settings.password is None:
        return True
    kind, _, given = request.headers.get("Authorization", "").partition(" ")
    pair = f"{host.settings.user}:{host.settings.password}"
    wanted = base64.b64encode(pair.encode()).decode()
    return kind.lower() == "basic" and hmac.compare_digest(given.strip(), wanted)
