"""The small ACP client with the oracle on every line."""

from __future__ import annotations

import asyncio
import json

from stubs.client import AcpClient
from stubs.client.client import Policy
from tests.support.oracle import Json, Oracle


class CheckedClient(AcpClient):
    """`faults()` is empty as long as the agent keeps to the protocol."""

    def __init__(self, process: asyncio.subprocess.Process, policy: Policy) -> None:
        super().__init__(process, policy)
        self.oracle = Oracle()
        self.on_message = self.oracle.received

    async def send_raw(self, data: bytes) -> None:
        """Send, and tell the oracle of the requests."""
        for line in data.splitlines():
            message = _object(line)
            if message is not None:
                self.oracle.sent(message)
        await super().send_raw(data)

    def faults(self) -> list[str]:
        """All breaches so far: of the schema and of the order of things."""
        return [*self.oracle.faults, *self.violations]


def _object(line: bytes) -> Json | None:
    if not line.startswith(b'{"jsonrpc"'):
        return None
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
