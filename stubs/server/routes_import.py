"""A whole session put in at once, as the real server's import does."""

from __future__ import annotations

from aiohttp import web

from stubs.server.replies import body_of, data, host_of, refuse
from stubs.server.store import Session


async def imported(request: web.Request) -> web.Response:
    """POST experimental/session/import {info, messages, location}: ids and times are kept.

    The directory is that of `location`; what `info` says of it counts for nothing.
    """
    host = host_of(request)
    body = await body_of(request)
    info = body["info"]
    if info["id"] in host.store.sessions:
        refuse(409, "ConflictError", message="Session already exists", resource=info["id"])
    directory = (body.get("location") or {}).get("directory", host.settings.directory)
    session = Session(
        info["id"],
        directory,
        host.ids.slug(),
        int(info["time"]["created"]),
        title=info.get("title"),
        updated=int(info["time"]["updated"]),
        titled=True,
    )
    session.rows = list(body["messages"])
    return data(host.store.add(session).view())
