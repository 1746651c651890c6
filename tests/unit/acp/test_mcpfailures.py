"""Why an MCP server of a client is not there: what is told of it, and what is not."""

from __future__ import annotations

import pytest

from adapter.acp.mcpfailures import FAILED, reason
from contract.mcp import McpStatus

SECRET = "cAnary"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (f"NotFound: ChildProcess.spawn (/x --key={SECRET})", "its program was not found"),
        (f"PermissionDenied: ChildProcess.spawn (/tmp {SECRET})", "its program may not be run"),
        ("Connection closed", "it ended before it could be used"),
        ("Request timed out", "it did not answer in time"),
        ("Unable to connect. Is the computer able to ...?", "its address cannot be reached"),
        (f"getaddrinfo ENOTFOUND {SECRET}.invalid", "its address cannot be reached"),
        (f"Error POSTing to endpoint: {SECRET}", "its address refused the request"),
        (f"Unexpected content type: {SECRET}", "its address does not speak MCP"),
        (f"Header 'Authorization' has invalid value: 'Bearer {SECRET}'", FAILED),
        (f"The property 'options.env['KEY']' must be a string. Received '{SECRET}'", FAILED),
        (f"{SECRET}: Connection closed", FAILED),
        ("", FAILED),
    ],
)
def test_a_failure_is_told_by_its_kind_and_quotes_nothing(error: str, said: str) -> None:
    assert reason(McpStatus(status="failed", error=error)) == said
    assert SECRET not in said


@pytest.mark.parametrize("state", ["pending", "disabled", "needs_auth"])
def test_a_state_without_a_failure_has_its_own_phrase(state: str) -> None:
    said = reason(McpStatus(status=state, error=SECRET))
    assert said != FAILED
    assert SECRET not in said


def test_a_state_that_is_not_known_is_a_failure() -> None:
    assert reason(McpStatus(status=SECRET)) == FAILED
