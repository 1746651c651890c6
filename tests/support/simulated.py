"""A pure model of the server's scheduling: what it does with prompts, and the events it emits.

One root session. Work is a script of small steps, so that a test can stop the world between any
two events. As measured: one execution serves every queued prompt; steered items join at the next
step boundary, together; an interrupt parks what is in the inbox; a wake runs everything; a
rejection without a message ends the execution and parks nothing.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field

from contract import events as ev
from tests.support.drive import SESSION, event
from tests.support.projection import Projection


@dataclass
class Script:
    """What the model does with a prompt: `tools` tool steps, then an answer of `words` deltas.

    `asks`: each tool asks first. `drops`: the answer breaks off once and is tried again.
    """

    words: int = 2
    tools: int = 0
    asks: bool = False
    drops: bool = False
    fails: bool = False


@dataclass
class Item:
    id: str
    script: Script
    delivery: str


@dataclass
class Simulated:
    """The server. `emitted` are its events so far; `view` is what its reads say now."""

    view: Projection = field(default_factory=lambda: Projection(SESSION))
    emitted: list[ev.Event] = field(default_factory=list)
    owners: dict[str, frozenset[str]] = field(default_factory=dict)
    texts: dict[tuple[str, str], str] = field(default_factory=dict)
    _items: dict[str, Item] = field(default_factory=dict)
    _work: Iterator[None] | None = None
    _answering: set[str] = field(default_factory=set)
    _woken: bool = False
    _stop: str | None = None
    _ask: str | None = None
    _decision: str | None = None
    _messages: int = 0
    _open: tuple[str, str | None, str | None] | None = None

    # --- requests -------------------------------------------------------------------------

    def post(self, item_id: str, script: Script, delivery: str = "queue") -> None:
        self._items[item_id] = Item(item_id, script, delivery)
        item = {"type": "user", "delivery": delivery}
        self._emit("inbox.enqueued", inboxID=item_id, item=item)
        self._woken = True

    def delete(self, item_id: str) -> None:
        if self._items.pop(item_id, None) is not None:
            self._emit("inbox.cancelled", inboxID=item_id)

    def wake(self, item_id: str) -> bool:
        item = self._items.get(item_id)
        if item is None or item.delivery == "steer":
            return False
        item.delivery = "steer"
        self._woken = True
        return True

    def requeue(self, item_id: str) -> None:
        if item_id in self._items:
            self._items[item_id].delivery = "queue"

    def interrupt(self) -> None:
        if self._work is not None and self._stop is None:
            self._stop = "user"
            self._woken = False

    def reply(self, ask_id: str, decision: str, *, go_on: bool = True) -> bool:
        """False: no such ask, it is settled."""
        if ask_id != self._ask or self._stop is not None:
            return False
        self._ask = None
        self._decision = decision
        self._emit("permission.replied", requestID=ask_id, reply=decision)
        if decision == "reject" and not go_on:
            self._stop = "shutdown"
        return True

    def answer_foreign_ask(self, ours: set[str]) -> None:
        """The front end of a turn that is none of `ours` answers what that turn asks."""
        if self._ask is not None and not self._answering & ours:
            self.reply(self._ask, "once")

    # --- time -----------------------------------------------------------------------------

    def advance(self) -> bool:
        """Do one small step; False when there is nothing to do until somebody acts."""
        if self._stop is not None:
            self._wind_down()
            return True
        if self._work is None:
            if not (self._woken and self._items):
                self._woken = False
                return False
            self._work = self._execution()
        if self._ask is not None:
            return False
        if next(self._work, self) is self:
            self._work = None
        return True

    def _execution(self) -> Iterator[None]:
        self._woken = False
        self._emit("execution.started")
        yield
        while self._items:
            item = self._deliver_next()
            yield
            for number in range(item.script.tools):
                yield from self._tool_step(item, number)
                self._deliver_steered()
                yield
            if item.script.fails:
                self._emit("step.failed", assistantMessageID=self._message(), error={"type": "p"})
                yield
                self._answering.clear()
                self._emit("execution.failed", error={"type": "p", "message": "boom"})
                self._woken = bool(self._items)
                return
            yield from self._answer(item)
            self._answering.clear()
            yield
        self._emit("execution.succeeded")

    def _deliver_next(self) -> Item:
        steered = [item for item in self._items.values() if item.delivery == "steer"]
        first = (steered or list(self._items.values()))[0]
        for item in steered or [first]:
            self._deliver(item)
        return first

    def _deliver_steered(self) -> None:
        for item in [item for item in self._items.values() if item.delivery == "steer"]:
            self._deliver(item)

    def _deliver(self, item: Item) -> None:
        del self._items[item.id]
        self._answering.add(item.id)
        self._emit("inbox.delivered", inboxID=item.id)

    def _message(self) -> str:
        self._messages += 1
        message = f"msg_a{self._messages}"
        self.owners[message] = frozenset(self._answering)
        self._emit("step.started", assistantMessageID=message)
        return message

    def _tool_step(self, item: Item, number: int) -> Iterator[None]:
        message, call = self._message(), f"call_{number}"
        at = {"assistantMessageID": message, "id": call}
        self._open = (message, None, call)
        yield
        self._emit("tool.input.started", **at, name="shell")
        self._emit("tool.called", **at, input={})
        yield
        if item.script.asks:
            self._ask = f"per_{message}"
            source = {"type": "tool", "messageID": message, "id": call}
            self._emit("permission.asked", id=self._ask, action="shell", source=source)
            yield
        self._open = (message, None, None)
        if self._decision == "reject":
            self._emit("tool.failed", **at, error={"type": "tool.execution", "message": "no"})
        else:
            self._emit("tool.success", **at, content=[{"type": "text", "text": "ok"}])
        self._decision = None
        yield
        self._open = None
        self._emit("step.ended", assistantMessageID=message, finish="tool-calls")

    def _answer(self, item: Item) -> Iterator[None]:
        if item.script.drops:
            message = yield from self._text(item, 1)
            error = {"type": "provider.transport", "message": "reset"}
            self._open = None
            self._emit("step.failed", assistantMessageID=message, error=error)
            yield
            self._emit("retry.scheduled", assistantMessageID=message, attempt=2, at=0, error=error)
            yield
            self._emit("synthetic", text="Continue")
            yield
        message = yield from self._text(item, item.script.words)
        self._open = None
        self._emit("step.ended", assistantMessageID=message, finish="stop")

    def _text(self, item: Item, words: int) -> Generator[None, None, str]:
        message = self._message()
        part = {"assistantMessageID": message, "ordinal": 0}
        self._open = (message, "", None)
        yield
        self._emit("text.started", **part)
        for number in range(words):
            self._open = (message, self.texts.get((message, "text"), ""), None)
            yield
            self._say(message, f"{item.id}:{number} ")
        self._open = (message, None, None)
        yield
        self._emit("text.ended", **part, text=self.texts[message, "text"])
        yield
        return message

    def _say(self, message: str, text: str) -> None:
        key = (message, "text")
        self.texts[key] = self.texts.get(key, "") + text
        self._emit("text.delta", assistantMessageID=message, ordinal=0, delta=text)

    def _wind_down(self) -> None:
        reason, self._stop = self._stop, None
        self._work = self._ask = self._decision = None
        if self._open is not None:
            message, text, call = self._open
            self._open = None
            if text is not None and (message, "text") in self.texts:
                full = self.texts[message, "text"]
                self._emit("text.ended", assistantMessageID=message, ordinal=0, text=full)
            error = {"type": "aborted", "message": "Step interrupted"}
            if call is not None:
                self._emit("tool.failed", assistantMessageID=message, id=call, error=error)
            self._emit("step.failed", assistantMessageID=message, error=error)
        self._answering.clear()
        self._emit("execution.interrupted", reason=reason)
        self._woken = reason == "shutdown" and bool(self._items)

    def _emit(self, kind: str, **data: object) -> None:
        full = kind.partition(".")[0] == "permission"
        name = kind if full else f"session.{kind}"
        made = event(name, {"sessionID": SESSION, **data})
        self.emitted.append(made)
        self.view.apply(made)
