"""Failures of the server as the error that a client gets outside of a turn."""

from __future__ import annotations

from adapter.config import Settings
from adapter.upstream.errors import SessionMissing, Unauthorised, Unreachable, UpstreamError
from contract.errors import AcpError, Code, auth_required, say, session_gone


def as_acp_error(error: UpstreamError, settings: Settings) -> AcpError:
    """-32002 only for the server's own 404 of a session, -32000 for 401, else -32603."""
    match error:
        case SessionMissing():
            return session_gone(error.session_id)
        case Unauthorised():
            source = settings.credential.source if settings.credential else None
            return auth_required(source, settings.password_fix)
        case Unreachable():
            return AcpError(
                Code.INTERNAL,
                f"The OpenCode server at {settings.server} cannot be reached; start it with "
                "`opencode serve`, or name another address by --server or OPENCODE_ACP_SERVER.",
            )
        case _:
            return AcpError(Code.INTERNAL, say(str(error)))
