"""Permissions and forms: what waits for an answer, and the answers."""

from __future__ import annotations

from typing import NoReturn, cast

from aiohttp import web

from stubs.server.answers import fault_of_answer, fault_of_fields
from stubs.server.forms import GLOBAL, Settled
from stubs.server.permissions import DECISIONS, Decision
from stubs.server.replies import (
    body_of,
    data,
    directory_of,
    empty,
    host_of,
    invalid,
    located,
    need,
    refuse,
    session_of,
)


async def permissions(request: web.Request) -> web.Response:
    """GET permission of a session: its children's asks are not among them."""
    return data(host_of(request).permissions.of_session(session_of(request).id))


async def permission(request: web.Request) -> web.Response:
    """GET permission/{requestID} while it is open."""
    session, ask_id = session_of(request), request.match_info["requestID"]
    for view in host_of(request).permissions.of_session(session.id):
        if view["id"] == ask_id:
            return data(view)
    _no_permission(ask_id)


async def permission_reply(request: web.Request) -> web.Response:
    """POST reply {decision, message?}: 404 once it is settled, by whomever."""
    host, session = host_of(request), session_of(request)
    ask_id = request.match_info["requestID"]
    body = await body_of(request)
    decision = need(body, "decision")
    if decision not in DECISIONS:
        invalid('Expected "once" | "always" | "reject"\n  at ["decision"]', kind="Payload")
    message = body.get("message")
    settled = host.permissions.reply(session.id, ask_id, cast(Decision, decision), message)
    if not settled:
        _no_permission(ask_id)
    return empty()


async def permission_requests(request: web.Request) -> web.Response:
    """GET /api/permission/request: all open asks of a location, children's included."""
    directory = directory_of(request)
    return located(directory, host_of(request).permissions.of_directory(directory))


async def saved(request: web.Request) -> web.Response:
    """GET /api/permission/saved."""
    return data(host_of(request).permissions.saved)


async def forget(request: web.Request) -> web.Response:
    """DELETE /api/permission/saved/{id}."""
    known = host_of(request).permissions.saved
    known[:] = [entry for entry in known if entry["id"] != request.match_info["id"]]
    return empty()


async def forms(request: web.Request) -> web.Response:
    """GET form of a session: pending ones."""
    return data(host_of(request).forms.pending(session=session_of(request).id))


async def location_forms(request: web.Request) -> web.Response:
    """GET /api/form: pending ones of a location."""
    directory = directory_of(request)
    return located(directory, host_of(request).forms.pending(directory=directory))


async def form(request: web.Request) -> web.Response:
    """GET form/{formID}: also after it is settled, with its state."""
    form_id = request.match_info["formID"]
    found = host_of(request).forms.find(_asker(request), form_id)
    if found is None:
        _no_form(form_id)
    return data({**found.body, "state": found.state})


async def form_make(request: web.Request) -> web.Response:
    """POST form {title, fields, metadata?}: a form that a front end asks."""
    session = session_of(request)
    body = await body_of(request)
    title, fields = need(body, "title"), need(body, "fields", list)
    if not fields:
        invalid('Missing key\n  at ["fields"][0]', kind="Payload")
    fault = fault_of_fields(fields)
    if fault is not None:
        invalid(fault, field="fields")
    made = host_of(request).forms.make(session, title, fields, body.get("metadata"))
    return data(made.body)


async def form_reply(request: web.Request) -> web.Response:
    """POST form/{formID}/reply {answer}: a wrong one is refused, and the form stays open."""
    asker, form_id = _asker(request), request.match_info["formID"]
    answer = need(await body_of(request), "answer", dict)
    found = host_of(request).forms.find(asker, form_id)
    if found is not None and found.pending:
        fault = fault_of_answer(found.body["fields"], answer)
        if fault is not None:
            refuse(400, "FormInvalidAnswerError", id=form_id, message=fault)
    settled = host_of(request).forms.reply(asker, form_id, answer)
    return _settled(settled, form_id)


async def form_cancel(request: web.Request) -> web.Response:
    """DELETE form/{formID}: dismissed; a question's turn ends."""
    asker, form_id = _asker(request), request.match_info["formID"]
    return _settled(host_of(request).forms.cancel(asker, form_id), form_id)


def _asker(request: web.Request) -> str:
    """The session that a form is of; a form of none is found by its location."""
    if request.match_info["sessionID"] != GLOBAL:
        return session_of(request).id
    form_id, directory = request.match_info["formID"], directory_of(request)
    found = host_of(request).forms.find(GLOBAL, form_id)
    if found is None or found.directory != directory:
        _no_form(form_id)
    return GLOBAL


def _settled(settled: Settled, form_id: str) -> web.Response:
    if settled == "missing":
        _no_form(form_id)
    if settled == "settled":
        message = f"Form already settled: {form_id}"
        refuse(409, "FormAlreadySettledError", id=form_id, message=message)
    return empty()


def _no_permission(ask_id: str) -> NoReturn:
    message = f"Permission request not found: {ask_id}"
    refuse(404, "PermissionNotFoundError", requestID=ask_id, message=message)


def _no_form(form_id: str) -> NoReturn:
    refuse(404, "FormNotFoundError", id=form_id, message=f"Form not found: {form_id}")
