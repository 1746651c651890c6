"""Why an MCP server of a client is not there, and how its session is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from adapter.acp.mcpfailures import reason as reason_of
from adapter.core import values as v
from adapter.upstream.errors import (
    Ambiguous,
    Refused,
    Unauthorised,
    Unreachable,
    UpstreamError,
)
from contract.mcp import McpStatus


@dataclass(frozen=True, slots=True)
class NotAdded:
    """A server that its session goes on without; `name` is the client's, `reason` a phrase."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Miss:
    """Why one is not there; `is_unanswered`: the server may have gone down in the middle of it."""

    reason: str
    is_unanswered: bool = False


def reason_in(states: Mapping[str, McpStatus] | None, name: str) -> str:
    if states is None or name not in states:
        return "the OpenCode server does not say that it started"
    return reason_of(states[name])


def is_unanswered(error: UpstreamError) -> bool:
    return isinstance(error, Unreachable) or (isinstance(error, Ambiguous) and error.status is None)


def why(error: UpstreamError) -> str:
    """What became of a request, as one phrase."""
    match error:
        case Unreachable():
            return "the OpenCode server cannot be reached"
        case Unauthorised():
            return "the OpenCode server refused the password"
        case Refused():
            return "the OpenCode server refused it"
        case Ambiguous():
            return "the OpenCode server gave no definite answer"
        case _:
            return "the OpenCode server gave no usable answer"


def not_added(owner: int, failures: Sequence[NotAdded]) -> v.Notice:
    """One notice for all that a session goes on without."""
    listed = "; ".join(f"{one.name} ({one.reason})" for one in failures)
    what = "This MCP server was" if len(failures) == 1 else "These MCP servers were"
    return v.Notice(
        owner,
        "mcp",
        f"{what} not added, and the session goes on without: {listed}.",
        {"servers": [{"name": one.name, "reason": one.reason} for one in failures]},
    )
