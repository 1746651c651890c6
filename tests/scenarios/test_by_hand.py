"""What CONTRIBUTING.md says under "Drive it by hand", done as it stands there."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import signal
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from stubs.parts import ROOT, opencode
from tests.scenarios.stage import words

DEADLINE = 60.0
PASSWORDS = ("OPENCODE_SERVER_PASSWORD", "OPENCODE_PASSWORD", "OPENCODE_ACP_PASSWORD_FILE")
ENV = {name: value for name, value in os.environ.items() if name not in PASSWORDS}


def commands(module: str) -> list[list[str]]:
    """The commands of the page that start a server by that module or talk to its port.

    The port of the page may be taken on this machine; all of them get another one in its place.
    """
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = page.split("## Drive it by hand")[1].split("\n## ")[0]
    lines = [line for block in section.split("```")[1::2] for line in block.strip().splitlines()]
    (start,) = [line for line in lines if f"-m {module} " in line]
    (port,) = re.findall(r"--port (\d+)", start)
    with socket.create_server(("127.0.0.1", 0)) as free:
        other = str(free.getsockname()[1])
    rest = [line for line in lines if f":{port}" in line]
    return [shlex.split(line.replace(port, other)) for line in (start, *rest)]


@asynccontextmanager
async def running(argv: Sequence[str]) -> AsyncIterator[asyncio.StreamReader]:
    """A server, and what it says; Ctrl-C must end it."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*argv, cwd=ROOT, env=ENV, stdout=pipe)
    try:
        assert process.stdout is not None
        yield process.stdout
        process.send_signal(signal.SIGINT)
        async with asyncio.timeout(DEADLINE):
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def until_said(said: asyncio.StreamReader, begin: str) -> str:
    """The rest of the next line that begins so."""
    async with asyncio.timeout(DEADLINE):
        async for line in said:
            if line.decode().startswith(begin):
                return line.decode().removeprefix(begin).strip()
    raise EOFError(begin)


async def output(argv: Sequence[str]) -> str:
    """What a command prints; it must succeed."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *argv, cwd=ROOT, env=ENV, stdin=asyncio.subprocess.DEVNULL, stdout=pipe
    )
    async with asyncio.timeout(DEADLINE):
        said, _ = await process.communicate()
    assert process.returncode == 0, said.decode()
    return said.decode()


def text(said: str) -> str:
    """The answer in what the client printed; an update may stand between two pieces of it."""
    pieces = said.split("[text]\n")[1:]
    return "".join(piece.partition("\n[")[0].removesuffix("\n") for piece in pieces)


async def test_the_stub_answers_a_client_and_has_the_routes() -> None:
    start, client, check = commands("stubs.server")
    async with running(start) as said:
        await until_said(said, "listening on ")
        assert text(await output(client)) == words(20)
        assert (await output(check)).startswith("Every route that the adapter uses is there.")


def mode(path: str) -> int | None:
    """Permission bits; None if there is no such file."""
    return os.stat(path).st_mode & 0o777 if os.path.exists(path) else None


@pytest.mark.real
async def test_the_real_server_names_its_client_and_leaves_nothing() -> None:
    (start,) = commands("stubs.real_server")
    async with running(start) as said:
        password = await until_said(said, "password file: ")
        assert mode(password) == 0o600
        await until_said(said, "Ctrl-C ")
        client = shlex.split(await until_said(said, ""))
        assert text(await output(client)) == words(20)
    assert mode(str(Path(password).parent)) is None
    path = str(opencode().relative_to(ROOT))
    assert f"`{path}`" in (ROOT / "README.md").read_text(encoding="utf-8")
