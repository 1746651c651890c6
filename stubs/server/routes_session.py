"""Sessions: create, read, change, delete, fork, and their messages in pages."""

from __future__ import annotations

import copy
import os
from typing import Final

from aiohttp import web

from stubs.server.execution import Executions, instructions
from stubs.server.host import Host
from stubs.server.replies import (
    body_of,
    cursor,
    data,
    empty,
    host_of,
    limit_of,
    need,
    read_cursor,
    refuse,
    reply,
    session_of,
)
from stubs.server.store import Item, Session
from stubs.server.subagent import announce
from stubs.server.wire import Json, now_ms

ENTER_PLAN: Final = (
    "<system-reminder>\nYou are in Plan mode. Discuss the plan with the user directly in the "
    "conversation.\n</system-reminder>"
)
LEAVE_PLAN: Final = (
    "<system-reminder>\nYou are NO LONGER in Plan mode. The previous Plan restrictions no longer "
    "apply.\n</system-reminder>"
)


async def create(request: web.Request) -> web.Response:
    """POST /api/session. A known id gives the session that exists; the directory is not checked
    beyond being absolute or empty."""
    host = host_of(request)
    body = await body_of(request, optional=True)
    known = host.store.sessions.get(str(body.get("id")))
    if known is not None:
        return data(known.view())
    location = body.get("location") or {}
    directory = location.get("directory", host.settings.directory)
    if directory and not os.path.isabs(directory):
        return empty(500)
    host.boot(directory)
    session = Session(
        body.get("id") or host.ids.make("ses"),
        directory,
        host.ids.slug(),
        now_ms(),
        title=body.get("title"),
        agent=body.get("agent"),
        model=body.get("model"),
        permissions=body.get("permissions"),
        metadata=body.get("metadata"),
        titled=body.get("title") is not None,
    )
    host.store.add(session)
    announce(host.journal, session)
    if session.model is not None:
        session.model = {"variant": "default", **session.model}
    return data(session.view())


async def listing(request: web.Request) -> web.Response:
    """GET /api/session, newest change first."""
    host = host_of(request)
    query = request.query
    found = list(host.store.sessions.values())
    if "directory" in query:
        if not os.path.isabs(query["directory"]):
            return empty(500)
        found = [session for session in found if session.directory == query["directory"]]
    if "parentID" in query:
        parent = None if query["parentID"] == "null" else query["parentID"]
        found = [session for session in found if session.parent == parent]
    if "search" in query:
        found = [session for session in found if query["search"] in (session.title or "")]
    found.sort(key=_when, reverse=query.get("order", "desc") == "desc")
    if "cursor" in query:
        anchor = read_cursor(query["cursor"]).get("anchor") or {}
        at = next((n for n, session in enumerate(found) if session.id == anchor.get("id")), -1)
        forward = anchor.get("direction") == "next"
        found = found[at + 1 :] if forward else found[: max(at, 0)]
    found = found[: limit_of(request)]
    return reply({"data": [session.view() for session in found], "cursor": _anchors(found)})


async def active(request: web.Request) -> web.Response:
    """GET /api/session/active."""
    executions: Executions = host_of(request).executions
    return data({session_id: {"type": "running"} for session_id in executions.running})


async def get(request: web.Request) -> web.Response:
    """GET /api/session/{sessionID}."""
    return data(session_of(request).view())


async def update(request: web.Request) -> web.Response:
    """PATCH: title, metadata, permissions."""
    session, journal = session_of(request), host_of(request).journal
    body = await body_of(request)
    if body.get("title") is not None:
        session.title, session.titled = body["title"], True
        journal.durable(session, "session.renamed", {"title": session.title})
    if body.get("metadata") is not None:
        session.metadata = body["metadata"]
        journal.durable(session, "session.metadata.updated", {"metadata": session.metadata})
    if body.get("permissions") is not None:
        session.permissions = body["permissions"]
        journal.durable(session, "session.permissions", {"permissions": session.permissions})
    session.updated = now_ms()
    return empty()


async def remove(request: web.Request) -> web.Response:
    """DELETE: a running turn is interrupted first; the children go, too."""
    host, session = host_of(request), session_of(request)
    await _delete(host, session)
    return empty()


async def fork(request: web.Request) -> web.Response:
    """POST fork: a new root session with copies of the messages under new ids."""
    host, source = host_of(request), session_of(request)
    before = (await body_of(request, optional=True)).get("before")
    rows = source.rows
    boundary: Json = {"type": "through", "messageID": rows[-1]["id"] if rows else None}
    if before is not None:
        at = next((n for n, row in enumerate(rows) if row["id"] == before), len(rows))
        rows, boundary = rows[:at], {"type": "before", "messageID": before}
    title = None if source.title is None else f"{source.title} (fork #1)"
    session = Session(host.ids.make("ses"), source.directory, host.ids.slug(), now_ms())
    session.title, session.titled, session.instructed = title, True, source.instructed
    session.fork = {"sessionID": source.id, "boundary": boundary}
    session.agent, session.model = source.agent, source.model
    session.permissions = source.permissions
    host.store.add(session)
    body = {"parentID": source.id, "boundary": boundary}
    body |= {"instructions": instructions(source.directory), "instructionEntries": []}
    event = host.journal.durable(session, "session.forked", body, version=2)
    stem = "msg_" + str(event["id"])[4:]
    for number, row in enumerate(copy.deepcopy(rows)):
        session.rows.append({**row, "id": f"{stem}_{number}"})
    return data(session.view())


