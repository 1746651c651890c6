"""A server for a demonstration: the stub in a process of its own, or the real OpenCode."""

from __future__ import annotations

import asyncio
import json
import secrets
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from stubs.real_server import real_server

PERMISSION: Final = {"shell": "ask"}
START_SECONDS: Final = 20.0


@dataclass(frozen=True, slots=True)
class Stage:
    """A server that runs: its URL, its password and a project in which the shell is asked for."""

    name: str
    url: str
    password: str
    project: Path


@asynccontextmanager
async def stage(root: Path, *, real: bool) -> AsyncIterator[Stage]:
    """Start a server whose files are below `root`, an empty directory, and end it.

    Raises MissingPartError when `real` and the real parts are not installed, TimeoutError or
    RuntimeError when it does not come up.
    """
    if real:
        async with real_server(root, PERMISSION) as server:
            name = "the real OpenCode server"
            yield Stage(name, server.url, server.password, server.project)
        return
    project = root / "project"
    project.mkdir()
    config = json.dumps({"permission": PERMISSION})
    (project / "opencode.json").write_text(config, encoding="utf-8")
    password = secrets.token_urlsafe(16)
    arguments = ("--port", "0", "--password", password, "--project", str(project))
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "stubs.server", *arguments, stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(START_SECONDS):
            said = (await process.stdout.readline()).decode()
        if not said:
            raise RuntimeError("the stub server ended before it listened")
        yield Stage("the stub of the OpenCode server", said.split()[-1], password, project)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
