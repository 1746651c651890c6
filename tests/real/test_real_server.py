"""The real server with the scripted model does what the other tests of this folder rest on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from stubs.processes import processes_of_home
from stubs.proxy import Proxy
from stubs.real_server import real_server
from stubs.waiting import until

pytestmark = pytest.mark.real


async def new_session(client: httpx.AsyncClient, project: Path) -> str:
    made = await client.post("/api/session", json={"location": {"directory": str(project)}})
    return str(made.raise_for_status().json()["data"]["id"])


async def prompt(client: httpx.AsyncClient, session: str, text: str) -> None:
    (await client.post(f"/api/session/{session}/prompt", json={"text": text})).raise_for_status()


async def answer(client: httpx.AsyncClient, session: str) -> list[dict[str, Any]]:
    """The assistant rows, oldest first, once the session has an idle row."""

    async def rows() -> list[dict[str, Any]] | None:
        listed = await client.get(f"/api/session/{session}/message", params={"order": "asc"})
        data: list[dict[str, Any]] = listed.raise_for_status().json()["data"]
        return data if any(row["type"] == "idle" for row in data) else None

    return [row for row in await until("the turn ends", rows) if row["type"] == "assistant"]


def text_of(rows: list[dict[str, Any]]) -> str:
    parts = [part for row in rows for part in row["content"]]
    return "".join(part["text"] for part in parts if part["type"] == "text")


async def permission(client: httpx.AsyncClient, session: str) -> dict[str, Any]:
    async def asked() -> dict[str, Any] | None:
        listed = await client.get(f"/api/session/{session}/permission")
        asks: list[dict[str, Any]] = listed.raise_for_status().json()["data"]
        return asks[0] if asks else None

    return await until("a permission is asked", asked)


async def test_the_scripted_answer_comes_through(tmp_path: Path) -> None:
    async with real_server(tmp_path) as server, server.client() as client:
        session = await new_session(client, server.project)
        await prompt(client, session, "please @@think 2 && text 5 30@@")
        assert text_of(await answer(client, session)) == "w0 w1 w2 w3 w4 "


async def test_an_asked_tool_waits_and_runs(tmp_path: Path) -> None:
    asks = {"edit": "ask", "shell": "ask"}
    async with real_server(tmp_path, asks) as server, server.client() as client:
        session = await new_session(client, server.project)
        script = '@@tool write {"path":"a.txt","content":"hello"} || text 2@@'
        await prompt(client, session, script)
        ask = await permission(client, session)
        assert (ask["action"], ask["resources"]) == ("edit", ["a.txt"])
        assert not (server.project / "a.txt").exists()
        reply = f"/api/session/{session}/permission/{ask['id']}/reply"
        assert (await client.post(reply, json={"decision": "once"})).status_code == 204
        assert text_of(await answer(client, session)) == "w0 w1 "
        assert (server.project / "a.txt").read_text(encoding="utf-8") == "hello"


async def test_a_sub_agent_has_a_script_of_its_own(tmp_path: Path) -> None:
    async with real_server(tmp_path) as server, server.client() as client:
        session = await new_session(client, server.project)
        # The marks of the child's script are written as escapes: a script ends at the first mark.
        child = r"\u0040@text 3@\u0040"
        arguments = f'{{"agent":"general","description":"d","prompt":"{child}"}}'
        await prompt(client, session, f"@@tool subagent {arguments} || text 1@@")
        rows = await answer(client, session)
        (call,) = (part for part in rows[0]["content"] if part["type"] == "tool")
        assert "w0 w1 w2" in str(call["state"])
        assert text_of(rows) == "w0 "


async def test_a_killed_server_comes_back_and_leaves_nothing_behind(tmp_path: Path) -> None:
    async with real_server(tmp_path) as server:
        before, url = server.pid, server.url
        running = server.project / "shell.pid"
        async with server.client() as client:
            session = await new_session(client, server.project)
            script = '@@tool shell {"command":"echo $$ > shell.pid && sleep 99"}@@'
            await prompt(client, session, script)

            async def shell() -> int | None:
                text = running.read_text(encoding="utf-8") if running.exists() else ""
                return int(text) if text else None

            orphan = await until("the shell runs", shell)
        await server.restart()
        assert (server.pid == before, server.url) == (False, url)
        assert orphan in processes_of_home(server.home)
        async with server.client() as client:
            assert (await client.get(f"/api/session/{session}")).status_code == 200

    async def gone() -> bool:
        return processes_of_home(server.home) == []

    await until("what was killed is gone", gone)


async def test_the_proxy_is_transparent_to_it(tmp_path: Path) -> None:
    async with real_server(tmp_path, {"shell": "ask"}) as server, Proxy(server.url) as proxy:
        auth = httpx.BasicAuth(server.username, server.password)
        async with httpx.AsyncClient(base_url=proxy.url, auth=auth) as client:
            session = await new_session(client, server.project)
            cut = proxy.cut_feed(after=1, containing="permission.asked")
            with pytest.raises(httpx.RemoteProtocolError):
                async with client.stream("GET", "/api/event") as feed:
                    await prompt(client, session, '@@tool shell {"command":"true"} || text 1@@')
                    async for _ in feed.aiter_lines():
                        pass
            assert cut.done.is_set()
            ask = await permission(client, session)
            reply = f"/api/session/{session}/permission/{ask['id']}/reply"
            assert (await client.post(reply, json={"decision": "once"})).status_code == 204
            assert text_of(await answer(client, session)) == "w0 "
            assert (await client.get("/api/info", auth=("opencode", "wrong"))).status_code == 401
            assert (await client.get("/", auth=("opencode", "wrong"))).status_code == 200
