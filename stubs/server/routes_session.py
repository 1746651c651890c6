"""Sessions: create, read, change, delete, fork, and their messages in pages."""

from __future__ import annotations

import copy
import os
from typing import Final

from aiohttp import web

from stubs.server.execution import Executions, instructions
from stubs.server.host import Host
from stubs.server.replies import (
    RefusalError,
    body_of,
    cursor,
    data,
    empty,
    host_of,
    invalid,
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

# What a cursor of a list repeats.
FILTERS: Final = ("search", "parentID", "order", "directory")
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
    """GET /api/session, newest change first. A cursor carries the filters of its list."""
    host = host_of(request)
    query = request.query
    limit = _list_limit(request)
    place: Json = {key: query[key] for key in FILTERS if key in query}
    if "cursor" in query:
        place = read_cursor(query["cursor"])
        if not isinstance(place.get("anchor"), dict):
            refuse(400, "InvalidCursorError", message="Invalid cursor")
    found = _filtered(list(host.store.sessions.values()), place)
    newest_first = place.get("order", "desc") == "desc"
    found.sort(key=_when, reverse=newest_first)
    anchor = place.pop("anchor", None)
    if anchor is None:
        return reply(_list_page(found[:limit], place))
    at = (int(anchor["time"]), str(anchor["id"]))
    older = [one for one in found if (_when(one) < at) == newest_first and _when(one) != at]
    if anchor.get("direction") == "next":
        return reply(_list_page(older[:limit], place))
    newer = [one for one in found if one not in older and _when(one) != at]
    return reply(_list_page(newer[-limit:], place))


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
    """POST fork: a new root session with copies of the messages under new ids.

    An answer that is still written is not copied. The only event is session.forked.
    """
    host, source = host_of(request), session_of(request)
    before = (await body_of(request)).get("before")
    if before is not None and not str(before).startswith("msg_"):
        invalid('Expected a string starting with "msg_"\n  at ["before"]', kind="Payload")
    if not source.rows:
        invalid(f"Cannot fork empty session: {source.id}", kind="empty_session")
    rows = source.rows
    boundary: Json = {"type": "through", "messageID": rows[-1]["id"]}
    if before is not None:
        at = next((n for n, row in enumerate(rows) if row["id"] == before), None)
        if at is None:
            refuse(404, "MessageNotFoundError", sessionID=source.id, messageID=before,
                   message=f"Message not found: {before}")  # fmt: skip
        rows, boundary = rows[:at], {"type": "before", "messageID": before}
    title = None if source.title is None else f"{source.title} (fork #1)"
    session = Session(host.ids.make("ses"), source.directory, host.ids.slug(), now_ms())
    session.title, session.titled, session.instructed = title, True, source.instructed
    session.fork = {"sessionID": source.id, "boundary": boundary}
    session.agent, session.model = source.agent, source.model
    session.permissions, session.metadata = source.permissions, source.metadata
    host.store.add(session)
    body = {"parentID": source.id, "boundary": boundary}
    body |= {"instructions": instructions(source.directory), "instructionEntries": []}
    event = host.journal.durable(session, "session.forked", body, version=2)
    stem = "msg_" + str(event["id"])[4:]
    done = [row for row in rows if row["type"] != "assistant" or "completed" in row["time"]]
    for number, row in enumerate(copy.deepcopy(done)):
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
    """What runs in the family is aborted first, then all of it goes.

    A child that was idle gets no event of its own (measured).
    """
    family = _family(host, session)
    ran = {one.id for one in family if one.id in host.executions.running}
    for one in family:
        host.executions.interrupt(one)
        await host.executions.finish(one)
    for one in reversed(family):
        if one.id in host.store.sessions:
            host.store.remove(one.id)
            if one is session or one.id in ran:
                host.journal.durable(one, "session.deleted", version=2, located=False)


def _family(host: Host, session: Session) -> list[Session]:
    """A session and all below it, parents first."""
    found = [session]
    for one in found:
        found.extend(host.store.children(one.id))
    return found


def _list_limit(request: web.Request) -> int:
    """The page size of a list of sessions, which has no upper bound."""
    text = request.query.get("limit", "50")
    if not text.isdigit():
        invalid('Expected an integer\n  at ["limit"]', kind="Query")
    if int(text) < 1:
        invalid('Expected a value greater than 0\n  at ["limit"]', kind="Query")
    return int(text)


def _filtered(found: list[Session], filters: Json) -> list[Session]:
    """Directories are compared as strings, titles by a part of them in any case."""
    directory, parent, words = (filters.get(key) for key in ("directory", "parentID", "search"))
    if directory is not None:
        if directory and not os.path.isabs(directory):
            raise RefusalError(empty(500))
        found = [session for session in found if directory and session.directory == directory]
    if parent is not None:
        wanted = None if parent == "null" else parent
        found = [session for session in found if session.parent == wanted]
    if words is not None:
        found = [one for one in found if one.title and words.lower() in one.title.lower()]
    return found


def _when(session: Session) -> tuple[int, str]:
    return (session.updated or session.created, session.id)


def _list_page(found: list[Session], filters: Json) -> Json:
    cursors: Json = {"previous": None, "next": None}
    if found:
        for key, session in (("previous", found[0]), ("next", found[-1])):
            anchor = {"id": session.id, "time": _when(session)[0], "direction": key}
            cursors[key] = cursor({**filters, "anchor": anchor})
    return {"data": [session.view() for session in found], "cursor": cursors}
