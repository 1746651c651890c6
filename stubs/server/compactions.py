"""Compactions, manual and automatic: one of a session at a time, with a row from its start on.

The model is asked as for any step (stubs/choice.py); a script of a summary in the conversation
says how it answers. The words of the failures are the server's.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from stubs.choice import ASKS_FOR_SUMMARY, ASKS_TO_MEND, SUMMARY
from stubs.script import Stream, Wait
from stubs.server.config import Settings
from stubs.server.journal import Journal
from stubs.server.project import Project
from stubs.server.prompting import Model, ProviderError
from stubs.server.store import Session
from stubs.server.usage import price, reference, tokens
from stubs.server.wire import Ids, Json, now_ms

UNAVAILABLE: Final[Json] = {
    "type": "compaction.unavailable",
    "message": "Nothing to compact yet",
}
NO_SUMMARY: Final[Json] = {
    "type": "compaction.failed",
    "message": "Compaction produced no summary",
}
BAD_SUMMARY: Final[Json] = {
    "type": "compaction.failed",
    "message": "Compaction summary did not match the required template",
}
CANCELLED: Final[Json] = {"type": "aborted", "message": "Compaction cancelled"}
INTERRUPTED: Final[Json] = {
    "type": "compaction.interrupted",
    "message": "Compaction was interrupted",
}
# The part of a model's context from which on the server compacts by itself; measured: less.
FULL: Final = 0.85


class CompactionError(Exception):
    """There is no summary; `error` is its form on the wire."""

    def __init__(self, error: Json) -> None:
        super().__init__(str(error["message"]))
        self.error = error


@dataclass(slots=True)
class Compaction:
    """One in progress; `item_id` is None for an automatic one."""

    session: Session
    row: Json
    item_id: str | None
    spent: int = 0

    @property
    def said(self) -> Json:
        """What its events say at first."""
        return {"reason": self.row["reason"]}

    @property
    def input(self) -> Json:
        return {} if self.item_id is None else {"inputID": self.item_id}


class Compactions:
    """Those of all sessions."""

    def __init__(self, settings: Settings, ids: Ids, journal: Journal) -> None:
        self._settings = settings
        self._ids = ids
        self._journal = journal
        self._model = Model()

    def is_due(self, session: Session) -> bool:
        """Whether the last answer has filled the model's context."""
        last = next((row for row in reversed(session.rows) if row["type"] in LAST), None)
        used = (last or {}).get("tokens")
        if last is None or last["type"] != "assistant" or not used:
            return False
        model = Project(session.directory).model(reference(session)) or {}
        context = int(model.get("limit", {}).get("context", 0))
        filled = used["input"] + used["output"] + used["reasoning"] + used["cache"]["read"]
        return bool(context) and filled >= FULL * context

    async def run(self, session: Session, item_id: str | None, stop: asyncio.Event) -> Json | None:
        """Its error; None for one that succeeded. `aborted` is that of an interrupt."""
        reason = "auto" if item_id is None else "manual"
        row: Json = {"type": "compaction", "id": item_id or self._ids.make("msg")}
        row |= {"time": {"created": now_ms()}, "status": "running", "reason": reason}
        row |= {"summary": "", "recent": ""}
        one = Compaction(session, row, item_id)
        recent = _recent(session) if item_id is not None else _unanswered(session)
        kept = "" if item_id is not None else recent
        said = {**one.said, "recent": kept, **one.input}
        self._journal.durable(session, "session.compaction.started", said)
        session.rows.append(row)
        work = asyncio.create_task(self._summary(one))
        stopped = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({work, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                return self._fail(one, CANCELLED)
            self._succeed(one, work.result(), recent)
        except CompactionError as failure:
            return self._fail(one, failure.error)
        finally:
            work.cancel()
            stopped.cancel()
            await asyncio.wait({work, stopped})
        return None

    def repair(self, session: Session) -> None:
        """An execution starts: what a killed server left behind has failed."""
        for row in session.rows:
            if row["type"] == "compaction" and row["status"] == "running":
                item_id = row["id"] if row["reason"] == "manual" else None
                self._fail(Compaction(session, row, item_id), INTERRUPTED)

    async def _summary(self, one: Compaction) -> str:
        if not any(row["type"] in ("user", "assistant") for row in one.session.rows):
            raise CompactionError(UNAVAILABLE)
        await asyncio.sleep(self._settings.request_delay)
        text = await self._ask(one, ASKS_FOR_SUMMARY[0])
        if text and not _fits(text):
            text = await self._ask(one, ASKS_TO_MEND)
        if not text:
            raise CompactionError(NO_SUMMARY)
        if not _fits(text):
            raise CompactionError(BAD_SUMMARY)
        return text

    async def _ask(self, one: Compaction, words: str) -> str:
        """One request; a fault that may pass is tried again, and nobody is told."""
        attempt = 1
        while True:
            try:
                return await self._answer(one, words)
            except ProviderError as failure:
                if not failure.retryable or attempt >= self._settings.retry_attempts:
                    raise CompactionError(failure.error) from failure
                attempt += 1
                await asyncio.sleep(self._settings.retry_base)

    async def _answer(self, one: Compaction, words: str) -> str:
        request = self._model.request(one.session, last_step=False, asks=words)
        if request.refusal is not None:
            raise request.refusal
        said = ""
        for action in request.step.actions:
            if isinstance(action, Wait):
                await asyncio.sleep(action.ms / 1000)
            elif isinstance(action, Stream) and action.kind == "text":
                for piece in action.pieces:
                    delta = {"text": piece}
                    self._journal.passing(one.session, "session.compaction.delta", delta)
                    said += piece
                    await asyncio.sleep(action.pause_ms / 1000)
        one.spent += 1
        return said

    def _succeed(self, one: Compaction, text: str, recent: str) -> None:
        session = one.session
        cost = self._spend(one)
        self._journal.hidden(session)
        told: Json = {"model": reference(session)}
        used: Json = {"tokens": tokens(), "cost": cost}
        body = {**one.said, **told, "text": text, "recent": recent, **used}
        self._journal.durable(session, "session.compaction.ended", body)
        one.row |= {"status": "completed", **told, "summary": text, "recent": recent, **used}

    def _fail(self, one: Compaction, error: Json) -> Json:
        spent = {"cost": self._spend(one), "tokens": tokens()} if one.spent else {}
        body = {**one.said, "error": error, **one.input, **spent}
        self._journal.durable(one.session, "session.compaction.failed", body)
        for key in ("summary", "recent"):
            del one.row[key]
        one.row |= {"status": "failed", "error": error, **spent}
        return error

    def _spend(self, one: Compaction) -> float:
        cost = price(one.session)
        self._journal.usage(one.session, cost, tokens())
        return cost


LAST: Final = ("assistant", "compaction")


def _fits(text: str) -> bool:
    headings = [line for line in SUMMARY.splitlines() if line.startswith("## ")]
    return all(heading in text for heading in headings)


def _unanswered(session: Session) -> str:
    """What an automatic one keeps: of an answer that filled the context nothing is left."""
    texts: list[str] = []
    for row in reversed(session.rows):
        if row["type"] == "assistant":
            break
        if row["type"] == "user":
            texts.insert(0, f"[User]: {row['text']}")
    return "\n\n".join(texts)


def _recent(session: Session) -> str:
    """The last exchange, as the checkpoint keeps it."""
    user = next((row for row in reversed(session.rows) if row["type"] == "user"), None)
    if user is None:
        return ""
    answer = [
        f"[Assistant]: {''.join(p['text'] for p in row['content'] if p['type'] == 'text')}"
        for row in session.rows[session.rows.index(user) :]
        if row["type"] == "assistant"
    ]
    return "\n\n".join([f"[User]: {user['text']}", *answer])
