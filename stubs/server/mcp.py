"""MCP servers of a location: started, asked for their tools, and ended, as the real server does.

Changes of one location are made one after another. A server of which something fails stays listed
with the reason.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final

import aiohttp

from stubs.server.wire import Json

PROTOCOL: Final = "2025-11-25"
CAPABILITIES: Final = {"elicitation": {"form": {"applyDefaults": True}, "url": {}}, "roots": {}}
DEFAULT_LIMIT: Final = 30_000
# Between the answer to a change and the step that has the tools, as measured.
OFFERED_AFTER: Final = 0.1


Elicit = Callable[[Json], Awaitable[Json]]
"""Takes the params of elicitation/create; its result."""


class McpError(Exception):
    """A server that cannot be used; `args[0]` is the reason as the list shows it."""


class Wire(ABC):
    """A connection to an MCP server."""

    _ids: itertools.count[int]

    @abstractmethod
    async def request(self, method: str, params: Json, elicit: Elicit | None = None) -> Any:
        """The result; what the server asks meanwhile goes to `elicit`. Raises McpError."""

    @abstractmethod
    async def notify(self, method: str) -> None: ...

    @abstractmethod
    async def aclose(self) -> None: ...


class Stdio(Wire):
    """A program on its standard input and output, one request at a time."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._ids = itertools.count()
        self._turn = asyncio.Lock()

    @classmethod
    async def start(cls, config: Json, directory: str) -> Stdio:
        """Raises McpError when there is no such program."""
        env = {**os.environ, **config.get("environment", {})}
        pipe = asyncio.subprocess.PIPE
        try:
            process = await asyncio.create_subprocess_exec(
                *config["command"], cwd=directory, env=env, stdin=pipe, stdout=pipe,
                stderr=asyncio.subprocess.DEVNULL, limit=2**24,
            )  # fmt: skip
        except OSError as error:
            kind = "PermissionDenied" if isinstance(error, PermissionError) else "NotFound"
            program, *args = config["command"]
            raise McpError(f"{kind}: ChildProcess.spawn ({program} {' '.join(args)})") from error
        return cls(process)

    async def request(self, method: str, params: Json, elicit: Elicit | None = None) -> Any:
        async with self._turn:
            number = next(self._ids)
            await self._write({"method": method, "params": params, "id": number})
            while True:
                assert self._process.stdout is not None
                line = await self._process.stdout.readline()
                if not line:
                    raise McpError("Connection closed")
                answer = json.loads(line)
                if answer.get("method") == "elicitation/create" and elicit is not None:
                    result = await elicit(answer["params"])
                    await self._write({"id": answer["id"], "result": result})
                elif answer.get("id") == number:
                    return _result(answer)

    async def notify(self, method: str) -> None:
        await self._write({"method": method})

    async def aclose(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()

    async def _write(self, message: Json) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            await self._process.stdin.drain()
        except ConnectionError as error:
            raise McpError("Connection closed") from error


class Http(Wire):
    """A server on streamable HTTP that answers with JSON."""

    def __init__(self, config: Json) -> None:
        self._url: str = config["url"]
        self._ids = itertools.count()
        accept = {"Accept": "application/json, text/event-stream"}
        self._client = aiohttp.ClientSession(headers={**accept, **config.get("headers", {})})

    async def request(self, method: str, params: Json, elicit: Elicit | None = None) -> Any:
        body = await self._post({"method": method, "params": params, "id": next(self._ids)})
        return _result(json.loads(body))

    async def notify(self, method: str) -> None:
        await self._post({"method": method})

    async def aclose(self) -> None:
        await self._client.close()

    async def _post(self, message: Json) -> bytes:
        try:
            async with self._client.post(self._url, json={"jsonrpc": "2.0", **message}) as answer:
                body = await answer.read()
                if not answer.ok:
                    raise McpError(f"Error POSTing to endpoint: {body.decode(errors='replace')}")
                return body
        except aiohttp.ClientError as error:
            reason = "Unable to connect. Is the computer able to access the url?"
            raise McpError(reason) from error


@dataclass(slots=True)
class Server:
    """A server of a location; `tools` maps the name that a model sees to that of the server."""

    name: str
    config: Json
    status: Json
    wire: Wire | None = None
    tools: dict[str, str] = field(default_factory=dict)
    since: float = 0.0


class McpHost:
    """All of them, by location and name. A restart forgets every one."""

    def __init__(self) -> None:
        self._servers: dict[str, dict[str, Server]] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    def listed(self, directory: str) -> list[Json]:
        servers = self._servers.get(directory, {})
        return [{"name": name, "status": servers[name].status} for name in sorted(servers)]

    async def put(self, directory: str, name: str, config: Json) -> None:
        """Add or replace; whether it works stands in the list alone."""
        async with self._lock(directory):
            servers = self._servers.setdefault(directory, {})
            await self._end(servers.pop(name, None))
            server = servers[name] = Server(name, config, {"status": "pending"})
            limits = config.get("timeout", {})
            try:
                await self._start(server, directory, limits)
                server.tools = await self._tools(server, name, limits)
                server.status = {"status": "connected"}
            except McpError as error:
                await self._end(server)
                server.status = {"status": "failed", "error": str(error)}
            server.since = asyncio.get_running_loop().time()

    async def remove(self, directory: str, name: str) -> bool:
        """False when there is none of that name."""
        async with self._lock(directory):
            server = self._servers.get(directory, {}).pop(name, None)
            await self._end(server)
            return server is not None

    def find(self, directory: str, tool: str) -> tuple[Server, str] | None:
        """Who offers a tool under that name, and what it is called there."""
        now = asyncio.get_running_loop().time()
        for server in self._servers.get(directory, {}).values():
            if tool in server.tools and now - server.since >= OFFERED_AFTER:
                return server, server.tools[tool]
        return None

    async def call(self, server: Server, tool: str, given: Json, elicit: Elicit) -> list[Json]:
        """The pieces of the result as events carry them. Raises McpError."""
        assert server.wire is not None
        result = await server.wire.request("tools/call", {"name": tool, "arguments": given}, elicit)
        return [_piece(piece) for piece in result["content"]]

    async def forget(self, directory: str) -> list[str]:
        """End the servers of a location; their names."""
        async with self._lock(directory):
            servers = self._servers.pop(directory, {})
            for server in servers.values():
                await self._end(server)
            return list(servers)

    async def clear(self) -> None:
        """End every server."""
        servers = [one for named in self._servers.values() for one in named.values()]
        self._servers.clear()
        for server in servers:
            await self._end(server)

    async def _start(self, server: Server, directory: str, limits: Json) -> None:
        async with _limited(limits.get("startup")):
            if server.config["type"] == "local":
                server.wire = await Stdio.start(server.config, directory)
            else:
                server.wire = Http(server.config)
            about = {"name": "cli", "version": "2.0.15"}
            hello = {"protocolVersion": PROTOCOL, "capabilities": CAPABILITIES, "clientInfo": about}
            await server.wire.request("initialize", hello)
            await server.wire.notify("notifications/initialized")

    async def _tools(self, server: Server, name: str, limits: Json) -> dict[str, str]:
        assert server.wire is not None
        async with _limited(limits.get("catalog")):
            listed = await server.wire.request("tools/list", {})
        if server.config.get("codemode", True):
            return {}
        return {_plain(f"{name}_{one['name']}"): one["name"] for one in listed["tools"]}

    async def _end(self, server: Server | None) -> None:
        if server is not None and server.wire is not None:
            wire, server.wire = server.wire, None
            server.tools = {}
            await wire.aclose()

    def _lock(self, directory: str) -> asyncio.Lock:
        return self._locks.setdefault(directory, asyncio.Lock())


@contextlib.asynccontextmanager
async def _limited(milliseconds: int | None) -> Any:
    try:
        async with asyncio.timeout((milliseconds or DEFAULT_LIMIT) / 1000):
            yield
    except TimeoutError as error:
        raise McpError("Request timed out") from error


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)


def _result(answer: Json) -> Any:
    if "error" in answer:
        raise McpError(str(answer["error"].get("message", "")))
    return answer["result"]


def _piece(piece: Json) -> Json:
    if piece["type"] == "text":
        return {"type": "text", "text": piece["text"]}
    uri = f"data:{piece['mimeType']};base64,{piece['data']}"
    return {"type": "file", "uri": uri, "mime": piece["mimeType"]}
