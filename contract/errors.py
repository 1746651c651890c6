"""The error codes that a client can meet, and the one exception that carries them.

Source: lifecycle.md, "Outcomes and codes". acpx reads the codes and, in one case, the words:
a message that says a session is "not found" makes it throw the session away, so `say` keeps
those words out of every text that is passed on (acpx facts, section 4).
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import Final


class Code(IntEnum):
    """JSON-RPC error codes in use, with the reaction of acpx in words in docs/outcomes.md."""

    PARSE = -32700
    INVALID_REQUEST = -32600
    METHOD_UNKNOWN = -32601
    INVALID_PARAMS = -32602
    INTERNAL = -32603
    REQUEST_CANCELLED = -32800
    AUTH_REQUIRED = -32000
    SESSION_GONE = -32002
    UNKNOWN_OUTCOME = -32050
    BUSY = -32051
    OTHER_DIRECTORY = -32052
    LIMIT = -32053
    ROUTE_MISSING = -32054
    ENDED_ELSEWHERE = -32055
    FAILED_AFTER_TOOL = -32056


_GONE_PHRASES: Final = (
    (re.compile(r"resource[ _]not[ _]found", re.I), "resource is missing"),
    (re.compile(r"unknown session", re.I), "session that is not known here"),
    (re.compile(r"invalid session identifier", re.I), "session identifier that is not valid"),
    (re.compile(r"not found", re.I), "missing"),
)


def say(text: str) -> str:
    """Text of ours or passed on, without the words that acpx reads as "the session is gone"."""
    for pattern, plain in _GONE_PHRASES:
        text = pattern.sub(plain, text)
    return text


class Plain:
    """Mixin of exceptions that a log may tell of: nothing that a user, a model or a server wrote.

    Of any other exception only the class is logged, unless the level is `debug` (O-20).
    """

    @property
    def plain(self) -> str:
        """One sentence for the log; the exception's own, where that quotes nobody."""
        return str(self)


class AcpError(Plain, Exception):
    """An error answer: `code`, one sentence in `message`, optional `data` (JSON object)."""

    def __init__(self, code: int, message: str, data: dict[str, object] | None = None) -> None:
        super().__init__(message)
        self.code = int(code)
        self.message = message
        self.data = data

    @property
    def plain(self) -> str:
        return f"error {self.code}"

    def to_json(self) -> dict[str, object]:
        """The JSON-RPC `error` object."""
        error: dict[str, object] = {"code": self.code, "message": self.message}
        if self.data is not None:
            error["data"] = self.data
        return error


def invalid_params(message: str) -> AcpError:
    """-32602; never for a session id, since acpx takes it as "gone" in a resume."""
    return AcpError(Code.INVALID_PARAMS, say(message))


def not_sent(code: int, reason: str, message: str, *, retry_safe: bool) -> AcpError:
    """A prompt that was refused before anything was sent; `data` as for any prompt's error.

    `retry_safe` false: the same prompt would be refused again.
    """
    data = {
        "code": reason,
        "admitted": False,
        "messageId": None,
        "retrySafe": retry_safe,
        "gaps": 0,
        "shared": False,
    }
    return AcpError(code, say(message), data)


def session_gone(session_id: str) -> AcpError:
    """-32002, only where the server itself said 404 for that session, or cannot have that id."""
    session_id = session_id[:256]
    return AcpError(
        Code.SESSION_GONE,
        f"Session not found: {session_id}. Start a new session.",
        {"sessionId": session_id},
    )


def auth_required(source: str | None, fix: str) -> AcpError:
    """-32000 in words that acpx maps to AUTH_REQUIRED.

    `source` is where the password came from, and `fix` a clause on how another one gets there.
    """
    if source is None:
        return AcpError(
            Code.AUTH_REQUIRED,
            "authentication required: the OpenCode server wants a password and the adapter was "
            "given none; name a file by --password-file or OPENCODE_ACP_PASSWORD_FILE, or set "
            "OPENCODE_SERVER_PASSWORD.",
        )
    return AcpError(
        Code.AUTH_REQUIRED,
        f"authentication required: the OpenCode server refused the password of {source}; {fix}.",
    )
