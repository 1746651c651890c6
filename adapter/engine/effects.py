"""What the core asks of the server, performed, with the answer given back to the core.

A request that fails is logged and left: the timers of the core (cancel, watch, gap) and the next
snapshot decide what becomes of the turn, never an exception here.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final

from adapter.core import values as v
from adapter.engine.services import Services
from adapter.upstream.errors import Refused, SessionMissing, UpstreamError

logger = logging.getLogger(__name__)

# The text reaches the tool's error, not the model (facts, section 5); its presence is what lets
# the turn go on.
REJECTION: Final = "The user refused this."
BAD_REQUEST: Final = 400


class Effects:
    """The server-side outputs of one session's core."""

    def __init__(
        self,
        services: Services,
        session_id: str,
        directory: str,
        step: Callable[[v.Input], None],
    ) -> None:
        self._services = services
        self._session_id = session_id
        self._directory = directory
        self._step = step

    async def perform(self, output: v.Output) -> None:
        """Send one request. Raises neither `UpstreamError` nor `ValueError` (an id of bad form)."""
        try:
            await self._perform(output)
        except SessionMissing:
            self._step(v.Reconcile(v.Snapshot(state="gone")))
        except (UpstreamError, ValueError) as error:
            logger.warning("%s failed: %s", type(output).__name__, error)

    async def _perform(self, output: v.Output) -> None:
        server, session_id = self._services.server, self._session_id
        match output:
            case v.Interrupt():
                await server.interrupt(session_id)
            case v.StopChild(child_id):
                await server.interrupt(child_id)
            case v.Withdraw(turn_id):
                await server.withdraw(session_id, turn_id)
            case v.Wake(turn_id, requeue):
                if requeue:
                    await server.wake(session_id, turn_id, "queue")
                pending = await server.wake(session_id, turn_id)
                self._step(v.Woken(turn_id, pending))
            case v.ReadInbox():
                items = await server.inbox(session_id)
                active = await server.active()
                ids = tuple(item.id for item in items)
                self._step(v.InboxRead(ids, session_id in active))
            case v.Reply():
                await self._reply(output)
            case v.AnswerForm(owner_id, form_id, answer):
                reply = server.reply_form(owner_id, form_id, answer, self._directory)
                await self._settle(form_id, reply)
            case v.DismissForm(owner_id, form_id):
                dismissal = server.dismiss_form(owner_id, form_id, self._directory)
                await self._settle(form_id, dismissal)
            case _:
                raise TypeError(f"no effect of the server: {type(output).__name__}")

    async def _reply(self, output: v.Reply) -> None:
        message = REJECTION if output.decision == "reject" and output.go_on else None
        reply = self._services.server.reply_permission(
            output.session_id, output.ask_id, output.decision, message
        )
        observer = self._services.observer

        def told(found: bool) -> None:
            observer.answered(output.decision, output.why if found else "elsewhere")

        await self._settle(output.ask_id, reply, told)

    async def _settle(
        self, ask_id: str, reply: Awaitable[bool], told: Callable[[bool], None] = lambda _: None
    ) -> None:
        """Send the reply of an ask, and tell the core what became of it, whatever that is.

        `told` hears once the ask is settled whether it was by this reply.
        """
        try:
            found = await reply
        except Refused as error:
            # The error names the field that is wrong, never its value.
            logger.warning("the reply to %s was refused: %s", ask_id, error)
            refused = error.status == BAD_REQUEST
            self._step(v.Replied(ask_id, settled=False, refused=refused))
        except (UpstreamError, ValueError) as error:
            logger.warning("the reply to %s did not arrive: %s", ask_id, error)
            self._step(v.Replied(ask_id, settled=False))
        except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError) as error:
            # A fault of ours, which the same answer would only repeat. It may quote the answer.
            what = type(error).__name__
            logger.error("the reply to %s could not be sent: %s", ask_id, what)
            self._step(v.Replied(ask_id, settled=False, refused=True))
        else:
            told(found)
            self._step(v.Replied(ask_id, settled=True, found=found))