async def select_agent(request: web.Request) -> web.Response:
    """POST agent: it counts from the next step on, and is noted even if nothing changes."""
    host, session = host_of(request), session_of(request)
    agent = need(await body_of(request), "agent")
    before, session.agent = session.agent, agent
    body: Json = {"agent": agent} | ({} if before is None else {"previous": before})
    event = host.journal.durable(session, "session.agent.selected", body)
    host.journal.note_row(session, event, {"type": "agent-switched", **body})
    session.updated = int(event["created"])
    if "plan" in (agent, before) and agent != before:
        text = ENTER_PLAN if agent == "plan" else LEAVE_PLAN
        item = Item(host.ids.make("msg"), "synthetic", {"text": text}, "steer", now_ms())
        host.journal.enqueue(session, item)
    return empty()


async def select_model(request: web.Request) -> web.Response:
    """POST model {model: {id, providerID, variant?}}: silent if nothing changes."""
    host, session = host_of(request), session_of(request)
    body = await body_of(request)
    if not isinstance(body.get("model"), dict):
        missing = 'Missing key\n  at ["model"]'
        wrong = 'Expected Model.Ref\n  at ["model"]'
        refuse(400, "InvalidRequestError", message=wrong if "model" in body else missing,
               kind="Payload")  # fmt: skip
    model: Json = body["model"]
    before, session.model = session.model, {"variant": "default", **model}
    if session.model == before:
        return empty()
    said: Json = {"model": model} | ({} if before is None else {"previous": before})
    event = host.journal.durable(session, "session.model.selected", said)
    host.journal.note_row(session, event, {"type": "model-switched", **said})
    session.updated = int(event["created"])
    return empty()


async def messages(request: web.Request) -> web.Response:
    """GET message: pages of 50 by default, newest first by default."""
    session, query = session_of(request), request.query
    limit = limit_of(request)
    order = query.get("order", "desc")
    at = None
    forward = True
    if "cursor" in query:
        if "order" in query:
            refuse(400, "InvalidCursorError", message="Cursor cannot be combined with order")
        place = read_cursor(query["cursor"])
        order, at = str(place.get("order")), place.get("id")
        forward = place.get("direction") == "next"
    rows = session.rows if order == "asc" else session.rows[::-1]
    if at is not None:
        index = next((n for n, row in enumerate(rows) if row["id"] == at), None)
        if index is None:
            rows = []  # The row is gone, which is no error.
        else:
            rows = rows[index + 1 :] if forward else rows[max(0, index - limit) : index]
    page = rows[:limit]
    cursors: Json = {"previous": None, "next": None}
    if page:
        for key, row in (("previous", page[0]), ("next", page[-1])):
            cursors[key] = cursor({"id": row["id"], "order": order, "direction": key})
    return reply({"data": page, "cursor": cursors})


async def message(request: web.Request) -> web.Response:
    """GET message/{messageID}: 404 until the prompt is delivered."""
    session, message_id = session_of(request), request.match_info["messageID"]
    row = session.row(message_id)
    if row is None:
        refuse(404, "MessageNotFoundError", sessionID=session.id, messageID=message_id,
               message=f"Message not found: {message_id}")  # fmt: skip
    return data(row)


async def context(request: web.Request) -> web.Response:
    """GET context: the messages from the last compaction on, oldest first."""
    rows = session_of(request).rows
    starts = [n for n, row in enumerate(rows) if row["type"] == "compaction"]
    return data(rows[starts[-1] :] if starts else rows)


async def wait(request: web.Request) -> web.Response:
    """POST wait: answered when the session sleeps."""
    host, session = host_of(request), session_of(request)
    await host.executions.finish(session)
    return empty()


async def _delete(host: Host, session: Session) -> None:
    host.executions.interrupt(session)
    await host.executions.finish(session)
    for child in host.store.children(session.id):
        await _delete(host, child)
    if session.id in host.store.sessions:
        host.store.remove(session.id)
        host.journal.durable(session, "session.deleted", version=2, located=False)


def _when(session: Session) -> tuple[int, str]:
    return (session.updated or session.created, session.id)


def _anchors(found: list[Session]) -> Json:
    if not found:
        return {"previous": None, "next": None}
    cursors: Json = {}
    for key, session in (("previous", found[0]), ("next", found[-1])):
        anchor = {"id": session.id, "time": _when(session)[0], "direction": key}
        cursors[key] = cursor({"anchor": anchor})
    return cursors
