"""The requests that make a turn: a prompt, a slash command, a compaction.

Each is one POST that is never repeated here: what a repetition would do is different for each of
them. Raises `Unauthorised` and `SessionMissing`; everything else that may become of a POST is a
value of `posted`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from adapter.upstream.decode import clean
from adapter.upstream.errors import Ambiguous, Refused, ShapeMismatch, Unreachable
from adapter.upstream.posted import Admitted, NotAdmitted, Posted, Taken, Unclear, Unsent
from adapter.upstream.shaped import an_object, data, shaped
from adapter.upstream.transport import Answer, Retry, Transport
from contract import calls, routes, semantics
from contract.reads import InboxItem
from contract.routes import Route

File = Mapping[str, Any]

# The server's answer, with status 500, to a command whose definition cannot work: nothing is
# enqueued then (measured on OpenCode 2.0.15 with an agent that does not exist).
BAD_DEFINITION: Final = "CommandExecutionError"


class Posts:
    """A part of `Server`."""

    def __init__(self, http: Transport) -> None:
        self._http = http

    async def prompt(
        self,
        session_id: str,
        message_id: str,
        text: str,
        files: Sequence[File] = (),
        skills: Sequence[str] = (),
        *,
        resume: bool = True,
        deadline: float | None = None,
    ) -> Posted:
        """A repetition must carry `resume=False` (rules 2, 3).

        Workaround "probe with resume:false".

        `files` are the server's attachments: `{uri, name?, description?}`; `skills` are ids.
        `deadline` in seconds is that of the settings if not given.
        """
        body: dict[str, object] = {
            "id": message_id,
            "text": text,
            "delivery": semantics.QUEUE,
        }
        if files:
            body["files"] = [dict(file) for file in files]
        if skills:
            body["skills"] = [{"id": skill} for skill in skills]
        if not resume:
            body["resume"] = False
        answer = await self._post(routes.PROMPT, session_id, body, deadline)
        item = answer if not isinstance(answer, Answer) else _item(answer)
        if not isinstance(item, InboxItem):
            return item
        if item.id != message_id:
            return Unclear("The OpenCode server answered with another prompt.")
        return Admitted(item, same_text=item.payload.text == clean(text))

    async def command(
        self, session_id: str, turn_id: str, name: str, text: str, files: Sequence[File] = ()
    ) -> Posted:
        """`Taken`: the server has the command, and makes an item that carries the turn's mark.

        Workaround "a command is known by a mention". The answer may take long: the server runs
        the shell commands of a template first, and stops them when the request is given up.
        """
        body: dict[str, object] = {
            "name": name,
            "text": text,
            "delivery": semantics.QUEUE,
            "agents": [calls.mention(turn_id)],
        }
        if files:
            body["files"] = [dict(file) for file in files]
        deadline = self._http.settings.command_deadline
        answer = await self._post(routes.COMMAND, session_id, body, deadline, accept=(500,))
        if not isinstance(answer, Answer):
            return answer
        if answer.status != 500:
            return Taken()
        told = an_object(answer.json())
        message = str(told.get("message", "no reason given"))
        if told.get("_tag") == BAD_DEFINITION:
            return NotAdmitted(500, message)
        return Unclear(f"The OpenCode server failed (500): {message}", failed=True)

    async def compact(
        self, session_id: str, message_id: str, *, deadline: float | None = None
    ) -> Posted:
        """The item of another compaction, if one waits already; then our id is of no account.

        A repetition makes no second item: while ours waits it is answered with it, and `Taken`
        says that our id is known and waits no more.
        """
        body = {"id": message_id, "delivery": semantics.QUEUE}
        answer = await self._post(routes.COMPACT, session_id, body, deadline, accept=(409,))
        if not isinstance(answer, Answer):
            return answer
        if answer.status == 409:
            return Taken()
        item = _item(answer)
        return Admitted(item) if isinstance(item, InboxItem) else item

    async def _post(
        self,
        route: Route,
        session_id: str,
        body: Mapping[str, object],
        deadline: float | None,
        accept: tuple[int, ...] = (),
    ) -> Answer | NotAdmitted | Unsent | Unclear:
        settings = self._http.settings
        try:
            return await self._http.call(
                route,
                {"sessionID": session_id},
                body=body,
                retry=Retry.NEVER,
                deadline=settings.prompt_deadline if deadline is None else deadline,
                silence=deadline,
                accept=accept,
            )
        except Unreachable as error:
            return Unsent(str(error))
        except Ambiguous as error:
            return Unclear(str(error), failed=error.status is not None)
        except ShapeMismatch as error:
            return Unclear(str(error))
        except Refused as error:
            return NotAdmitted(error.status, error.message)


def _item(answer: Answer) -> InboxItem | Unclear:
    try:
        return shaped(InboxItem, data(answer))
    except ShapeMismatch as error:
        return Unclear(str(error))
