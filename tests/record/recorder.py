"""One recording while it is made: the feed, the requests and the readings, on one clock."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import httpx

from stubs.real_server import RealServer
from stubs.waiting import until

Json = dict[str, Any]
SECONDS: Final = 60.0
# After the last event: the server writes its idle row and the title a moment later.
REST_SECONDS: Final = 0.5
ENDS: Final = (
    "session.execution.succeeded",
    "session.execution.failed",
    "session.execution.interrupted",
)


class Recorder:
    """Records one session of a server. Use `run`."""

    def __init__(self, server: RealServer, client: httpx.AsyncClient, name: str) -> None:
        self.name = name
        self.session = ""
        self._server = server
        self._client = client
        self._notes: list[Json] = []
        self._events: list[Json] = []
        self._last: Json = {}
        self._news = asyncio.Event()
        self._began = time.monotonic()

    async def run(self, scenario: Callable[[Recorder], Any]) -> str:
        """Play the scenario; the recording as text."""
        made = await self._client.post(
            "/api/session", json={"location": {"directory": str(self._server.project)}}
        )
        self.session = made.raise_for_status().json()["data"]["id"]
        tasks = [asyncio.create_task(self._listen()), asyncio.create_task(self._read_on_news())]
        try:
            await self.heard("server.connected")
            await scenario(self)
            await asyncio.sleep(REST_SECONDS)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        for task in tasks:
            with suppress(asyncio.CancelledError):
                task.result()
        await self._read()
        info = self._last["info"]
        head = {
            "recording": self.name,
            "server": info["version"],
            "session": self.session,
            "directory": str(self._server.project),
        }
        return self._scrubbed([head, *sorted(self._notes, key=lambda note: float(note["at"]))])

    # --- what a scenario does -------------------------------------------------------------

    async def prompt(self, number: int, text: str) -> str:
        """Post a prompt as the adapter does; its id."""
        ident = f"msg_acp_{self.name}{number}"
        body = {"id": ident, "text": text, "delivery": "queue"}
        await self._do("prompt", "POST", "prompt", body)
        return ident

    async def reply(self, decision: str, message: str | None = None) -> None:
        """Answer the next permission request, wherever in the tree it is asked."""
        asked = await self.heard("permission.asked")
        data = asked["data"]
        body = {"decision": decision} | ({"message": message} if message else {})
        path = f"/api/session/{data['sessionID']}/permission/{data['id']}/reply"
        await self._do("reply", "POST", path, body)

    async def interrupt(self) -> None:
        """Stop what runs."""
        await self._do("interrupt", "POST", "interrupt", None)

    async def withdraw(self, ident: str) -> None:
        """Take a prompt out of the inbox."""
        await self._do("withdraw", "DELETE", f"inbox/{ident}", None)

    async def wake(self, ident: str) -> None:
        """Wake a parked prompt."""
        await self._do("wake", "PATCH", f"inbox/{ident}", {"delivery": "steer"})

    async def heard(self, *kinds: str, times: int = 1) -> Json:
        """The last of `times` events of these kinds of this session, or without a session."""

        async def found() -> Json | None:
            events = [e for e in self._events if e["type"] in kinds and self._is_ours(e)]
            return events[times - 1] if len(events) >= times else None

        return await until(f"{self.name}: {kinds}", found, SECONDS)

    async def ended(self, times: int = 1) -> None:
        """Wait for the end of the execution."""
        await self.heard(*ENDS, times=times)

    # --- the notes ------------------------------------------------------------------------

    def _is_ours(self, event: Json) -> bool:
        owner = event["data"].get("sessionID", self.session)
        return bool(event["type"] == "permission.asked" or owner == self.session)

    def _now(self) -> float:
        return round(time.monotonic() - self._began, 6)

    async def _listen(self) -> None:
        async with self._client.stream("GET", "/api/event", timeout=None) as answer:
            async for line in answer.aiter_lines():
                if not line:
                    continue
                self._notes.append({"at": self._now(), "line": line})
                if line.startswith("data:"):
                    self._events.append(json.loads(line.removeprefix("data:")))
                    self._news.set()

    async def _do(self, what: str, method: str, path: str, body: Json | None) -> None:
        url = path if path.startswith("/") else f"/api/session/{self.session}/{path}"
        began = self._now()
        answer = (await self._client.request(method, url, json=body)).raise_for_status()
        note: Json = {"at": began, "until": self._now(), "did": what, "path": url}
        self._notes.append({**note, "body": body, "status": answer.status_code})

    async def _read_on_news(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            await self._read()

    async def _read(self) -> None:
        """One reading, in the order of the adapter's own."""
        began, heard = self._now(), len(self._events)
        place = {"location[directory]": str(self._server.project)}
        reads: Json = {"info": await self._get("/api/info")}
        reads["inbox"] = await self._get(f"/api/session/{self.session}/inbox")
        reads["active"] = sorted(await self._get("/api/session/active"))
        rows = await self._get(f"/api/session/{self.session}/message", limit="200")
        reads["message"] = list(reversed(rows))
        reads["permission"] = await self._get("/api/permission/request", **place)
        reads["form"] = await self._get("/api/form", **place)
        children = await self._get("/api/session", parentID=self.session)
        reads["children"] = [[child["id"], child["parentID"]] for child in children]
        changed = {key: value for key, value in reads.items() if self._last.get(key) != value}
        self._last = reads
        note = {"at": began, "until": self._now(), "heard": heard, "reads": changed}
        self._notes.append(note)

    async def _get(self, path: str, **query: str) -> Any:
        answer = (await self._client.get(path, params=query)).raise_for_status().json()
        return answer.get("data", answer)

    def _scrubbed(self, notes: list[Json]) -> str:
        """The notes as lines, without the paths and ports of this machine."""
        text = "".join(json.dumps(note, ensure_ascii=False) + "\n" for note in notes)
        replaced = {
            str(self._server.project): "/srv/project",
            str(self._server.home): "/srv/home",
            str(Path(self._server.project).parent): "/srv",
            self._server.url: "http://127.0.0.1:4096",
            self._server.model.url: "http://127.0.0.1:4097/v1",
        }
        for real, plain in replaced.items():
            text = text.replace(real, plain)
        return text
