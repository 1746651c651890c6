"""What can go wrong between the adapter and the OpenCode server, as types.

The split that matters is whether a request may have had its effect: `Unreachable` proves that
it did not, `Ambiguous` proves nothing (lifecycle.md, rule 2). No message holds a header or a
password. What the server wrote stands in `str()`, for the client, and not in `plain`, for the log.
"""

from __future__ import annotations

import re
from typing import Final

from contract.errors import Plain

TAG: Final = re.compile(r"[A-Za-z]{1,40}")


class UpstreamError(Plain, Exception):
    """Base: the server gave no usable answer. `str()` is one sentence."""


class Unreachable(UpstreamError):
    """Nothing was sent: connection refused, connect timeout, no free connection."""


class Ambiguous(UpstreamError):
    """It was sent, and no definite answer came: reset, read timeout, 5xx (then `status`)."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status

    @property
    def plain(self) -> str:
        return str(self) if self.status is None else f"The OpenCode server failed ({self.status})."


class Unauthorised(UpstreamError):
    """401 or 403: the server does not accept the password."""


class SessionMissing(UpstreamError):
    """404 with `_tag` SessionNotFoundError: the server does not have that session."""

    def __init__(self, session_id: str) -> None:
        super().__init__(f"The OpenCode server no longer has the session {session_id}.")
        self.session_id = session_id


class Refused(UpstreamError):
    """Any other 4xx. `tag` is the `_tag` of the error body, None for an empty body."""

    def __init__(self, status: int, tag: str | None, message: str) -> None:
        super().__init__(f"The OpenCode server refused the request ({status}): {message}")
        self.status = status
        self.tag = tag
        self.message = message

    @property
    def plain(self) -> str:
        tag = f" {self.tag}" if self.tag is not None and TAG.fullmatch(self.tag) else ""
        return f"The OpenCode server refused the request ({self.status}{tag})."


class ShapeMismatch(UpstreamError):
    """An answer that is not what the contract says: bad JSON, a web page, a missing field."""


class TooLarge(ShapeMismatch):
    """An answer beyond the bound of `ServerSettings.max_answer`."""
