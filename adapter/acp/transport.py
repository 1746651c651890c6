"""What a peer needs from the outside: a byte stream, a clock, and the two sides of a request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from adapter.acp.jsonrpc import Id, JsonObject

Clock = Callable[[], float]
"""Seconds, never going back."""


class Transport(Protocol):
    """A connected byte stream. A client that left shows as EOF when reading, OSError in `drain`."""

    async def read(self) -> bytes:
        """The next bytes; b"" at EOF, and for a pending or later read once `close` was called."""

    def write(self, data: bytes) -> None:
        """Hand bytes to the operating system without waiting; what it does not take is kept."""

    async def drain(self) -> None:
        """Wait until all that was written is with the operating system; OSError if it refuses."""

    def close(self) -> None:
        """Stop both directions and forget what was not written. May be called again."""


@dataclass(slots=True, eq=False)
class Call:
    """One request of the client while it is being handled.

    `on_cancel` is what `$/cancel_request` does for it: a handler that can end well sets it and
    still answers by itself; unset, the handler's task is cancelled and -32800 is the answer.
    `after` is called once the answer is queued: for what speaks of a session that only the answer
    makes known. `on_let_go` is called once the parameters are let go of.
    """

    id: Id
    method: str
    params: JsonObject
    on_cancel: Callable[[], None] | None = field(default=None)
    after: Callable[[], None] | None = field(default=None)
    on_let_go: Callable[[], None] | None = field(default=None)

    def let_go(self) -> None:
        """Forget the parameters: the handler has read them, and its answer may take long."""
        self.params = {}
        on_let_go, self.on_let_go = self.on_let_go, None
        if on_let_go is not None:
            on_let_go()


class Handler(Protocol):
    """The methods behind a peer."""

    async def request(self, call: Call) -> JsonObject:
        """The result of `call`; AcpError is the error answer, anything else raised is a -32603."""

    def notification(self, method: str, params: JsonObject) -> None:
        """Take a notification; unknown ones are ignored (JSON-RPC section 4.1, ACP)."""
