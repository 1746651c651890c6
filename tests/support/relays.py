"""Relays as processes, and a daemon in front of them that does what a test tells it."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from contract.attach import ACCEPTED
from stubs.parts import ROOT

COMMAND: Final = str(ROOT / ".venv" / "bin" / "opencode-acp")
DEADLINE: Final = 30
LONG: Final = 1024 * 1024
IMPORTS: Final = frozenset(
    {
        "adapter",
        "adapter.output",
        "adapter.relay",
        "contract",
        "contract.attach",
        "contract.version",
    }
)
"""What a relay imports of ours, and it imports nothing else that is a file."""
BUILT_IN: Final = frozenset({"_socket", "select", "posix", "sys"})
"""What it may import of what is built into Python."""

Reader = asyncio.StreamReader
Writer = asyncio.StreamWriter
Process = asyncio.subprocess.Process
Serve = Callable[[Reader, Writer, bytes], Awaitable[None]]
Start = Callable[..., Awaitable[Process]]


@asynccontextmanager
async def daemon(path: Path, serve: Serve, answer: bytes = ACCEPTED) -> AsyncIterator[None]:
    """Answers each hello so, and gives the connection and the hello to `serve`."""

    writers: list[Writer] = []

    async def accept(reader: Reader, writer: Writer) -> None:
        writers.append(writer)
        hello = await reader.readline()
        writer.write(answer)
        await serve(reader, writer, hello)

    server = await asyncio.start_unix_server(accept, path, limit=4 * LONG)
    async with server:
        yield
        for writer in writers:
            writer.transport.abort()


async def hang(reader: Reader, writer: Writer, hello: bytes) -> None:
    """Says nothing until the client has left."""
    await reader.read()
    writer.close()


async def echo(reader: Reader, writer: Writer, hello: bytes) -> None:
    """Sends back each chunk."""
    while chunk := await reader.read(64 * 1024):
        writer.write(chunk)
        await writer.drain()
    writer.close()


@asynccontextmanager
async def starting() -> AsyncIterator[Start]:
    """Starts relays; those that are left at the end are killed."""
    started: list[Process] = []

    async def begin(
        *flags: str,
        command: Sequence[str] = (COMMAND,),
        env: dict[str, str] | None = None,
        stdout: int = subprocess.PIPE,
        stderr: int = subprocess.PIPE,
    ) -> Process:
        process = await asyncio.create_subprocess_exec(
            *command,
            *flags,
            stdin=subprocess.PIPE,
            stdout=stdout,
            stderr=stderr,
            limit=4 * LONG,
            env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", **(env or {})},
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        if process.returncode is None:
            process.kill()
        await process.communicate()


def flags(path: Path, mode: str = "require") -> list[str]:
    return ["--socket", str(path), "--daemon", mode]


async def ended(process: Process) -> tuple[int | None, bytes, str]:
    """Its exit code, and the rest of what it wrote; its input stays open."""
    assert process.stdout is not None and process.stderr is not None
    async with asyncio.timeout(DEADLINE):
        out, err = await asyncio.gather(process.stdout.read(), process.stderr.read())
        return await process.wait(), out, err.decode()


def one_sentence(err: str) -> bool:
    return err.startswith("opencode-acp: ") and err.count("\n") == 1
