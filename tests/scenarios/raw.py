"""An agent process that is spoken to in bytes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final

from tests.support.daemons import launched
from tests.support.oracle import Json, Oracle

DEADLINE: Final = 30.0


class RawAgent:
    """Bytes in, JSON lines out, each of them held against ACP."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.oracle = Oracle()

    async def say(self, data: bytes) -> None:
        """Write the bytes as they are."""
        assert self.process.stdin is not None
        self.oracle.wrote(data)
        self.process.stdin.write(data)
        await self.process.stdin.drain()

    async def line(self) -> Json:
        """The next line. Raises ValueError if it is no JSON, EOFError at the end."""
        assert self.process.stdout is not None
        async with asyncio.timeout(DEADLINE):
            line = await self.process.stdout.readline()
        if not line:
            raise EOFError
        message: Json = json.loads(line)
        self.oracle.received(message)
        return message

    async def reply(self) -> Json:
        """The next line that answers something, under whatever id; updates are passed over."""
        while "method" in (message := await self.line()):
            pass
        return message

    async def answer(self, ident: object) -> Json:
        """The next answer with that id; other lines are passed over."""
        while True:
            message = await self.line()
            if "method" not in message and message.get("id") == ident:
                return message

    async def request(self, ident: object, method: str, params: Json) -> Json:
        """A request and its answer."""
        message = {"jsonrpc": "2.0", "id": ident, "method": method, "params": params}
        await self.say(json.dumps(message).encode() + b"\n")
        return await self.answer(ident)

    def close(self, *descriptors: int) -> None:
        """Close our ends of its standard streams of these numbers."""
        # asyncio has no way of its own to stop reading from a process.
        transport: asyncio.SubprocessTransport = self.process._transport  # type: ignore[attr-defined]
        for descriptor in descriptors:
            pipe = transport.get_pipe_transport(descriptor)
            assert pipe is not None
            pipe.close()

    async def ended(self) -> None:
        """Wait until the process has ended by itself."""
        async with asyncio.timeout(DEADLINE):
            await self.process.wait()

    async def finish(self) -> tuple[int, bytes, bytes]:
        """EOF; the exit code, the rest of stdout, and stderr."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        async with asyncio.timeout(DEADLINE):
            out, err = await self.process.communicate()
        assert self.process.returncode is not None
        return self.process.returncode, out, err


@asynccontextmanager
async def raw_agent(argv: Sequence[str], env: Mapping[str, str]) -> AsyncIterator[RawAgent]:
    """The process, killed at the end if it is still there; its lines must keep to ACP."""
    pipe = asyncio.subprocess.PIPE
    async with launched(argv, env) as (command, _):
        process = await asyncio.create_subprocess_exec(
            *command, env=env, stdin=pipe, stdout=pipe, stderr=pipe, limit=2**20
        )
        try:
            agent = RawAgent(process)
            yield agent
            assert agent.oracle.faults == []
        finally:
            if process.returncode is None:
                process.kill()
                await process.communicate()
