"""Forms: the questions of tools and front ends, which stay readable after they are settled."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from stubs.server.journal import Journal
from stubs.server.permissions import DeclinedError
from stubs.server.store import Session
from stubs.server.wire import Ids, Json

MAX_FORMS: Final = 10_000
GLOBAL: Final = "global"
"""What stands for the session of a form of an MCP server."""


@dataclass(slots=True)
class Form:
    """A form and what became of it."""

    body: Json
    directory: str
    answer: asyncio.Future[Json] | None = field(default=None, repr=False)
    state: Json = field(default_factory=lambda: {"status": "pending"})

    @property
    def place(self) -> str | None:
        """The location that its events name: none for a form of an MCP server."""
        return None if self.body["sessionID"] == GLOBAL else self.directory

    @property
    def pending(self) -> bool:
        """Whether it still waits."""
        return bool(self.state["status"] == "pending")


Settled = Literal["done", "missing", "settled"]


class FormCancelledError(Exception):
    """The form was dismissed."""


class Forms:
    """All forms of this process; at MAX_FORMS the oldest is forgotten."""

    def __init__(self, ids: Ids, journal: Journal) -> None:
        self._ids = ids
        self._journal = journal
        self.forms: dict[str, Form] = {}

    async def ask(self, session: Session, questions: list[Json], tool: Json) -> list[list[str]]:
        """Show the questions and wait. The answer: per question the chosen labels.

        Raises DeclinedError when the form is cancelled. An interrupt cancels it with an event.
        """
        fields = [_field(number, question) for number, question in enumerate(questions)]
        metadata = {"kind": "question", "tool": tool}
        try:
            answer = await self.wait(session, "Questions", fields, metadata)
        except FormCancelledError as error:
            raise DeclinedError("The user dismissed this question") from error
        return [_chosen(answer.get(field["key"])) for field in fields]

    async def elicit(self, server: str, directory: str, params: Json) -> Json:
        """What an MCP server asks: a form of no session, which outlives an interrupt."""
        required = params["requestedSchema"].get("required", [])
        properties = params["requestedSchema"]["properties"]
        fields = [_property(key, shape, key in required) for key, shape in properties.items()]
        title = f"{server} is requesting input"
        metadata = {"kind": "mcp-elicitation", "server": server, "message": params["message"]}
        form = self._make(GLOBAL, directory, title, fields, metadata)
        form.answer = asyncio.get_running_loop().create_future()
        try:
            content = await asyncio.shield(form.answer)
        except FormCancelledError:
            return {"action": "cancel"}
        return {"action": "accept", "content": content}

    async def wait(self, session: Session, title: str, fields: list[Json], metadata: Json) -> Json:
        """Show a form and wait for its answer.

        Raises FormCancelledError when it is dismissed. An interrupt cancels it with an event.
        """
        form = self.make(session, title, fields, metadata)
        answer: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        form.answer = answer
        try:
            return await answer
        except asyncio.CancelledError:
            if form.pending and form.body["id"] in self.forms:
                self._cancel(form)
            raise

    def make(
        self, session: Session, title: str, fields: list[Json], metadata: Json | None = None
    ) -> Form:
        """A form that nobody waits for."""
        return self._make(session.id, session.directory, title, fields, metadata)

    def _make(
        self,
        session_id: str,
        directory: str,
        title: str,
        fields: list[Json],
        metadata: Json | None,
    ) -> Form:
        body: Json = {
            "id": self._ids.make("frm"),
            "sessionID": session_id,
            "title": title,
            **({} if metadata is None else {"metadata": metadata}),
            "fields": fields,
        }
        form = self.forms[body["id"]] = Form(body, directory)
        if len(self.forms) > MAX_FORMS:
            del self.forms[next(iter(self.forms))]
        self._journal.plain("form.created", {"form": body}, form.place)
        return form

    def find(self, session_id: str, form_id: str) -> Form | None:
        """The form of that session, settled or not."""
        form = self.forms.get(form_id)
        return form if form is not None and form.body["sessionID"] == session_id else None

    def pending(self, *, session: str | None = None, directory: str | None = None) -> list[Json]:
        """Forms that wait, of a session or of a location."""
        return [
            form.body
            for form in self.forms.values()
            if form.pending
            and (session is None or form.body["sessionID"] == session)
            and (directory is None or form.directory == directory)
        ]

    def reply(self, session_id: str, form_id: str, answer: Json) -> Settled:
        """Answer a form."""
        form = self.find(session_id, form_id)
        if form is None or not form.pending:
            return "missing" if form is None else "settled"
        form.state = {"status": "answered", "answer": answer}
        data = {"id": form_id, "sessionID": session_id, "answer": answer}
        self._journal.plain("form.replied", data, form.place)
        if form.answer is not None and not form.answer.done():
            form.answer.set_result(answer)
        return "done"

    def cancel(self, session_id: str, form_id: str) -> Settled:
        """Dismiss a form: a tool that asked it fails, and the turn of a question ends."""
        form = self.find(session_id, form_id)
        if form is None or not form.pending:
            return "missing" if form is None else "settled"
        self._cancel(form)
        if form.answer is not None and not form.answer.done():
            form.answer.set_exception(FormCancelledError())
        return "done"

    def clear(self) -> None:
        """Forget all forms, as a restart does."""
        self.forms.clear()

    def _cancel(self, form: Form) -> None:
        form.state = {"status": "cancelled"}
        data = {"id": form.body["id"], "sessionID": form.body["sessionID"]}
        self._journal.plain("form.cancelled", data, form.place)


def _field(number: int, question: Json) -> Json:
    options = [
        {"value": option["label"], "label": option["label"], "description": option["description"]}
        for option in question.get("options", [])
    ]
    return {
        "key": f"q{number}",
        "title": question.get("header", ""),
        "description": question.get("question", ""),
        "type": "multiselect" if question.get("multiple") else "string",
        "options": options,
        "custom": True,
    }


def _property(key: str, shape: Json, required: bool) -> Json:
    """A property of an MCP server's schema as a field."""
    field: Json = {"key": key, "title": shape.get("title", key), "required": required}
    kind = shape["type"]
    choices = shape.get("enum") or shape.get("items", {}).get("enum")
    if choices is not None:
        field |= {"options": [{"value": one, "label": one} for one in choices], "custom": False}
    kept = ("description", "format", "default", "minimum", "maximum", "minLength", "maxLength")
    field |= {name: shape[name] for name in kept if name in shape}
    return field | {"type": "multiselect" if kind == "array" else kind}


def _chosen(value: Any) -> list[str]:
    if value is None:
        return []
    return [str(item) for item in value] if isinstance(value, list) else [str(value)]
