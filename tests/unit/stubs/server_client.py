"""A client of the stub's v2 routes for tests: requests, and the feed as it comes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

import aiohttp

Json = dict[str, Any]
DEADLINE = 10.0
ENDS = tuple(f"session.execution.{kind}" for kind in ("succeeded", "failed", "interrupted"))


class Client:
    """`async with Client(url, directory)`: connected to the feed on entry.

    `events` are those since then; `closed` tells how the feed ended: "clean", "torn" or None.
    """

    def __init__(self, url: str, directory: str, password: str | None = None) -> None:
        self.url = url
        self.directory = directory
        self.events: list[Json] = []
        self.closed: str | None = None
        self._headers = (
            {} if password is None else {
                "Authorization": aiohttp.encode_basic_auth("opencode", password)
            }
        )  # fmt: skip
        self._news = asyncio.Condition()

    async def __aenter__(self) -> Self:
        self.http = aiohttp.ClientSession(headers=self._headers)
        self._feed = asyncio.create_task(self._read())
        await self.until(lambda event: event["type"] == "server.connected")
        self.events.clear()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._feed.cancel()
        await asyncio.wait([self._feed])
        await self.http.close()

    async def request(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Status and JSON (or text) of a request."""
        async with self.http.request(method, self.url + path, json=body) as response:
            text = await response.text()
            try:
                return response.status, json.loads(text)
            except ValueError:
                return response.status, text

    async def session(self, **fields: object) -> str:
        """The id of a new session, titled unless told otherwise."""
        body = {"location": {"directory": self.directory}, "title": "t", **fields}
        status, answer = await self.request("POST", "/api/session", body)
        assert status == 200
        return str(answer["data"]["id"])

    async def prompt(self, session: str, text: str, **fields: object) -> Json:
        """Admit a prompt."""
        path = f"/api/session/{session}/prompt"
        status, answer = await self.request("POST", path, {"text": text, **fields})
        assert status == 200, answer
        item: Json = answer["data"]
        return item

    async def get(self, path: str) -> Any:
        """The data of a read."""
        status, answer = await self.request("GET", path)
        assert status == 200, answer
        return answer["data"]

    async def rows(self, session: str) -> list[Json]:
        """The session's messages, oldest first."""
        found: list[Json] = await self.get(f"/api/session/{session}/message?order=asc&limit=200")
        return found

    async def until(
        self, wanted: Callable[[Json], bool], count: int = 1, deadline: float | None = DEADLINE
    ) -> Json:
        """The count-th event that is wanted, once it is there. Raises TimeoutError."""
        async with asyncio.timeout(deadline), self._news:
            while True:
                found = [event for event in self.events if wanted(event)]
                if len(found) >= count:
                    return found[count - 1]
                await self._news.wait()

    async def event(self, kind: str, session: str, count: int = 1) -> Json:
        """The count-th event of a type and a session."""
        return await self.until(
            lambda event: event["type"] == kind and owner(event) == session, count
        )

    async def end(self, session: str, count: int = 1) -> Json:
        """The count-th end of an execution of the session."""
        return await self.until(
            lambda event: event["type"] in ENDS and owner(event) == session, count
        )

    async def eof(self) -> str:
        """How the feed ended, once it has."""
        async with asyncio.timeout(DEADLINE), self._news:
            while self.closed is None:
                await self._news.wait()
        return self.closed

    async def _read(self) -> None:
        timeout = aiohttp.ClientTimeout(total=None)
        end = "clean"
        try:
            async with self.http.get(self.url + "/api/event", timeout=timeout) as response:
                async for line in response.content:
                    if line.startswith(b"data: "):
                        async with self._news:
                            self.events.append(json.loads(line[6:]))
                            self._news.notify_all()
        except aiohttp.ClientError:
            end = "torn"
        async with self._news:
            self.closed = end
            self._news.notify_all()


def owner(event: Json) -> str | None:
    """The session that an event belongs to."""
    data = event["data"]
    session = data.get("sessionID") or data.get("form", {}).get("sessionID")
    return None if session is None else str(session)
