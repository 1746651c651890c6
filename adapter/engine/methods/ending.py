"""session/close: the connection lets go of a session, which stays at the server."""

from __future__ import annotations

from adapter.acp.transport import Call
from adapter.engine.methods.desk import Desk, Json
from contract import acp


class Ending:
    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def close(self, call: Call) -> Json:
        """Stops the connection's own turn and nobody else's (design.md)."""
        params = acp.read_params(acp.OfSession, call.params)
        one = self._desk.sessions.take(params.session_id)
        if one is None:
            return {}
        # What is closed already cannot be kept open by a cancelled request.
        call.on_cancel = lambda: None
        one.hub.cancel(one.owner)
        await one.hub.settled(one.owner)
        await self._desk.sessions.detach(one)
        await self._desk.engine.mcp.settled(params.session_id)
        return {}
