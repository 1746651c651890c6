"""session/prompt and session/cancel: one turn at a time for a session of a connection."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable

from adapter.acp import prompts, updates
from adapter.acp.transport import Call
from adapter.core import values as v
from adapter.engine.methods.desk import Desk, Json
from contract import acp
from contract.errors import Code, not_sent
from contract.semantics import OWN_MESSAGE_PREFIX


class Prompting:
    """`drained` waits until a session's updates are with the client."""

    def __init__(self, desk: Desk, drained: Callable[[str], Awaitable[None]]) -> None:
        self._desk = desk
        self._drained = drained

    async def prompt(self, call: Call) -> Json:
        return await self._outcome(*self._begin(call))

    def _begin(self, call: Call) -> tuple[str, asyncio.Future[v.Outcome]]:
        params = acp.read_params(acp.Prompt, call.params)
        one = self._desk.sessions.of(params.session_id)
        if one.hub.core.busy(one.owner):
            raise not_sent(
                Code.BUSY,
                "busy",
                "This session is busy with a prompt of this connection; wait for its end or "
                "cancel it.",
                retry_safe=True,
            )
        self._desk.sessions.check_prompts()
        content = prompts.content(params.prompt, self._desk.client.limits)
        turn_id = f"{OWN_MESSAGE_PREFIX}{uuid.uuid4().hex}"
        answer = one.hub.prompt(one.owner, turn_id, content)
        call.on_cancel = lambda: one.hub.cancel_turn(turn_id)
        # A turn may last for hours, and its attachments are the server's to keep.
        call.let_go()
        return params.session_id, answer

    async def _outcome(self, session_id: str, answer: asyncio.Future[v.Outcome]) -> Json:
        # Shielded: the hub still waits for the outcome when the client has left.
        outcome = await asyncio.shield(answer)
        await self._drained(session_id)
        if outcome.stop is None:
            raise updates.prompt_error(outcome, self._desk.client.limits)
        return updates.prompt_result(outcome)

    def cancel(self, params: Json) -> None:
        """`session/cancel`: a no-op without a turn in flight here (ACP)."""
        one = self._desk.sessions.get(params.get("sessionId"))
        if one is not None:
            one.hub.cancel(one.owner)
