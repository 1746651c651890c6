"""Permission rules, the asks that wait for an answer, and the saved answers."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from stubs.server.journal import Journal
from stubs.server.store import Session, Store
from stubs.server.wire import Ids, Json, now_ms

Decision = Literal["once", "always", "reject"]
DECISIONS: Final = ("once", "always", "reject")


class DeclinedError(Exception):
    """Rejected without a message, or along with a sibling: the turn ends. `args[0]` says it."""


class RefusedError(Exception):
    """Rejected with a message, or denied by a rule: the tool fails and the turn goes on."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a tool wants to do: on which resources, and the patterns that "always" would save.

    `source` names the call, `metadata` holds the changes of an edit.
    """

    session: Session
    action: str
    resources: list[str]
    save: list[str]
    source: Json
    metadata: Json | None = None


@dataclass(slots=True)
class Ask:
    """An open ask."""

    id: str
    wanted: Wanted
    answer: asyncio.Future[None] = field(repr=False)

    @property
    def session(self) -> Session:
        """The session that owns the ask."""
        return self.wanted.session

    def view(self) -> Json:
        """As the event and the lists show it."""
        wanted = self.wanted
        metadata = {} if wanted.metadata is None else {"metadata": wanted.metadata}
        return {
            "id": self.id,
            "sessionID": wanted.session.id,
            "action": wanted.action,
            "resources": wanted.resources,
            "save": wanted.save,
            **metadata,
            "source": wanted.source,
        }


class Permissions:
    """All open asks; they do not survive a restart, saved patterns do."""

    def __init__(self, ids: Ids, store: Store, journal: Journal) -> None:
        self._ids = ids
        self._store = store
        self._journal = journal
        self.asks: dict[str, Ask] = {}
        self.saved: list[Json] = []

    async def check(self, wanted: Wanted, rules: Sequence[Json]) -> None:
        """Return when the action may go on. Raises DeclinedError or RefusedError.

        An interrupt while it waits takes the ask away without an event.
        """
        effects = {self._effect(wanted, rules, resource) for resource in wanted.resources}
        if "deny" in effects:
            raise RefusedError
        if "ask" not in effects:
            return
        answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        ask = Ask(self._ids.make("per"), wanted, answer)
        self.asks[ask.id] = ask
        self._journal.plain("permission.asked", ask.view(), wanted.session.directory)
        try:
            await answer
        finally:
            self.asks.pop(ask.id, None)

    def of_session(self, session_id: str) -> list[Json]:
        """Open asks of that session alone: those of its children are theirs."""
        return [ask.view() for ask in self.asks.values() if ask.session.id == session_id]

    def of_directory(self, directory: str) -> list[Json]:
        """Open asks of every session of a location."""
        return [ask.view() for ask in self.asks.values() if ask.session.directory == directory]

    def reply(self, session_id: str, ask_id: str, decision: Decision, message: str | None) -> bool:
        """Answer an ask on its own session. False when it is not open there."""
        ask = self.asks.get(ask_id)
        if ask is None or ask.session.id != session_id:
            return False
        self._settle(ask, decision)
        if decision == "always":
            self._save(ask)
        if decision != "reject":
            ask.answer.set_result(None)
            for other in [ask for ask in self.asks.values() if self._is_saved(ask.wanted)]:
                self._settle(other, "always")
                other.answer.set_result(None)
            return True
        siblings = [other for other in self.asks.values() if other.session.id == session_id]
        if message is None:
            for other in siblings:
                self._settle(other, "reject")
            for other in (ask, *siblings):
                other.answer.set_exception(DeclinedError("The user declined this tool call"))
            return True
        ask.answer.set_exception(RefusedError())
        # The tool that was refused fails before its siblings are told; they take no answer more.
        for other in siblings:
            del self.asks[other.id]
        loop = asyncio.get_running_loop()
        loop.call_soon(loop.call_soon, self._decline, siblings)
        return True

    def _decline(self, asks: list[Ask]) -> None:
        for ask in asks:
            if not ask.answer.done():
                self._settle(ask, "reject")
                ask.answer.set_exception(DeclinedError("The user declined this tool call"))

    def _settle(self, ask: Ask, decision: Decision) -> None:
        self.asks.pop(ask.id, None)
        data = {"requestID": ask.id, "reply": decision}
        self._journal.passing(ask.session, "permission.replied", data)

    def _save(self, ask: Ask) -> None:
        for pattern in ask.wanted.save:
            self.saved.append(
                {
                    "id": self._ids.make("psv"),
                    "projectID": ask.session.project_id,
                    "action": ask.wanted.action,
                    "resource": pattern,
                    "time": {"created": now_ms(), "updated": now_ms()},
                }
            )

    def _is_saved(self, wanted: Wanted) -> bool:
        return all(self._allowed(wanted, resource) for resource in wanted.resources)

    def _allowed(self, wanted: Wanted, resource: str) -> bool:
        return any(
            saved["projectID"] == wanted.session.project_id
            and saved["action"] == wanted.action
            and matches(saved["resource"], resource)
            for saved in self.saved
        )

    def _effect(self, wanted: Wanted, rules: Sequence[Json], resource: str) -> str:
        effect = effect_of(rules, wanted.action, resource)
        return "allow" if effect == "ask" and self._allowed(wanted, resource) else effect


def effect_of(rules: Sequence[Json], action: str, resource: str) -> str:
    """allow, ask or deny: the last rule that matches counts, none means ask."""
    for rule in reversed(rules):
        if matches(rule["action"], action) and matches(rule["resource"], resource):
            return str(rule["effect"])
    return "ask"


def is_removed(rules: Sequence[Json], action: str) -> bool:
    """Whether a deny of everything takes the tool away from the model."""
    for rule in reversed(rules):
        if matches(rule["action"], action) and rule["resource"] == "*":
            return bool(rule["effect"] == "deny")
    return False


def matches(pattern: str, text: str) -> bool:
    """Whether `*` (anything) and `?` (one character) in the pattern fit the whole text.

    A trailing " *" also fits nothing: "ls *" matches "ls".
    """
    if pattern.endswith(" *") and text == pattern[:-2]:
        return True
    parts = (".*" if char == "*" else "." if char == "?" else re.escape(char) for char in pattern)
    return re.fullmatch("".join(parts), text, re.DOTALL) is not None
