"""A real OpenCode server with the scripted model behind it, for one run.

It has a HOME, a project directory and a model of its own; it reaches nothing outside loopback.
`python -m stubs.real_server [--port PORT]` serves until Ctrl-C or SIGTERM.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx

from stubs.model import ScriptedModel
from stubs.parts import opencode
from stubs.processes import kill_processes_of_home
from stubs.waiting import until

USERNAME: Final = "opencode"
PASSWORD: Final = "a-test-password"
START_SECONDS: Final = 30.0
STOP_SECONDS: Final = 5.0
MODEL: Final = "fake/fake-1"

Permission = Mapping[str, str | Mapping[str, str]]


def config(model_url: str, permission: Permission, extra: Mapping[str, Any]) -> dict[str, Any]:
    """The opencode.json of a project: a provider `fake` with two models, and an agent of ours.

    `permission` maps an action of OpenCode ("shell", "edit", ...) to "ask", "allow" or "deny", or
    to such a map by pattern. `extra` adds or replaces keys of the top level.
    """

    def model(name: str, context: int) -> dict[str, Any]:
        limit = {"context": context, "output": 8_000}
        return {"name": name, "tool_call": True, "reasoning": True, "limit": limit}

    fake = {
        "name": "Fake",
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": model_url, "apiKey": "no-secret"},
        "models": {"fake-1": model("Fake One", 100_000), "fake-2": model("Fake Two", 200_000)},
    }
    reviewer = {"description": "Reads and comments", "mode": "primary", "prompt": "Be brief."}
    short = {"description": "Two steps at most", "mode": "primary", "steps": 2}
    return {
        "$schema": "https://opencode.ai/config.json",
        "autoupdate": False,
        "share": "disabled",
        "model": MODEL,
        "provider": {"fake": fake},
        "agent": {"reviewer": reviewer, "short": short},
        "permission": dict(permission),
        **extra,
    }


class RealServer:
    """One `opencode serve` on loopback. Made by `real_server`; not started yet.

    `port` 0 takes a free one. `catalogue` is what it has built in of providers, in the form of
    models.dev: nothing.
    """

    def __init__(self, root: Path, model: ScriptedModel, port: int = 0) -> None:
        self.catalogue: Mapping[str, Any] = {}
        self.url = ""
        self.username = USERNAME
        self.password = PASSWORD
        self.model = model
        self.home = root / "home"
        self.project = root / "project"
        self.log = root / "serve.log"
        self._root = root
        self._port = port
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int:
        """The id of the running server. Raises RuntimeError when it is down."""
        if self._process is None:
            raise RuntimeError("the server is down")
        return self._process.pid

    def add_project(self, name: str, permission: Permission | None = None, **extra: Any) -> Path:
        """Make a project directory, a git repository with an opencode.json, and return it."""
        directory = self._root / name
        directory.mkdir()
        text = json.dumps(config(self.model.url, permission or {}, extra), indent=2)
        (directory / "opencode.json").write_text(text, encoding="utf-8")
        # Without a commit every directory counts as the one project "global", which would share
        # the permissions that are saved by "always".
        author = ["-c", "user.name=t", "-c", "user.email=t@localhost"]
        for command in (["init"], [*author, "commit", "--allow-empty", "--message=first"]):
            argv = ["git", *command, "--quiet"]
            subprocess.run(argv, cwd=directory, check=True, env=self._env())
        return directory

    def client(self) -> httpx.AsyncClient:
        """An HTTP client of the server, with its credentials; the caller closes it."""
        auth = httpx.BasicAuth(self.username, self.password)
        return httpx.AsyncClient(base_url=self.url, auth=auth, timeout=30.0)

    async def start(self) -> None:
        """Start it and wait until it answers; each further start is on the port of the first.

        Raises TimeoutError or, with the server's own words, RuntimeError when it does not come up.
        """
        self.home.mkdir(exist_ok=True)
        models = self._root / "models.json"
        models.write_text(json.dumps(self.catalogue), encoding="utf-8")
        offset = self.log.stat().st_size if self.log.exists() else 0
        argv = [str(opencode()), "serve", "--hostname", "127.0.0.1", "--port", str(self._port)]
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *argv,
                cwd=self.home,
                env=self._env(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

        async def listening() -> str | None:
            said = self.log.read_bytes()[offset:].decode(errors="replace")
            if self._process is not None and self._process.returncode is not None:
                raise RuntimeError(f"opencode serve ended: {said[-2000:]}")
            found = re.search(r"listening on (http://127\.0\.0\.1:\d+)", said)
            return found.group(1) if found else None

        async def answers() -> bool:
            async with self.client() as client:
                with contextlib.suppress(httpx.TransportError):
                    return (await client.get("/api/info")).status_code == 200
            return False

        self.url = await until("opencode serve listens", listening, START_SECONDS)
        self._port = int(self.url.rpartition(":")[2])
        await until("opencode serve answers", answers, START_SECONDS)

    async def stop(self) -> None:
        """End it as an operator does (SIGTERM), or by SIGKILL when that takes too long."""
        await self._end(signal.SIGTERM)

    async def kill(self) -> None:
        """End it by SIGKILL; what it had started goes on, as it does in real life."""
        await self._end(signal.SIGKILL)

    async def restart(self) -> None:
        """Start it again on the same port and the same HOME, killed first if it runs."""
        await self.kill()
        await self.start()

    async def _end(self, number: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(number)
        try:
            await asyncio.wait_for(process.wait(), STOP_SECONDS)
        except TimeoutError:
            process.kill()
            await process.wait()

    def _env(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "HOME": str(self.home),
            "TMPDIR": str(self._root),
            "OPENCODE_SERVER_PASSWORD": self.password,
            "OPENCODE_MODELS_PATH": str(self._root / "models.json"),
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "DO_NOT_TRACK": "1",
        }


@asynccontextmanager
async def real_server(
    root: Path,
    permission: Permission | None = None,
    *,
    port: int = 0,
    catalogue: Mapping[str, Any] | None = None,
    **extra: Any,
) -> AsyncIterator[RealServer]:
    """Model and server, running; `server.project` is a project with that `permission`.

    `catalogue` is that of `RealServer`. `root` is an empty directory. At the end everything that
    the server started is killed too. Raises MissingPartError without the real parts.
    """
    async with ScriptedModel() as model:
        server = RealServer(root, model, port)
        server.catalogue = catalogue or {}
        server.home.mkdir()
        server.add_project("project", permission, **extra)
        try:
            await server.start()
            yield server
        finally:
            try:
                await server.stop()
            finally:
                await asyncio.to_thread(kill_processes_of_home, server.home)


async def serve(root: Path, port: int) -> None:
    """A server whose shell calls ask, until SIGINT or SIGTERM; says how to use it on stdout.

    Raises as `real_server` and `RealServer.start` do.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with real_server(root, {"shell": "ask"}, port=port) as server:
        file = root / "password"
        file.touch(0o600)
        file.write_text(server.password, encoding="utf-8")
        folder = Path(sys.executable).parent
        agent = [str(folder / "opencode-acp"), "--server", server.url, "--password-file", str(file)]
        client = [sys.executable, "-m", "stubs.client", "--cwd", str(server.project)]
        print(f"listening on {server.url}")
        print(f"password file: {file}")
        print(f"project with the scripted model: {server.project}")
        print(f"log: {server.log}")
        print(f"Ctrl-C or SIGTERM ends the server and removes {root}. A client:")
        words = [*client, "--prompt", "Hi @@think 3 && text 20 50@@", "--", *agent]
        print(shlex.join(words), flush=True)
        await stop.wait()


def main(argv: Sequence[str] | None = None) -> int:
    """Read the flags and serve; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m stubs.real_server", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    flags = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="opencode-acp-server-") as root:
        try:
            asyncio.run(serve(Path(root), flags.port))
        except (RuntimeError, TimeoutError) as error:
            print(error, file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
