"""The MCP servers of a location."""

from __future__ import annotations

from aiohttp import web

from stubs.server.host import BOOTED
from stubs.server.replies import (
    body_of,
    directory_of,
    empty,
    host_of,
    invalid,
    located,
    need,
    refuse,
)
from stubs.server.wire import Json


async def listing(request: web.Request) -> web.Response:
    """GET /api/mcp."""
    directory = directory_of(request)
    return located(directory, host_of(request).mcp.listed(directory))


async def put(request: web.Request) -> web.Response:
    """PUT: 204 also for a server that did not start."""
    config = need(await body_of(request), "config", dict)
    _check(config)
    directory, name = directory_of(request), request.match_info["server"]
    await host_of(request).mcp.put(directory, name, config)
    _say(request, directory, name)
    return empty()


async def remove(request: web.Request) -> web.Response:
    """DELETE."""
    directory, name = directory_of(request), request.match_info["server"]
    if not await host_of(request).mcp.remove(directory, name):
        refuse(404, "McpServerNotFoundError", server=name, message=f"MCP server not found: {name}")
    _say(request, directory, name)
    return empty()


async def reload(request: web.Request) -> web.Response:
    """POST /api/location/reload: the location starts anew, without what was added to it."""
    host, directory = host_of(request), directory_of(request)
    host.journal.plain("location.shutdown", {}, directory)
    for name in await host.mcp.forget(directory):
        host.journal.plain("mcp.status.changed", {"server": name}, directory)
    for name in BOOTED:
        host.journal.plain(f"{name}.updated", {}, directory)
    return empty()


def _say(request: web.Request, directory: str, name: str) -> None:
    journal = host_of(request).journal
    for kind in ("mcp.status.changed", "mcp.resources.changed"):
        journal.plain(kind, {"server": name}, directory)
    journal.plain("command.updated", {}, directory)


def _check(config: Json) -> None:
    if config.get("type") not in ("local", "remote"):
        expected = '{ readonly "type": "local", ... } | { readonly "type": "remote", ... }'
        invalid(f'Expected {expected}\n  at ["config"]', kind="Payload")
    need(config, *(("command", list) if config["type"] == "local" else ("url", str)))
