"""Failures of the server as the error that a client gets outside of a turn."""

from __future__ import annotations

from adapter.upstream.errors import SessionMissing, Unauthorised, Unreachable, UpstreamError
from contract.errors import AcpError, Code, auth_required, say, session_gone


def as_acp_error(error: UpstreamError, server: str) -> AcpError:
    """-32002 only for the server's own 404 of a session, -32000 for 401, else -32603."""
    match error:
        case SessionMissing():
            return session_gone(error.session_id)
        case Unauthorised():
            return auth_required()
        case Unreachable():
            return AcpError(
                Code.INTERNAL,
                f"The OpenCode server at {server} cannot be reached; start it with "
                "`opencode serve` and try again.",
            )
        case _:
            return AcpError(Code.INTERNAL, say(str(error)))
