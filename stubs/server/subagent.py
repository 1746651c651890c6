"""The subagent tool: a child session with executions of its own, awaited or in the background."""

from __future__ import annotations

import asyncio

from stubs.server.background import Background, MovedError
from stubs.server.execution import Executions, Outcome
from stubs.server.journal import Journal
from stubs.server.project import Project
from stubs.server.store import Item, Session, Store
from stubs.server.tools import Call, Result, ToolError
from stubs.server.wire import Ids, Json, now_ms

PREFIX = "You are a subagent spawned by another session.\n"
IN_BACKGROUND = (
    "The subagent is working in the background (sessionID: {id}). "
    "You will be notified automatically when it finishes.\n"
    "DO NOT sleep, poll for progress, ask the subagent for status, or duplicate this subagent's "
    "work; avoid working with the same files or topics it is using.\n"
    "Work on non-overlapping tasks, or briefly tell the user what you launched and end your "
    "response."
)


class Subagents:
    """Starts children and, in the background, tells their parents when they are done."""

    def __init__(
        self,
        ids: Ids,
        store: Store,
        journal: Journal,
        executions: Executions,
        background: Background,
    ) -> None:
        self._ids = ids
        self._store = store
        self._journal = journal
        self._executions = executions
        self._background = background
        self._watchers: set[asyncio.Task[None]] = set()

    async def run(self, call: Call) -> Result:
        """The tool. Raises ToolError when the child failed or was declined something."""
        child = self._create(call)
        data: Json = {"sessionID": child.id, "status": "running"}
        call.progress(data)
        text = PREFIX + call.text("prompt")
        item = Item(self._ids.make("msg"), "user", {"text": text}, "steer", now_ms())
        self._journal.enqueue(child, item)
        self._executions.wake(child)
        if call.input.get("background"):
            return self._in_background(call, child)
        what = f"subagent: {call.text('description')}"
        try:
            work = self._executions.finish(child)
            outcome = await self._background.wait(call.session, what, work)
        except MovedError:
            return self._in_background(call, child)
        except asyncio.CancelledError:
            self._executions.interrupt(child)
            raise
        if outcome.kind == "interrupted":
            raise ToolError(f"Subagent cancelled (sessionID: {child.id})")
        if outcome.kind == "failed":
            reason = (outcome.error or {}).get("message", "")
            raise ToolError(f"Subagent failed (sessionID: {child.id}): {reason}")
        head = f'<subagent sessionID="{child.id}" state="completed">'
        said = f"{head}\n{last_text(child)}\n</subagent>"
        return Result((said,), {"sessionID": child.id, "status": "completed", "truncated": False})

    def command(self, parent: Session, name: str, text: str, definition: Json, marks: Json) -> None:
        """A command that a child carries out; `marks` are the mentions of its request."""
        agent = str(definition.get("agent") or parent.agent or "build")
        child = self._child(parent, str(definition.get("description") or name), agent)
        item_id = self._ids.make("msg")
        payload = {"text": PREFIX + text, **marks}
        self._journal.enqueue(child, Item(item_id, "user", payload, "steer", now_ms()))
        self._executions.wake(child)
        self._follow(parent, child, name, agent)

    def _in_background(self, call: Call, child: Session) -> Result:
        self._follow(call.session, child, call.text("description"), call.text("agent"))
        text = IN_BACKGROUND.format(id=child.id)
        return Result((text,), {"sessionID": child.id, "status": "running", "truncated": False})

    async def abandon(self) -> None:
        """Forget the children in the background, as a killed server does."""
        watchers = list(self._watchers)
        for watcher in watchers:
            watcher.cancel()
        await asyncio.gather(*watchers, return_exceptions=True)

    def _create(self, call: Call) -> Session:
        return self._child(call.session, call.text("description"), call.text("agent"))

    def _child(self, parent: Session, title: str, agent: str) -> Session:
        child = self._store.add(
            Session(
                self._ids.make("ses"),
                parent.directory,
                self._ids.slug(),
                now_ms(),
                title=title,
                parent=parent.id,
                agent=agent,
                permissions=parent.permissions,
                titled=True,
            )
        )
        announce(self._journal, child)
        return child

    def _follow(self, parent: Session, child: Session, title: str, agent: str) -> None:
        watcher = asyncio.create_task(self._watch(parent, child, title, agent))
        self._watchers.add(watcher)
        watcher.add_done_callback(self._watchers.discard)

    async def _watch(self, parent: Session, child: Session, title: str, agent_id: str) -> None:
        outcome = await self._executions.finish(child)
        if parent.id not in self._store.sessions:
            return
        state, text = _report(outcome, child)
        agent = Project(parent.directory).agent(agent_id) or {}
        payload: Json = {
            "text": f'<subagent sessionID="{child.id}" state="{state}" description="{title}">\n'
            f"{text}\n</subagent>",
            "description": title,
            "metadata": {
                "source": "subagent",
                "childID": child.id,
                "agent": agent.get("name", agent_id),
                "state": state,
            },
        }
        item = Item(self._ids.make("msg"), "synthetic", payload, "steer", now_ms())
        self._journal.enqueue(parent, item)
        self._executions.wake(parent)


def announce(journal: Journal, session: Session) -> None:
    """The event of a new session."""
    location = {"directory": session.directory}
    data: Json = {
        "slug": session.slug,
        "version": "2.0.15",
        "projectID": session.project_id,
        "parentID": session.parent,
        "location": location,
        "subpath": "",
        "title": session.title,
        "agent": session.agent,
        "model": session.model,
        "permissions": session.permissions,
    }
    present = {key: value for key, value in data.items() if value is not None}
    journal.durable(session, "session.created", present)


def last_text(session: Session) -> str:
    """The text of the session's last answer."""
    for row in reversed(session.rows):
        if row["type"] == "assistant":
            text = "".join(part["text"] for part in row["content"] if part["type"] == "text")
            return text or "Subagent completed without a text response."
    return "Subagent completed without a text response."


def _report(outcome: Outcome, child: Session) -> tuple[str, str]:
    if outcome.kind == "succeeded":
        return "completed", last_text(child)
    if outcome.kind == "failed":
        return "error", str((outcome.error or {}).get("message", ""))
    return "cancelled", "Subagent cancelled"
