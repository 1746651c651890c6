"""What a front end calls by a slash: commands of the project, and compactions."""

from __future__ import annotations

from aiohttp import web

from stubs.server.host import Host
from stubs.server.replies import body_of, data, empty, host_of, need, refuse, session_of
from stubs.server.routes_prompt import attachment, delivery_of, ready, skills_of
from stubs.server.store import Item, Session
from stubs.server.templates import expand
from stubs.server.wire import Json, now_ms


async def command(request: web.Request) -> web.Response:
    """POST command {name, text}: expands to a prompt whose id is not told.

    The commands in a template run before anything is admitted, and end with the connection.
    """
    host, session = host_of(request), session_of(request)
    body = await body_of(request)
    name, text = need(body, "name"), need(body, "text")
    delivery = delivery_of(body.get("delivery") or "steer")
    definition = host.project(session.directory).command(name)
    if definition is None:
        refuse(404, "CommandNotFoundError", command=name, message=f"Command not found: {name}")
    await ready(host, session)
    filled = await expand(str(definition.get("template", "")), text, session.directory)
    agents = {"agents": body["agents"]} if body.get("agents") else {}
    if definition.get("subtask") or definition.get("subagent"):
        host.subagents.command(session, name, filled, definition, agents)
        return empty()
    _choose(host, session, name, definition)
    payload: Json = {"text": filled, **agents}
    files = [attachment(file) for file in body.get("files") or []]
    if files:
        payload["files"] = files
    skills = skills_of(host, session, body)
    if skills:
        payload["skills"] = skills
    item = Item(host.ids.make("msg"), "user", payload, delivery, now_ms())
    host.journal.enqueue(session, item)
    host.admissions[item.id] += 1
    host.executions.wake(session)
    return empty()


async def compact(request: web.Request) -> web.Response:
    """POST compact {id?, delivery?}: an inbox item of type compaction.

    While one waits, every other is that one; the id of any other record is a conflict.
    """
    host, session = host_of(request), session_of(request)
    body = await body_of(request)
    delivery = delivery_of(body.get("delivery") or "steer")
    item_id = body.get("id") or host.ids.make("msg")
    waiting = next((one for one in session.inbox.values() if one.kind == "compaction"), None)
    if waiting is None:
        known = item_id in host.store.owners or session.row(item_id) is not None
        if known:
            refuse(409, "ConflictError", message="Compaction input ID conflicts with an existing "
                   f"durable record: {item_id}", resource=item_id)  # fmt: skip
        waiting = Item(item_id, "compaction", {}, delivery, now_ms())
        host.journal.enqueue(session, waiting)
        host.admissions[item_id] += 1
    view = waiting.view(session.id)
    host.executions.wake(session)
    return data(view)


def _choose(host: Host, session: Session, name: str, definition: Json) -> None:
    """The agent and the model of a definition are choices of the session from then on."""
    agent, model = definition.get("agent"), definition.get("model")
    if agent is not None and host.project(session.directory).agent(agent) is None:
        refuse(500, "CommandExecutionError", command=name, message=f"Agent not found: {agent}")
    if agent is not None and agent != session.agent:
        before, session.agent = session.agent, agent
        body: Json = {"agent": agent} | ({} if before is None else {"previous": before})
        event = host.journal.durable(session, "session.agent.selected", body)
        host.journal.note_row(session, event, {"type": "agent-switched", **body})
    if model is not None:
        provider, _, ident = str(model).partition("/")
        chosen = {"id": ident, "providerID": provider}
        kept, session.model = session.model, {"variant": "default", **chosen}
        if kept != session.model:
            said: Json = {"model": chosen} | ({} if kept is None else {"previous": kept})
            event = host.journal.durable(session, "session.model.selected", said)
            host.journal.note_row(session, event, {"type": "model-switched", **said})
