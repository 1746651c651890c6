"""What a location offers: agents, models, providers, commands; and the server about itself."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Final

from aiohttp import web

from stubs.server.config import VERSION
from stubs.server.project import Project
from stubs.server.replies import (
    RefusalError,
    directory_of,
    empty,
    host_of,
    located,
    refuse,
    reply,
    session_of,
)
from stubs.server.wire import Json, digest, dumps, now_ms

TMP: Final = "opencode-stub"
# One of the plugins that are built in.
PLUGIN: Final = MappingProxyType(
    {
        "id": "opencode.agent",
        "source": {"type": "builtin"},
        "features": {"server": True},
        "state": {"status": "active"},
    }
)


async def info(request: web.Request) -> web.Response:
    """GET /api/info: version and pid."""
    host = host_of(request)
    urls = [f"{request.scheme}://{request.host}"]
    return reply({"version": VERSION, "pid": host.pid, "urls": urls, "paths": {"tmp": TMP}})


async def location(request: web.Request) -> web.Response:
    """GET /api/location."""
    directory = _existing(request)
    host_of(request).boot(directory)
    project = {"id": digest(directory), "directory": directory, "canonical": directory}
    return reply({"directory": directory, "project": project})


async def agents(request: web.Request) -> web.Response:
    """GET /api/agent."""
    return _listed(request, lambda project: project.agents)


async def models(request: web.Request) -> web.Response:
    """GET /api/model; a model shows its key in clear text, as the server does."""
    return _listed(request, lambda project: project.models)


async def default_model(request: web.Request) -> web.Response:
    """GET /api/model/default: null while nothing is listed."""
    directory = _existing(request)
    project = host_of(request).listed(directory)
    return located(directory, project and project.default_model)


async def plugins(request: web.Request) -> web.Response:
    """GET /api/plugin: empty until the location has booted."""
    directory = _existing(request)
    booting = host_of(request).boot(directory) is not None
    return located(directory, [] if booting else [dict(PLUGIN)])


async def providers(request: web.Request) -> web.Response:
    """GET /api/provider."""
    return _listed(request, lambda project: project.providers)


async def commands(request: web.Request) -> web.Response:
    """GET /api/command."""
    return _listed(request, lambda project: project.commands)


async def skills(request: web.Request) -> web.Response:
    """GET /api/skill."""
    return _listed(request, lambda project: project.skills)


async def nothing(request: web.Request) -> web.Response:
    """A list that is empty here: MCP servers, references."""
    return located(_existing(request), [])


async def agent(request: web.Request) -> web.Response:
    """GET /api/agent/{agentID}."""
    directory = _existing(request)
    name = request.match_info["agentID"]
    found = host_of(request).project(directory).agent(name)
    if found is None:
        refuse(404, "AgentNotFoundError", agentID=name, message=f"Agent not found: {name}")
    return located(directory, found)


async def projects(request: web.Request) -> web.Response:
    """GET /api/project: one per directory that has sessions."""
    directories = {session.directory for session in host_of(request).store.sessions.values()}
    time = {"created": now_ms(), "updated": now_ms(), "active": now_ms()}
    return reply(
        [
            {"id": digest(directory), "canonical": directory, "time": time, "sandboxes": []}
            for directory in sorted(directories)
        ]
    )


async def log(request: web.Request) -> web.Response:
    """GET log: the last durable number and no history, as measured."""
    session = session_of(request)
    line: Json = {"type": "log.synced", "aggregateID": session.id, "seq": session.seq}
    body = b"data: " + dumps(line) + b"\n\n"
    return web.Response(body=body, content_type="text/event-stream")


def _existing(request: web.Request) -> str:
    directory = directory_of(request)
    if not host_of(request).has(directory):
        raise RefusalError(empty(500))
    return directory


def _listed(request: web.Request, pick: Callable[[Project], list[Json]]) -> web.Response:
    """A list of the location's, as far as its boot is."""
    directory = _existing(request)
    project = host_of(request).listed(directory)
    return located(directory, [] if project is None else pick(project))
