"""The two servers that every scenario runs on, seen alike."""

from __future__ import annotations

import asyncio
import json
import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx

from stubs.model import ScriptedModel
from stubs.real_server import PASSWORD, Permission, RealServer, config, real_server
from stubs.server import Settings, StubServer

URL_VARIABLE: Final = "DRIFT_URL"
PASSWORD_VARIABLE: Final = "DRIFT_PASSWORD"


class Backend(ABC):
    """A running server with a password; `admissions` counts how often a prompt was taken in."""

    name: str

    def __init__(self, root: Path) -> None:
        self.admissions: Counter[str] = Counter()
        self._root = root
        self._projects = 0

    @property
    @abstractmethod
    def url(self) -> str:
        """Its address, the same after a restart."""

    @property
    def password(self) -> str:
        """Its password."""
        return PASSWORD

    def project(self, permission: Permission | None = None, **extra: Any) -> Path:
        """A new project directory whose opencode.json has that `permission`."""
        self._projects += 1
        return self._make(f"project{self._projects}", permission, extra)

    def client(self) -> httpx.AsyncClient:
        """Another front end of the server; the caller closes it."""
        auth = httpx.BasicAuth("opencode", self.password)
        return httpx.AsyncClient(base_url=self.url, auth=auth, timeout=30.0)

    @abstractmethod
    async def rest(self) -> None:
        """Called between two tests: nothing of an earlier one is needed any more."""

    @abstractmethod
    async def crash(self) -> None:
        """Kill it as kill -9, losing what runs, and start it again at the same address."""

    @abstractmethod
    async def terminate(self) -> None:
        """End it as its service manager does (SIGTERM), and start it again."""

    @abstractmethod
    def _make(self, name: str, permission: Permission | None, extra: dict[str, Any]) -> Path: ...


class StubBackend(Backend):
    """The stub. Its project files are those of the real server."""

    name = "stub"

    def __init__(self, root: Path, stub: StubServer) -> None:
        super().__init__(root)
        self.stub = stub
        self.admissions = stub.admissions

    @property
    def url(self) -> str:
        return self.stub.url

    async def rest(self) -> None:
        """A stub holds nothing that runs out."""

    async def crash(self) -> None:
        await self.stub.restart("lost", down=0.3)

    async def terminate(self) -> None:
        await self.stub.restart("terminated", down=0.3)

    def _make(self, name: str, permission: Permission | None, extra: dict[str, Any]) -> Path:
        directory = self._root / name
        directory.mkdir()
        text = json.dumps(config("http://127.0.0.1:9/v1", permission or {}, extra), indent=2)
        (directory / "opencode.json").write_text(text, encoding="utf-8")
        return directory


# Directories that one process of the real server may boot. Each takes an inotify instance until
# the process ends; where a user has no more of them (128 by default), a boot never ends.
DIRECTORIES: Final = 24


class RealBackend(Backend):
    """OpenCode itself on the scripted model."""

    name = "real"

    def __init__(self, root: Path, server: RealServer) -> None:
        super().__init__(root)
        self.server = server
        self._rested_at = 0

    @property
    def password(self) -> str:
        return self.server.password

    async def rest(self) -> None:
        if self._projects - self._rested_at >= DIRECTORIES:
            self._rested_at = self._projects
            await self.crash()

    @property
    def url(self) -> str:
        return self.server.url

    async def crash(self) -> None:
        await self.server.restart()

    async def terminate(self) -> None:
        await self.server.stop()
        await self.server.start()

    async def count_admissions(self) -> None:
        """Listens to the feed for ever; a new item in an inbox is an admission."""
        while True:
            try:
                async with (
                    self.client() as client,
                    client.stream(
                        "GET", "/api/event", timeout=httpx.Timeout(30.0, read=60.0)
                    ) as feed,
                ):
                    async for line in feed.aiter_lines():
                        if '"session.inbox.enqueued"' in line:
                            event = json.loads(line.removeprefix("data: "))
                            self.admissions[event["data"]["inboxID"]] += 1
            except httpx.TransportError:
                await asyncio.sleep(0.2)

    def _make(self, name: str, permission: Permission | None, extra: dict[str, Any]) -> Path:
        return self.server.add_project(name, permission, **extra)


class GivenBackend(RealBackend):
    """A server that somebody else has started, on this machine, with the scripted model."""

    async def rest(self) -> None:
        """It is not ours to restart, so each directory of a run stays booted on it."""

    async def crash(self) -> None:
        raise NotImplementedError("a server that was given is not killed")

    async def terminate(self) -> None:
        raise NotImplementedError("a server that was given is not ended")


def given() -> str | None:
    """The server that stands for the real one in this run; its password is in PASSWORD_VARIABLE."""
    return os.environ.get(URL_VARIABLE)


@asynccontextmanager
async def stub_backend(root: Path, settings: Settings | None = None) -> AsyncIterator[StubBackend]:
    """A stub of its own."""
    async with StubServer(settings or Settings(password=PASSWORD)) as stub:
        yield StubBackend(root, stub)


@asynccontextmanager
async def real_backend(root: Path) -> AsyncIterator[Backend]:
    """A real server of its own. Raises MissingPartError without the real parts."""
    async with real_server(root) as server, _counted(RealBackend(root, server)) as backend:
        yield backend


@asynccontextmanager
async def given_backend(root: Path, url: str) -> AsyncIterator[Backend]:
    """The server at `url`, whose projects are below `root`."""
    async with ScriptedModel() as model:
        server = RealServer(root, model)
        server.home.mkdir()
        server.url, server.password = url, os.environ.get(PASSWORD_VARIABLE, "")
        async with _counted(GivenBackend(root, server)) as backend:
            yield backend


@asynccontextmanager
async def _counted(backend: RealBackend) -> AsyncIterator[RealBackend]:
    counting = asyncio.create_task(backend.count_admissions())
    try:
        yield backend
    finally:
        counting.cancel()
        await asyncio.wait([counting])


def backend_of(name: str, root: Path) -> AbstractAsyncContextManager[Backend]:
    """The backend of that name, `stub` or `real`."""
    if name == "stub":
        return stub_backend(root)
    url = given()
    return real_backend(root) if url is None else given_backend(root, url)
