"""Prompts and what follows them: admission, the inbox, interrupts."""

from __future__ import annotations

import asyncio
import base64
import binascii
import os
import re
from typing import Any
from urllib.parse import parse_qs, unquote, unquote_to_bytes, urlsplit

from aiohttp import web

from stubs.server.definitions import skill_text
from stubs.server.host import Host
from stubs.server.replies import (
    RefusalError,
    body_of,
    data,
    empty,
    host_of,
    invalid,
    need,
    refuse,
    reply,
    session_of,
)
from stubs.server.store import Delivery, Item, Session
from stubs.server.wire import Json, now_ms


async def prompt(request: web.Request) -> web.Response:
    """POST prompt: the answer means that the item is durable in the inbox.

    The same id again gives the original item, whatever the new text, and wakes the session
    unless `resume` is false; on another session it is a conflict.
    """
    host, session = host_of(request), session_of(request)
    body = await body_of(request)
    text = need(body, "text")
    message_id = body.get("id")
    if message_id is not None and not str(message_id).startswith("msg_"):
        invalid('Expected a string starting with "msg_"\n  at ["id"]', kind="Payload")
    delivery = delivery_of(body.get("delivery", "steer"))
    await ready(host, session)
    resume = body.get("resume") is not False
    if message_id in host.store.owners:
        return _again(host, session, str(message_id), delivery, resume=resume)
    payload: Json = {"text": text}
    files = [attachment(file) for file in body.get("files") or []]
    if files:
        payload["files"] = files
    for key in ("agents", "metadata"):
        if body.get(key):
            payload[key] = body[key]
    skills = skills_of(host, session, body)
    if skills:
        payload["skills"] = skills
    item = Item(message_id or host.ids.make("msg"), "user", payload, delivery, now_ms())
    host.journal.enqueue(session, item)
    host.admissions[item.id] += 1
    view = item.view(session.id)
    if resume:
        host.executions.wake(session)
    return data(view)


async def inbox(request: web.Request) -> web.Response:
    """GET inbox: what is not delivered yet, oldest first."""
    session = session_of(request)
    return data([item.view(session.id) for item in session.inbox.values()])


async def cancel(request: web.Request) -> web.Response:
    """DELETE inbox/{inboxID}: 204 in every case; only the event says that it worked."""
    host_of(request).journal.cancel(session_of(request), request.match_info["inboxID"])
    return empty()


async def redeliver(request: web.Request) -> web.Response:
    """PATCH inbox/{inboxID} {delivery}: steer wakes the session; no change is a conflict."""
    host, session = host_of(request), session_of(request)
    item_id = request.match_info["inboxID"]
    delivery = delivery_of(need(await body_of(request), "delivery"))
    item = session.inbox.get(item_id)
    if item is None or item.delivery == delivery:
        refuse(409, "ConflictError", message=f"Pending input cannot change to {delivery}: "
               f"{item_id}", resource=item_id)  # fmt: skip
    host.journal.redeliver(session, item, delivery)
    if delivery == "steer":
        host.executions.wake(session)
    return empty()


async def background(request: web.Request) -> web.Response:
    """POST background: 204 in every case; tools that block the session end at once."""
    host, session = host_of(request), session_of(request)
    await host.background.move(session)
    return empty()


async def interrupt(request: web.Request) -> web.Response:
    """POST interrupt[?resume=true]: no barrier, the end events follow."""
    host, session = host_of(request), session_of(request)
    resume = request.query.get("resume") == "true"
    interrupted = host.executions.interrupt(session, resume=resume)
    await asyncio.sleep(host.settings.interrupt_reply)
    return reply({"interrupted": interrupted})


