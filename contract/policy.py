"""What an operator decides for every client, in the words of the settings."""

from __future__ import annotations

from typing import Final, Literal

McpPolicy = Literal["notice", "register", "reject"]
"""For the MCP servers that a client brings: told that they are not added, added, or refused."""

MCP_POLICIES: Final[tuple[McpPolicy, ...]] = ("notice", "register", "reject")
