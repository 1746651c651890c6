"""session/close: the session stays at the server; session/delete: it does not."""

from __future__ import annotations

from adapter.acp.meta import ours
from adapter.acp.transport import Call
from adapter.engine.methods.desk import Desk, Json
from contract import acp
from contract.errors import AcpError, Code
from contract.routes import is_id


class Ending:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def close(self, call: Call) -> Json:
        """Stops the connection's own turn and nobody else's (design.md)."""
        params = acp.read_params(acp.OfSession, call.params)
        sessions = self._desk.sessions
        one = sessions.take(params.session_id)
        if one is None:
            return {}
        # What is closed already cannot be kept open by a cancelled request.
        call.on_cancel = lambda: None
        await sessions.stop(one)
        await sessions.detach(one)
        await self._desk.engine.mcp.settled(params.session_id)
        return {}

    async def delete(self, call: Call) -> Json:
        """Delete a session at the server; one that it does not have counts as deleted (ACP).

        The server takes all children along, so that a session with children is refused unless
        `_meta["opencode-acp"].cascade` is true: AcpError -32602 `has_children`, and nothing
        happened. A child that is made between that look and the deletion goes along.
        """
        params = acp.read_params(acp.OfSession, call.params)
        session_id = params.session_id
        if not is_id("sessionID", session_id):
            return {}
        server, sessions = self._desk.engine.server, self._desk.sessions
        if ours(call.params).get("cascade") is not True:
            await self._check_childless(session_id)
        # From here on it cannot be taken back.
        call.on_cancel = lambda: None
        # Nothing new begins in it, and nothing that was begun is left without an answer.
        one = sessions.take(session_id)
        deleted = False
        try:
            await sessions.stop(one)
            await server.sessions.delete(session_id)
            deleted = True
        finally:
            if not deleted:
                await sessions.put_back(one)
        await sessions.detach(one)
        # What this connection opened anew meanwhile.
        anew = sessions.take(session_id)
        await sessions.stop(anew)
        await sessions.detach(anew)
        await self._desk.engine.mcp.settled(session_id)
        return {}

    async def _check_childless(self, session_id: str) -> None:
        if await self._desk.engine.server.children(session_id, bound=1):
            raise AcpError(
                Code.INVALID_PARAMS,
                "This session has sub-agents' sessions, which would be deleted with it; delete "
                'them first, or set _meta["opencode-acp"].cascade to true.',
                {"code": "has_children"},
            )