def _again(
    host: Host, session: Session, message_id: str, delivery: Delivery, *, resume: bool
) -> web.Response:
    if host.store.owners[message_id] != session.id:
        refuse(409, "ConflictError", resource=message_id, message="Prompt message ID conflicts "
               f"with an existing durable record: {message_id}")  # fmt: skip
    item = session.inbox.get(message_id)
    kind = item.kind if item is not None else (session.row(message_id) or {}).get("type")
    if kind == "compaction":
        refuse(409, "ConflictError", resource=message_id, message="Prompt message ID conflicts "
               f"with an existing durable record: {message_id}")  # fmt: skip
    if item is None:
        row = session.row(message_id) or {"time": {"created": now_ms()}}
        payload = {key: value for key, value in row.items() if key not in ("id", "time", "type")}
        item = Item(message_id, "user", payload, delivery, row["time"]["created"])
    view = item.view(session.id)
    if resume:
        host.executions.wake(session)
    return data(view)


async def ready(host: Host, session: Session) -> None:
    """Wait for the location's boot; one that is no directory is the server's 500."""
    if not host.has(session.directory):
        await asyncio.sleep(host.settings.bad_directory_delay)
        raise RefusalError(empty(500))
    boot = host.boot(session.directory)
    if boot is not None:
        await asyncio.wait([boot])


def skills_of(host: Host, session: Session, body: Json) -> list[Json]:
    """The skills of a prompt as they are stored, with their texts."""
    known = {skill["id"]: skill for skill in host.project(session.directory).skills}
    found: list[Json] = []
    for one in body.get("skills") or []:
        skill = known.get(one.get("id"))
        if skill is None:
            invalid(f"Skill not found: {one.get('id')}", field="skills")
        found.append({**one, "name": skill["name"], "text": skill_text(skill)})
    return found


def delivery_of(value: Any) -> Delivery:
    if value not in ("steer", "queue"):
        invalid('Expected "steer" | "queue"\n  at ["delivery"]', kind="Payload")
    delivery: Delivery = value
    return delivery


def attachment(file: Json) -> Json:
    """A file as it is stored: its bytes in base64, and where they came from."""
    uri = str(file.get("uri", ""))
    if uri.startswith("data:"):
        mime, content = _data_uri(uri)
        source: Json = {"type": "inline"}
    elif uri.startswith("file://"):
        mime, content = _file_uri(uri)
        source = {"type": "uri", "uri": uri}
    elif re.match(r"[a-z][a-z0-9+.-]*:", uri):
        invalid(f"Unsupported attachment URI: {uri}", field="files")
    else:
        invalid(f"Invalid attachment URI: {uri}", field="files")
    stored: Json = {"data": base64.b64encode(content).decode(), "mime": mime, "source": source}
    for key in ("name", "description", "mention"):
        if key in file:
            stored[key] = file[key]
    return stored


def _data_uri(uri: str) -> tuple[str, bytes]:
    head, comma, body = uri[5:].partition(",")
    mime, *options = head.split(";")
    try:
        if not comma:
            raise ValueError("no comma")
        if "base64" in options:
            return mime or "text/plain", base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError):
        invalid("Invalid attachment data URL", field="files")
    return mime or "text/plain", unquote_to_bytes(body)


def _file_uri(uri: str) -> tuple[str, bytes]:
    parts = urlsplit(uri)
    path = unquote(parts.path)
    if os.path.isdir(path):
        return "application/x-directory", "\n".join(sorted(os.listdir(path))).encode()
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError:
        invalid(f"Unable to read attachment: {uri}", field="files")
    query = parse_qs(parts.query)
    if "start" in query:
        lines = content.splitlines(keepends=True)
        start = int(query["start"][0])
        end = int(query.get("end", [str(len(lines))])[0])
        content = b"".join(lines[start - 1 : end])
    return _kind(content), content


def _kind(content: bytes) -> str:
    """The type of a file by its bytes, whatever its name says."""
    for kind, magic in (("image/png", b"\x89PNG"), ("application/pdf", b"%PDF-")):
        if content.startswith(magic):
            return kind
    try:
        return "application/octet-stream" if "\0" in content.decode() else "text/plain"
    except UnicodeDecodeError:
        return "application/octet-stream"
