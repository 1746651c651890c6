"""Forms of MCP servers, which belong to no session and name no call (measured on 2.0.15).

Such a form is a turn's if a call that runs for it is one of that server. Two turns of one directory
that call the same server at the same time cannot be told apart: both are shown the form, and the
first answer counts.
Workaround "a form of an MCP server is the turn's that calls it".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from adapter.core.state import SessionState, Turn
from adapter.core.values import ToolStatus
from contract.shapes import Form

# How the server makes a tool's name of that of its MCP server.
_ODD: Final = re.compile(r"[^A-Za-z0-9_-]")
# The tool that runs code, which may call the tools of every MCP server.
CODE_TOOL: Final = "execute"
CODE: Final = "code"

Call = tuple[str, str]


def turn_of(state: SessionState, form: Form, but: Call | None = None) -> Turn | None:
    """The turn that a running call of the form's server is of; `but` for a call that ends now."""
    server = (form.metadata or {}).get("server")
    if not isinstance(server, str) or not server:
        return None
    for message_id, message in state.messages.items():
        for call_id, tool in message.tools.items():
            runs = tool.status is ToolStatus.IN_PROGRESS and (message_id, call_id) != but
            if runs and _is_of(server, tool.name, tool.input or {}):
                return state.turns.get(message.turn_id)
    for errand in state.errands.values():
        for at, line in errand.lines.items():
            runs = line.status in (ToolStatus.IN_PROGRESS, None) and at != but
            owner = state.messages.get(errand.message_id)
            if runs and owner is not None and _is_of(server, line.name, line.input):
                return state.turns.get(owner.turn_id)
    return None


def _is_of(server: str, tool: str, given: Mapping[str, object]) -> bool:
    name = _ODD.sub("_", server)
    if tool == CODE_TOOL:
        return re.search(rf"\b{re.escape(name)}\b", str(given.get(CODE, ""))) is not None
    return tool.startswith(f"{name}_")
