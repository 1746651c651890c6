"""The typed calls of the OpenCode server that the adapter makes.

Every call raises the errors of `adapter.upstream.errors` and `ValueError` for an id outside the
grammar of `contract.routes.url`. Reads and idempotent writes are retried within the settings'
deadline; what must happen once at most is retried only when nothing was sent.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

import httpx

from adapter.upstream.acceptance import Acceptance
from adapter.upstream.credentials import Credential
from adapter.upstream.errors import (
    Ambiguous,
    Refused,
    SessionMissing,
    ShapeMismatch,
    TooLarge,
)
from adapter.upstream.history import History
from adapter.upstream.mcp import McpServers
from adapter.upstream.posts import Posts
from adapter.upstream.sessions import Sessions
from adapter.upstream.shaped import Walk, an_object, data, objects, row_of, shaped
from adapter.upstream.transport import (
    Clock,
    Requested,
    Retry,
    ServerSettings,
    Sleep,
    Transport,
    unheard,
)
from contract import routes, semantics
from contract.check import live_routes
from contract.reads import Agent, AnyRow, Command, InboxItem, Info, Model, Session, Skill, row_call
from contract.routes import Route
from contract.shapes import GLOBAL, Form, PermissionAsk

# A page of sessions when children are read; the server's own default is 50.
_CHILD_PAGE: Final = 50
# Seconds for a list that a session can be opened without.
_OPTIONAL: Final = 3.0
# Pages that one call reads; reached before the bound of rows only where pages had to be small.
_PAGES: Final = 128


class Server:
    """One OpenCode server. Close it with `aclose`, or use it as a context manager."""

    def __init__(
        self,
        base_url: str,
        credential: Credential | None = None,
        settings: ServerSettings | None = None,
        *,
        sleep: Sleep = asyncio.sleep,
        clock: Clock = time.monotonic,
        requested: Requested = unheard,
        acceptance: Acceptance | None = None,
    ) -> None:
        self._http = Transport(
            base_url,
            credential,
            settings or ServerSettings(),
            sleep=sleep,
            clock=clock,
            requested=requested,
            acceptance=acceptance,
        )
        self.mcp = McpServers(self._http)
        self.posts = Posts(self._http)
        self.sessions = Sessions(self._http)

    async def __aenter__(self) -> Server:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._http.aclose()

    @property
    def base_url(self) -> str:
        return self._http.base_url

    @property
    def credential(self) -> Credential | None:
        return self._http.credential

    def authenticate(self, credential: Credential | None) -> None:
        """Every request from now on, and the next connection of the feed, goes by this."""
        self._http.authenticate(credential)

    # The server

    async def info(self, *, deadline: float | None = None) -> Info:
        answer = await self._http.call(routes.INFO, deadline=deadline)
        return shaped(Info, answer.json())

    async def routes(self) -> frozenset[tuple[str, str]]:
        """METHOD and path template of every route that the live server declares."""
        answer = await self._http.call(routes.OPENAPI)
        found = live_routes(answer.json())
        if not found:
            raise ShapeMismatch("The OpenCode server lists no routes.")
        return found

    def feed(self, *, silence: float) -> AbstractAsyncContextManager[httpx.Response]:
        """The response of the event feed, whatever its status; errors are those of httpx."""
        return self._http.stream(silence=silence)

    # Sessions

    async def create_session(self, directory: str) -> Session:
        """A new session. Its id is ours, so that a repeated request makes no second one."""
        body = {
            "id": f"{semantics.OWN_SESSION_PREFIX}{uuid.uuid4().hex}",
            "location": {"directory": directory},
        }
        answer = await self._http.call(routes.SESSION_CREATE, body=body)
        return shaped(Session, data(answer))

    async def has_directory(self, directory: str) -> bool:
        """Whether the server can work there: it has the directory, and may enter it.

        It answers 500 without a body for anything else, keeps nothing of it, and looks again the
        next time. A directory that it has is booted, as by any other use; from then on it has it
        until it ends, even if the directory is removed (measured on OpenCode 2.0.15).
        """
        try:
            await self._http.call(routes.LOCATION, query=_location(directory))
        except Ambiguous as error:
            if error.status != 500:
                raise
            return False
        return True

    async def session(self, session_id: str) -> Session:
        answer = await self._http.call(routes.SESSION_GET, {"sessionID": session_id})
        return shaped(Session, data(answer))

    async def children(self, session_id: str, bound: int = 128) -> tuple[Session, ...]:
        """Direct children, the newest first, at most `bound` of them.

        A list whose cursors lead nowhere is `ShapeMismatch`, never a part of the children.
        """
        found: list[Session] = []
        query = {"parentID": session_id, "limit": str(min(bound, _CHILD_PAGE))}
        routes.url(routes.SESSION_GET, sessionID=session_id)
        walk = Walk()
        while len(found) < bound:
            page, cursor = walk.page(await self._http.call(routes.SESSION_LIST, query=query))
            found.extend(shaped(Session, raw) for raw in page)
            if cursor is None:
                break
            query = {"cursor": cursor, "limit": query["limit"]}
        return tuple(found[:bound])

    async def active(self) -> frozenset[str]:
        """Ids of all sessions with a running execution."""
        answer = await self._http.call(routes.ACTIVE)
        return frozenset(an_object(data(answer)))

    async def set_agent(self, session_id: str, agent: str) -> None:
        """Each call adds a row and an event, so it is repeated only when it was not sent."""
        await self._http.call(
            routes.AGENT_SET,
            {"sessionID": session_id},
            body={"agent": agent},
            retry=Retry.UNSENT,
        )

    async def set_model(
        self, session_id: str, provider_id: str, model_id: str, variant: str | None = None
    ) -> None:
        model = {"id": model_id, "providerID": provider_id}
        if variant is not None:
            model["variant"] = variant
        await self._http.call(
            routes.MODEL_SET, {"sessionID": session_id}, body={"model": model}, retry=Retry.UNSENT
        )

    # Prompts

    async def wake(
        self, session_id: str, message_id: str, delivery: semantics.Delivery = semantics.STEER
    ) -> bool:
        """True: changed, and `steer` wakes. False: no longer pending, or `steer` already.

        Workaround "wake by PATCH to steer".
        """
        answer = await self._http.call(
            routes.INBOX_PATCH,
            {"sessionID": session_id, "inboxID": message_id},
            body={"delivery": delivery},
            accept=(409,),
        )
        return answer.status != 409

    async def withdraw(self, session_id: str, message_id: str) -> None:
        """Asks for the removal of a waiting prompt; the answer does not say whether it worked."""
        ids = {"sessionID": session_id, "inboxID": message_id}
        await self._http.call(routes.INBOX_DELETE, ids)

    async def inbox(self, session_id: str) -> tuple[InboxItem, ...]:
        answer = await self._http.call(routes.INBOX, {"sessionID": session_id})
        return tuple(shaped(InboxItem, raw) for raw in objects(data(answer)))

    async def interrupt(self, session_id: str) -> bool:
        """Whether something ran. Never repeated once sent: the second would stop a successor.

        Workaround "an interrupt is sent once".
        """
        answer = await self._http.call(
            routes.INTERRUPT, {"sessionID": session_id}, retry=Retry.UNSENT
        )
        return an_object(answer.json()).get("interrupted") is True

    # Messages

    async def rows_back_to(
        self, session_id: str, anchors: frozenset[str], bound: int = 1000
    ) -> tuple[tuple[AnyRow, ...], bool]:
        """(rows, oldest first, from the oldest anchor's page on; whether they are complete).

        An anchor is the id of a row, or what the mark of a command in it says.

        Read from the newest backwards until every anchor is in. Incomplete: `bound` rows or 128
        pages were read and an anchor is still missing. A page that is too large to be read is
        asked for in smaller ones. Cursors that lead nowhere are `ShapeMismatch`.
        """
        walk = Walk()
        newest_first: list[AnyRow] = []
        wanted = set(anchors)
        limit = min(semantics.MAX_PAGE, bound) if wanted else 1
        cursor: str | None = None
        while True:
            query = {"limit": str(limit)} | ({} if cursor is None else {"cursor": cursor})
            try:
                answer = await self._http.call(
                    routes.MESSAGES, {"sessionID": session_id}, query=query
                )
            except TooLarge:
                if limit == 1:
                    raise
                limit = max(1, limit // 8)
                continue
            page, cursor = walk.page(answer)
            rows = [row_of(raw) for raw in page]
            newest_first.extend(rows)
            wanted.difference_update(row.id for row in rows)
            wanted.difference_update(row_call(row) or "" for row in rows)
            if not wanted:
                return tuple(reversed(newest_first)), True
            if cursor is None:
                return tuple(reversed(newest_first)), True
            if len(newest_first) >= bound or walk.count >= _PAGES:
                return tuple(reversed(newest_first)), False

    def history(self, session_id: str, bound: int) -> History:
        """A reading of the newest `bound` rows, oldest first."""
        return History(self._http, session_id, bound)

    async def row(self, session_id: str, message_id: str) -> AnyRow | None:
        """One row, or None while the session has no such message."""
        ids = {"sessionID": session_id, "messageID": message_id}
        answer = await self._http.call(routes.MESSAGE, ids, accept=(404,))
        return None if answer.status == 404 else row_of(an_object(data(answer)))

    # Permissions and forms

    async def permissions(self, directory: str) -> tuple[PermissionAsk, ...]:
        """Open asks of every session of the directory, children included."""
        answer = await self._http.call(routes.PERMISSIONS, query=_location(directory))
        return tuple(shaped(PermissionAsk, raw) for raw in objects(data(answer)))

    async def reply_permission(
        self,
        session_id: str,
        permission_id: str,
        decision: semantics.Decision,
        message: str | None = None,
    ) -> bool:
        """False: it was settled before. `session_id` is the session that asks, not its root.

        Workaround "a rejection has a message and waits for its siblings".
        """
        body = {"decision": decision} | ({} if message is None else {"message": message})
        ids = {"sessionID": session_id, "requestID": permission_id}
        return await self._settle(routes.PERMISSION_REPLY, ids, body)

    async def forms(self, directory: str) -> tuple[Form, ...]:
        answer = await self._http.call(routes.FORMS, query=_location(directory))
        return tuple(shaped(Form, raw) for raw in objects(data(answer)))

    async def reply_form(
        self, session_id: str, form_id: str, answer: Mapping[str, Any], directory: str
    ) -> bool:
        """False: it was settled before. `Refused` 400: it stays open, the answer does not fit.

        Workaround "a form is answered with nothing".
        """
        ids = {"sessionID": session_id, "formID": form_id}
        body = {"answer": dict(answer)}
        return await self._settle(routes.FORM_REPLY, ids, body, _place(session_id, directory))

    async def dismiss_form(self, session_id: str, form_id: str, directory: str) -> bool:
        """False: it was settled before."""
        ids = {"sessionID": session_id, "formID": form_id}
        return await self._settle(routes.FORM_DISMISS, ids, query=_place(session_id, directory))

    async def _settle(
        self,
        route: Route,
        ids: Mapping[str, str],
        body: object = None,
        query: Mapping[str, str] | None = None,
    ) -> bool:
        try:
            answer = await self._http.call(route, ids, query=query, body=body, accept=(404, 409))
        except SessionMissing:
            return False
        return answer.status not in (404, 409)

    # Catalogue

    async def agents(self, directory: str) -> tuple[Agent, ...]:
        answer = await self._http.call(routes.AGENTS, query=_location(directory))
        return tuple(shaped(Agent, raw) for raw in objects(data(answer)))

    async def models(self, directory: str) -> tuple[Model, ...]:
        answer = await self._http.call(routes.MODELS, query=_location(directory))
        return tuple(shaped(Model, raw) for raw in objects(data(answer)))

    async def default_model(self, directory: str) -> Model | None:
        answer = await self._http.call(routes.MODEL_DEFAULT, query=_location(directory))
        model = data(answer)
        return None if model is None else shaped(Model, model)

    async def booted(self, directory: str) -> bool:
        """Whether the lists of a directory are whole; of a server that does not tell, they are."""
        try:
            answer = await self._http.call(routes.PLUGINS, query=_location(directory))
        except Refused:
            return True
        return bool(objects(data(answer)))

    async def commands(self, directory: str) -> tuple[Command, ...]:
        answer = await self._http.call(
            routes.COMMANDS, query=_location(directory), deadline=_OPTIONAL
        )
        return tuple(shaped(Command, raw) for raw in objects(data(answer)))

    async def skills(self, directory: str) -> tuple[Skill, ...]:
        answer = await self._http.call(
            routes.SKILLS, query=_location(directory), deadline=_OPTIONAL
        )
        return tuple(shaped(Skill, raw) for raw in objects(data(answer)))


def _place(session_id: str, directory: str) -> dict[str, str] | None:
    """Where a form without a session is found; a session knows its place itself."""
    return _location(directory) if session_id == GLOBAL else None


def _location(directory: str) -> dict[str, str]:
    return {"location[directory]": directory}
