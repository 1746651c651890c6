"""Why an MCP server of a client is not there, in sentences of ours. Pure.

The server's own text quotes the command with its arguments, a header's value, a variable, and what
the MCP server itself has said (measured on OpenCode 2.0.15): only the kind of failure is read off
its beginning, and nothing of it is passed on.
"""

from __future__ import annotations

from typing import Final

from contract.mcp import McpStatus

FAILED: Final = "it failed to start"
_STATES: Final = (
    ("pending", "it was still starting when the time was over"),
    ("disabled", "it is switched off at the OpenCode server"),
    ("needs_auth", "it wants a sign-in, and nobody can sign in for one client"),
)
_BEGINNINGS: Final = (
    ("NotFound: ChildProcess.spawn", "its program was not found"),
    ("PermissionDenied: ChildProcess.spawn", "its program may not be run"),
    ("Connection closed", "it ended before it could be used"),
    ("Request timed out", "it did not answer in time"),
    ("Unable to connect", "its address cannot be reached"),
    ("getaddrinfo ", "its address cannot be reached"),
    ("Error POSTing to endpoint", "its address refused the request"),
    ("Unexpected content type", "its address does not speak MCP"),
)


def reason(status: McpStatus) -> str:
    """One phrase for a server that is listed and not connected."""
    for state, phrase in _STATES:
        if status.status == state:
            return phrase
    for beginning, phrase in _BEGINNINGS:
        if status.error.startswith(beginning):
            return phrase
    return FAILED
