"""What the clients of one session are asked, each a task until its answer or withdrawal."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine

from adapter.acp import elicitation, toolcalls
from adapter.acp.origins import meta_of
from adapter.core import values as v
from adapter.engine.client import Attachment
from adapter.engine.services import Services
from adapter.engine.tasks import Tasks
from adapter.limits import Limits
from contract.shapes import Form

logger = logging.getLogger(__name__)

Json = dict[str, object]


class Asking:
    """`step` gets the client's answer; the core bounds how many asks are open."""

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
        self._open: dict[str, asyncio.Task[None]] = {}
        self.tasks = Tasks()

    def show(self, asked: v.AskClient, attachment: Attachment | None) -> None:
        """Ask the client; without one the ask is rejected."""
        self._start(asked.ask.id, self._ask(asked, attachment))

    def show_form(self, asked: v.ShowForm, attachment: Attachment | None) -> None:
        """Have the client fill in the form; without one that can it gets no answer."""
        self._start(asked.form.id, self._fill_in(asked, attachment))

    def _start(self, ask_id: str, asking: Coroutine[object, object, None]) -> None:
        task = self.tasks.start(asking, f"ask {ask_id}")
        self._open[ask_id] = task
        task.add_done_callback(lambda done: self._ended(ask_id, done))

    def withdraw(self, ask_id: str) -> None:
        """Take the ask back; its client is told by `$/cancel_request`."""
        task = self._open.pop(ask_id, None)
        if task is not None:
            task.cancel()

    def _ended(self, ask_id: str, task: asyncio.Task[None]) -> None:
        if self._open.get(ask_id) is task:
            del self._open[ask_id]

    async def _ask(self, asked: v.AskClient, attachment: Attachment | None) -> None:
        decision: v.Decision = "reject"
        reason: v.AskReason = "no_client"
        if attachment is not None:
            reason = "no_answer"
            try:
                params = self._params(asked, attachment.client.limits)
                answer = await attachment.client.ask("session/request_permission", params)
                decision = self._decision(answer)
                reason = "client" if _is_choice(answer) else "no_answer"
            except Exception:
                logger.exception("the ask %s could not be shown", asked.ask.id)
        self._step(v.Answered(asked.ask.id, decision, reason))

    async def _fill_in(self, asked: v.ShowForm, attachment: Attachment | None) -> None:
        form = asked.form
        if attachment is None or not attachment.client.can.forms:
            self._step(v.FormAnswered(form.id, fate="unable"))
            return
        why = elicitation.why_not(form)
        if why is not None:
            self._step(v.FormAnswered(form.id, fate=why))
            return
        result: object = None
        try:
            params = elicitation.request(asked, self._session_id)
            result = await attachment.client.ask("elicitation/create", params)
        except Exception:
            logger.exception("the form %s could not be shown", form.id)
        self._step(_told(form, result))

    def _params(self, asked: v.AskClient, limits: Limits) -> Json:
        options = [{"optionId": "allow_once", "name": "Allow once", "kind": "allow_once"}]
        if self._services.settings.allow_always:
            options.append(
                {"optionId": "allow_always", "name": "Always allow", "kind": "allow_always"}
            )
        options.append({"optionId": "reject_once", "name": "Reject", "kind": "reject_once"})
        return {
            "sessionId": self._session_id,
            "toolCall": toolcalls.permission(
                asked.ask, asked.tool, self._directory, asked.child, limits
            ),
            "options": options,
            **meta_of(asked.origin),
        }

    def _decision(self, answer: object) -> v.Decision:
        """Only a clear choice of an option that was offered is an approval (rule 14)."""
        outcome = answer.get("outcome") if isinstance(answer, dict) else None
        if not isinstance(outcome, dict) or outcome.get("outcome") != "selected":
            return "reject"
        match outcome.get("optionId"):
            case "allow_once":
                return "once"
            case "allow_always" if self._services.settings.allow_always:
                return "always"
            case _:
                return "reject"


def _is_choice(answer: object) -> bool:
    """Whether the client chose something, be it only to cancel."""
    return isinstance(answer, dict) and isinstance(answer.get("outcome"), dict)


def _told(form: Form, result: object) -> v.FormAnswered:
    """What the client's result says. An answer is the user's own: no fault may log it."""
    try:
        return v.FormAnswered(form.id, *elicitation.answer(form, result))
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        what = type(error).__name__
    logger.error("the answer to the form %s could not be read: %s", form.id, what)
    return v.FormAnswered(form.id, fate="declined")
