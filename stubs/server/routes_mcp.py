"""The MCP servers of a location."""

from __future__ import annotations

from aiohttp import web

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
    directory = directory_of(request)
    await host_of(request).mcp.put(directory, request.match_info["server"], config)
    return empty()


async def remove(request: web.Request) -> web.Response:
    """DELETE."""
    name = request.match_info["server"]
    if not await host_of(request).mcp.remove(directory_of(request), name):
        refuse(404, "McpServerNotFoundError", server=name, message=f"MCP server not found: {name}")
    return empty()


def _check(config: Json) -> None:
    if config.get("type") not in ("local", "remote"):
        expected = '{ readonly "type": "local", ... } | { readonly "type": "remote", ... }'
        invalid(f'Expected {expected}\n  at ["config"]', kind="Payload")
    need(config, *(("command", list) if config["type"] == "local" else ("url", str)))
