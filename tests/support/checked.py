"""The small ACP client with the oracle on every line."""

from __future__ import annotations

import asyncio

from stubs.client import AcpClient
from stubs.client.client import Policy
from tests.support.oracle import Oracle


class CheckedClient(AcpClient):
    """`faults()` is empty as long as the agent keeps to the protocol."""

    def __init__(self, process: asyncio.subprocess.Process, policy: Policy) -> None:
        super().__init__(process, policy)
        self.oracle = Oracle()
        self.on_message = self.oracle.received

    async def send_raw(self, data: bytes) -> None:
        """Send, and tell the oracle of the requests."""
        self.oracle.wrote(data)
        await super().send_raw(data)

    def faults(self) -> list[str]:
        """All breaches so far: of the schema and of the order of things."""
        return [*self.oracle.faults, *self.violations]
