"""The answer to ACP `initialize`: what this agent can do. Pure and cheap to import.

It is the same for every client and needs no server: acpx probes an agent without ever opening a
session, and a server that is down must not fail the probe.
"""

from __future__ import annotations

from contract.errors import invalid_params
from contract.version import VERSION

META = "opencode-acp"
"""The one key of `_meta` under which everything of ours stands, in both directions."""

EXTENSIONS = ("ambient", "before", "cascade", "childUpdates", "includeChildren")
"""What a client may say to us there: docs/clients.md has the requests that each belongs to."""

PROTOCOL_VERSION = 1
"""ACP version 1, the only stable one: also the answer to a client that offers another."""


def initialize_result(params: dict[str, object], *, mcp: bool = False) -> dict[str, object]:
    """The result for the `params` of the client. AcpError -32602 without an integer version.

    What is not listed is not supported (ACP: an absent capability is unsupported). `mcp`:
    MCP servers of a client are registered, which is possible for stdio and http.
    """
    version = params.get("protocolVersion")
    if type(version) is not int:
        raise invalid_params("initialize needs an integer protocolVersion.")
    return {
        "protocolVersion": PROTOCOL_VERSION,
        "agentInfo": {"name": "opencode-acp", "title": "OpenCode", "version": VERSION},
        "agentCapabilities": {
            "loadSession": True,
            "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
            "mcpCapabilities": {"http": mcp, "sse": False},
            "sessionCapabilities": {
                "list": {},
                "delete": {},
                "fork": {},
                "resume": {},
                "close": {},
            },
            "_meta": {META: {"extensions": list(EXTENSIONS)}},
        },
        "authMethods": [],
    }
