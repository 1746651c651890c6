"""What the model is asked: the step of the running script, chosen from the session's rows.

The choice itself is that of the scripted model (stubs/choice.py), so that one script means the
same on the stub and on a real server.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Any, Final

from stubs.choice import Choice, choose
from stubs.script import Action, Drop, Error, ScriptError, Step, Stream
from stubs.server.store import Session
from stubs.server.wire import Json

MAX_COUNTERS: Final = 4096

ERROR_TYPES: Final = {
    400: "provider.invalid-request",
    401: "provider.auth",
    403: "provider.auth",
    413: "provider.invalid-request",
    429: "provider.rate-limit",
}
# How the server puts a summary before the model.
CHECKPOINT: Final = "<conversation-checkpoint>"
DROPPED: Final[Json] = {
    "type": "provider.transport",
    "message": "ECONNRESET: The socket connection was closed unexpectedly. For more information, "
    "pass `verbose: true` in the second argument to fetch()",
    "status": 200,
}


class ProviderError(Exception):
    """The model answered an error; `error` is its form on the wire."""

    def __init__(self, error: Json, *, retryable: bool) -> None:
        super().__init__(str(error["message"]))
        self.error = error
        self.retryable = retryable


class Model:
    """Counts how often a step was asked for, for `error` and `drop`; the oldest count goes."""

    def __init__(self) -> None:
        self._asked: OrderedDict[str, int] = OrderedDict()

    def request(self, session: Session, *, last_step: bool, asks: str = "") -> Request:
        """The answer to the session's next request; `last_step` at an agent's step cap.

        `asks` is what the server writes at the end of a request of its own.
        """
        messages = list(_messages(session))
        if asks:
            messages.append({"role": "user", "content": asks})
        if last_step:
            # The server closes the request of a capped step with words of the assistant.
            messages.append({"role": "assistant", "content": "Tools are disabled"})
        try:
            choice = choose(session.id, messages, has_tools=True)
        except ScriptError as error:
            text = str(error)
            body = {"type": "provider.invalid-request", "message": text, "status": 400}
            raise ProviderError(body, retryable=False) from error
        count = self._asked.pop(choice.key, 0) + 1
        self._asked[choice.key] = count
        if len(self._asked) > MAX_COUNTERS:
            self._asked.popitem(last=False)
        return Request(choice, count)


class Request:
    """One request: the step to play, and whether its faults still strike."""

    def __init__(self, choice: Choice, count: int) -> None:
        self.index = choice.index
        self.step: Step = choice.step
        self._count = count

    @property
    def refusal(self) -> ProviderError | None:
        """The HTTP error that this request meets, if any."""
        error = self.step.error
        if error is None or not self._strikes(error):
            return None
        kind = ERROR_TYPES.get(error.status, "provider.internal")
        body: Json = {
            "type": kind,
            "message": f"scripted error {error.status}",
            "status": error.status,
        }
        return ProviderError(body, retryable=error.status >= 500 or error.status == 429)

    def drops(self, action: Action) -> bool:
        """Whether the connection breaks at this action."""
        return isinstance(action, Drop) and self._strikes(action)

    def _strikes(self, action: Error | Drop) -> bool:
        return action.times is None or self._count <= action.times


def is_first_byte(action: Action) -> bool:
    """Whether the action sends something."""
    return not isinstance(action, Stream) or bool(action.pieces)


def _messages(session: Session) -> Iterable[Json]:
    """The rows as chat messages, from the last compaction on."""
    rows = session.rows
    for at in range(len(rows) - 1, -1, -1):
        if rows[at]["type"] == "compaction" and rows[at].get("status") == "completed":
            yield {"role": "user", "content": f"{CHECKPOINT}\n{rows[at]['recent']}"}
            rows = rows[at + 1 :]
            break
    for row in rows:
        if row["type"] in ("user", "synthetic"):
            yield {"role": "user", "content": row["text"]}
        elif row["type"] == "assistant" and row["content"]:
            yield from _assistant(row)


def _assistant(row: Json) -> Iterable[Json]:
    content: list[Any] = row["content"]
    text = "".join(part["text"] for part in content if part["type"] == "text")
    tools = [part for part in content if part["type"] == "tool"]
    message: Json = {"role": "assistant", "content": text}
    if tools:
        message["tool_calls"] = [{"id": part["id"]} for part in tools]
    yield message
    for part in tools:
        yield {"role": "tool", "tool_call_id": part["id"], "content": ""}
