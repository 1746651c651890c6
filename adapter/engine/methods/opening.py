"""session/new, session/resume and session/fork: a session becomes open on the connection."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager

from adapter.acp.meta import ours, path
from adapter.acp.transport import Call
from adapter.core import values as v
from adapter.engine.mcpmisses import NotAdded, not_added
from adapter.engine.methods.desk import Desk, Json
from adapter.engine.methods.directories import (
    check_home,
    check_kept,
    check_new,
    directory_of,
    home_of,
)
from adapter.engine.past import Reading
from adapter.engine.sessions import Open
from adapter.upstream.errors import Refused, UpstreamError
from contract import acp
from contract.errors import AcpError, invalid_params, session_gone
from contract.reads import Session
from contract.routes import is_id


class Opening:
    """Every method answers with the session's choices."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def new(self, call: Call) -> Json:
        params = acp.read_params(acp.NewSession, call.params)
        directory = directory_of(params)
        self._desk.sessions.check_room()
        engine = self._desk.engine
        engine.mcp.wanted(params.mcp_servers)
        await engine.check_contract()
        self._desk.sessions.check_pace()
        await check_new(engine.server, directory)
        session = await engine.server.create_session(directory)
        async with self.opened(session, home_of(session, directory), call) as one:
            return {"sessionId": session.id, **await self.answer(one, params, call)}

    async def resume(self, call: Call) -> Json:
        """One notice follows: what became of the session's last prompt of ours."""
        params, session, home = await self.existing(call)
        async with self.opened(session, home, call) as one:
            past = one.hub.past.read()
            result = await self.answer(one, params, call)
            self.tell_past(one, past, call)
            return result

    async def fork(self, call: Call) -> Json:
        """A copy of a session, open as a new one; of its rows before `_meta….before` if given."""
        before = _before(call)
        params, source, home = await self.existing(call)
        self._desk.sessions.check_room()
        self._desk.sessions.check_pace()
        try:
            session = await self._desk.engine.server.sessions.fork(source.id, before)
        except Refused as error:
            raise _unforked(error) from error
        async with self.opened(session, home_of(session, home), call) as one:
            return {"sessionId": session.id, **await self.answer(one, params, call)}

    async def existing(self, call: Call) -> tuple[acp.ResumeSession, Session, str]:
        """The parameters of an opening, its session at the server, and where that lives.

        AcpError -32002 if the server has none of that id, -32052 if it belongs elsewhere, -32603
        if its directory is gone.
        """
        params = acp.read_params(acp.ResumeSession, call.params)
        directory = directory_of(params)
        self._desk.engine.mcp.wanted(params.mcp_servers)
        self._desk.sessions.check_room(params.session_id)
        await self._desk.engine.check_contract()
        try:
            session = await self._desk.engine.server.session(params.session_id)
        except ValueError:
            # Outside the grammar of OpenCode's ids, so no server has it.
            raise session_gone(params.session_id) from None
        home = check_home(session, directory)
        await check_kept(self._desk.engine.server, home)
        return params, session, home

    def tell_past(self, one: Open, past: Reading, call: Call, *, seen: bool = False) -> None:
        """Behind the answer of `call`, and behind all else that follows it: the last prompt.

        A client that has `seen` the conversation needs no word on an answer that is finished.
        """
        follow_up = call.after

        def after() -> None:
            if follow_up is not None:
                follow_up()
            if self._desk.sessions.holds(one):
                one.hub.past.tell(one.owner, past, seen=seen)

        call.after = after

    def opened(self, session: Session, home: str, call: Call) -> AbstractAsyncContextManager[Open]:
        """Attach the connection, as the parameters want it (`OpenSessions.opening`)."""
        ambient = ours(call.params).get("ambient") is True
        return self._desk.sessions.opening(session, home, ambient=ambient)

    async def answer(self, one: Open, params: acp.NewSession, call: Call) -> Json:
        """The choices; what else the client should know follows the answer."""
        choices = await one.hub.choices.read()
        failures = await self._register(one, params)
        call.after = lambda: self._follow_up(one, params, failures)
        return one.hub.choices.told(one.owner, choices)

    async def _register(self, one: Open, params: acp.NewSession) -> list[NotAdded]:
        """The MCP servers of the client that its session goes on without."""
        mcp = self._desk.engine.mcp
        servers = mcp.wanted(params.mcp_servers)
        hub = one.hub
        failures = await mcp.register(hub.session_id, hub.directory, one.owner, servers)
        if not self._desk.sessions.is_open(one):
            mcp.release(hub.session_id, one.owner)
        return failures

    def _follow_up(self, one: Open, params: acp.NewSession, failures: Sequence[NotAdded]) -> None:
        if not self._desk.sessions.holds(one):
            return
        one.hub.choices.announce(one.owner)
        if failures:
            one.hub.notify(not_added(one.owner, failures))
        if params.mcp_servers and self._desk.engine.settings.mcp.policy == "notice":
            one.hub.notify(
                v.Notice(
                    one.owner,
                    "mcp",
                    "The MCP servers of this client were not added: on a shared server they "
                    "would be added to the directory, for every client.",
                )
            )


def _before(call: Call) -> str | None:
    """The first message that a fork leaves out. AcpError -32602 for what is no message id."""
    before = ours(call.params).get("before")
    if before is None:
        return None
    if not isinstance(before, str) or not is_id("messageID", before):
        raise invalid_params(f"{path('before')} must be the id of a message.")
    return before


def _unforked(error: Refused) -> UpstreamError | AcpError:
    """Why the server made no fork, where that lies in what was asked for."""
    match error.tag:
        case "InvalidRequestError":
            return invalid_params("This session has no messages yet, so nothing can be forked.")
        case "MessageNotFoundError":
            return invalid_params(f"{path('before')} names no message of this session.")
        case _:
            return error
