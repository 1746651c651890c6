"""MCP servers that a client brings: registered for its session, refused, or left out and told."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from adapter.acp.mcpservers import registered_name
from stubs.client import Transcript
from stubs.parts import ROOT
from stubs.proxy import Rule
from stubs.waiting import until
from tests.scenarios.stage import (
    Json,
    Stage,
    agent_argv,
    agent_env,
    checked_agent,
    fails,
    impatient_argv,
    notices,
)
from tests.support.checked import CheckedClient

SERVER: Final = str(ROOT / "tests" / "support" / "mcp_server.py")
ALL: Final = {"*": "allow"}


def stdio(name: str, mode: str, *more: str, **env: str) -> Json:
    """A server of `tests/support/mcp_server.py`, as a client hands it over."""
    variables = [{"name": key, "value": value} for key, value in env.items()]
    args = [SERVER, mode, *more]
    return {"name": name, "command": sys.executable, "args": args, "env": variables}


@asynccontextmanager
async def registering(
    stage: Stage, policy: str = "register", seconds: str = "", *more: str, url: str = ""
) -> AsyncIterator[CheckedClient]:
    """An agent of an operator who decided so."""
    env = agent_env(stage.backend.password) | {"OPENCODE_ACP_MCP": policy}
    if seconds:
        env["OPENCODE_ACP_MCP_SECONDS"] = seconds
    argv = [*agent_argv(url or stage.backend.url), *more]
    async with checked_agent(argv, env) as agent:
        yield agent


async def listed(stage: Stage, project: Path) -> dict[str, str]:
    """The servers of a directory and their states."""
    query: dict[str, Any] = {"location[directory]": str(project)}
    servers = await (await stage.front_end()).get("mcp", **query)
    return {one["name"]: one["status"]["status"] for one in servers}


async def until_listed(stage: Stage, project: Path, *names: str) -> None:
    """Wait until the directory has these servers and no other."""

    async def same() -> bool:
        return set(await listed(stage, project)) == set(names)

    await until(f"{names} are listed", same, 15.0)


def call(session: str, name: str, tool: str, **given: str) -> str:
    """The prompt that calls a tool of a server."""
    return f"@@tool {registered_name(session, name)}_{tool} {json.dumps(given)} || text 1@@"


def outputs(transcript: Transcript) -> list[str]:
    """Status and text of each tool."""
    return [
        f"{tool['status']} {tool.get('rawOutput', {}).get('output', '')}".strip()
        for tool in transcript.tools.values()
    ]


def starts(log: Path) -> int:
    """How often a server was started."""
    return len(log.read_text().splitlines()) if log.exists() else 0


async def test_the_tools_are_there_in_the_first_turn_and_gone_after_the_close(
    stage: Stage,
) -> None:
    """S3-02, X-14."""
    project = stage.project(ALL)
    async with registering(stage) as agent:
        session = await agent.new_session(project, mcpServers=[stdio("My tools!", "ok")])
        name = registered_name(session, "My tools!")
        assert await listed(stage, project) == {name: "connected"}
        await agent.prompt(session, call(session, "My tools!", "echo", t="x"))
        assert outputs(agent.transcript(session)) == ['completed {"t": "x"}']
        assert notices(agent.transcript(session)) == []
        await agent.close_session(session)
        assert await listed(stage, project) == {}


async def test_the_password_of_the_server_is_not_in_the_environment(stage: Stage) -> None:
    """X-14: the server hands its own environment down."""
    project = stage.project(ALL)
    async with registering(stage) as agent:
        server = stdio("e", "ok", MINE="given")
        session = await agent.new_session(project, mcpServers=[server])
        for variable in ("OPENCODE_SERVER_PASSWORD", "MINE"):
            await agent.prompt(session, call(session, "e", "env", t=variable))
        assert outputs(agent.transcript(session)) == ["completed ''", "completed 'given'"]


async def test_an_image_of_a_tool_is_shown(stage: Stage) -> None:
    project = stage.project(ALL)
    async with registering(stage) as agent:
        session = await agent.new_session(project, mcpServers=[stdio("p", "ok")])
        await agent.prompt(session, call(session, "p", "picture"))
        (tool,) = agent.transcript(session).tools.values()
    (block,) = tool["content"]
    assert (block["content"]["type"], block["content"]["mimeType"]) == ("image", "image/png")


@asynccontextmanager
async def http_server(folder: Path) -> AsyncIterator[str]:
    """The address of a server on HTTP."""
    file = folder / "port"
    argv = [sys.executable, SERVER, "http", str(file)]
    process = await asyncio.create_subprocess_exec(*argv, stderr=subprocess.DEVNULL)

    async def port() -> str | None:
        return file.read_text() if file.exists() else None

    try:
        yield f"http://127.0.0.1:{await until('it listens', port)}/mcp"
    finally:
        process.terminate()
        await process.wait()


async def test_a_server_on_http_gets_its_headers(stage: Stage, tmp_path: Path) -> None:
    project = stage.project(ALL)
    async with http_server(tmp_path) as url, registering(stage) as agent:
        head = {"type": "http", "url": url}
        good = {**head, "name": "good", "headers": [{"name": "X-Key", "value": "open"}]}
        bad = {**head, "name": "bad", "headers": []}
        session = await agent.new_session(project, mcpServers=[bad, good])
        # What failed is taken away behind the answer.
        await until_listed(stage, project, registered_name(session, "good"))
        await agent.prompt(session, call(session, "good", "echo", t="y"))
        assert outputs(agent.transcript(session)) == ['completed {"t": "y"}']
        assert notices(agent.transcript(session)) == ["mcp"]
        await agent.close_session(session)


async def test_what_fails_is_told_once_and_the_session_goes_on(stage: Stage) -> None:
    """S3-02: the server says 204 for a failure, too, so its list is asked."""
    project = stage.project(ALL)
    missing = {"name": "missing", "command": "/nonexistent/x", "args": [], "env": []}
    servers = [missing, stdio("ends", "exit"), stdio("good", "ok")]
    async with registering(stage) as agent:
        session = await agent.new_session(project, mcpServers=servers)
        await until_listed(stage, project, registered_name(session, "good"))
        await agent.prompt(session, call(session, "good", "echo"))
        transcript = agent.transcript(session)
        assert outputs(transcript) == ["completed {}"]
        (notice,) = transcript.notices
        told = notice["_meta"]["opencode-acp"]
        assert [one["name"] for one in told["servers"]] == ["missing", "ends"]
        assert "ends (it ended before it could be used)" in told["text"]


async def test_one_that_hangs_costs_its_time_and_no_other_session(stage: Stage) -> None:
    """Ask 15: the start is bounded, and whoever uses another session notices nothing."""
    project = stage.project(ALL)
    async with registering(stage, seconds="3") as agent:
        other = await agent.new_session(project)
        opening = asyncio.create_task(
            agent.new_session(project, mcpServers=[stdio("slow", "hang")])
        )
        await agent.prompt(other, "@@text 2@@")
        assert not opening.done()
        async with asyncio.timeout(15):
            session = await opening
        await agent.prompt(session, "@@text 1@@")
        assert notices(agent.transcript(session)) == ["mcp"]
        await until_listed(stage, project)


async def test_an_identical_set_is_not_started_again(stage: Stage, tmp_path: Path) -> None:
    """S3-02: a later attach finds what it brought before; another set takes its place."""
    project = stage.project(ALL)
    log = tmp_path / "starts"
    first, second = stdio("one", "ok", str(log)), stdio("two", "ok")
    async with registering(stage) as agent:
        session = await agent.new_session(project, mcpServers=[first])
        await agent.resume(session, project, mcpServers=[first])
        await agent.prompt(session, call(session, "one", "echo"))
        assert (outputs(agent.transcript(session)), starts(log)) == (["completed {}"], 1)
        await agent.resume(session, project, mcpServers=[first, second])
        names = [registered_name(session, name) for name in ("one", "two")]
        await until_listed(stage, project, *names)
        assert starts(log) == 1
        await agent.resume(session, project, mcpServers=[second])
        await until_listed(stage, project, names[1])
        await agent.resume(session, project, mcpServers=[])
        await until_listed(stage, project)


async def test_two_sessions_have_two_of_them(stage: Stage, tmp_path: Path) -> None:
    project = stage.project(ALL)
    log = tmp_path / "starts"
    server = stdio("same", "ok", str(log))
    async with registering(stage) as agent:
        sessions = [await agent.new_session(project, mcpServers=[server]) for _ in range(2)]
        names = [registered_name(session, "same") for session in sessions]
        await until_listed(stage, project, *names)
        await agent.close_session(sessions[0])
        assert await listed(stage, project) == {names[1]: "connected"}
        await agent.prompt(sessions[1], call(sessions[1], "same", "echo"))
        assert (outputs(agent.transcript(sessions[1])), starts(log)) == (["completed {}"], 2)


@pytest.mark.parametrize("mode", ["ok", "hang"])
async def test_a_client_that_leaves_takes_them_along(stage: Stage, mode: str) -> None:
    """Also while one still starts."""
    project = stage.project(ALL)
    async with registering(stage, seconds="4") as agent:
        await agent.new_session(project)
        opening = asyncio.create_task(agent.new_session(project, mcpServers=[stdio("x", mode)]))

        async def there() -> bool:
            return bool(await listed(stage, project))

        await until("it is listed", there)
        if mode == "ok":
            await opening
        assert await agent.hang_up() == 0
        opening.cancel()
        await asyncio.wait([opening])
        await until_listed(stage, project)


@pytest.mark.parametrize("then", ["pause", "reconnect", "leave"])
async def test_a_removal_that_failed_is_made_good_for(stage: Stage, then: str) -> None:
    """S3-02: whatever stays behind runs on with what its client entrusted to it."""
    project = stage.project(ALL)
    proxy = await stage.proxy()
    async with registering(stage, url=proxy.url) as agent:
        session = await agent.new_session(project, mcpServers=[stdio("m", "ok")])
        refusal = proxy.add(Rule("/mcp/", "DELETE", status=503, times=None))
        await agent.close_session(session)
        assert refusal.used
        assert await listed(stage, project) == {registered_name(session, "m"): "connected"}
        proxy.rules.remove(refusal)
        if then == "reconnect":
            proxy.cut_feed()
        if then == "leave":
            assert await agent.hang_up() == 0
        await until_listed(stage, project)


async def test_an_opening_that_is_cancelled_leaves_none(stage: Stage) -> None:
    project = stage.project(ALL)
    async with registering(stage, seconds="4") as agent:
        opening = asyncio.create_task(agent.new_session(project, mcpServers=[stdio("x", "hang")]))

        async def there() -> bool:
            return bool(await listed(stage, project))

        await until("it is listed", there)
        await agent.cancel_request(agent.last_request_id)
        async with fails(-32800):
            await opening
        await until_listed(stage, project)


async def test_a_directory_that_starts_anew_gets_them_back(stage: Stage, tmp_path: Path) -> None:
    """S3-02: the server forgets what was added to a directory when it reloads it."""
    project = stage.project(ALL)
    log = tmp_path / "starts"
    async with registering(stage) as agent:
        session = await agent.new_session(project, mcpServers=[stdio("m", "ok", str(log))])
        query = {"location[directory]": str(project)}
        async with stage.backend.client() as http:
            answer = await http.post("/api/location/reload", params=query, json={})
            answer.raise_for_status()

        async def again() -> bool:
            return starts(log) == 2 and "connected" in (await listed(stage, project)).values()

        await until("it was started again", again)
        await agent.close_session(session)
        assert await listed(stage, project) == {}


async def test_a_restart_of_the_server_brings_them_back(own_stage: Stage, tmp_path: Path) -> None:
    """S3-02: a new process of the server has forgotten them."""
    project = own_stage.project(ALL)
    env = agent_env(own_stage.backend.password) | {"OPENCODE_ACP_MCP": "register"}
    async with checked_agent(impatient_argv(own_stage.backend.url), env) as agent:
        session = await agent.new_session(project, mcpServers=[stdio("m", "ok")])
        await own_stage.backend.crash()
        await until_listed(own_stage, project, registered_name(session, "m"))

        async def works() -> bool:
            await agent.prompt(session, call(session, "m", "echo"))
            return "completed {}" in outputs(agent.transcript(session))

        await until("the tool works again", works)


REFUSED: Final[dict[str, tuple[int, list[Json]]]] = {
    "sse": (-32602, [{"type": "sse", "name": "a", "url": "http://127.0.0.1:9/", "headers": []}]),
    "no such transport": (-32602, [{"type": "acp", "name": "a", "id": "1"}]),
    "no address": (-32602, [{"type": "http", "name": "a", "url": "zzz", "headers": []}]),
    "no command": (-32602, [{"name": "a", "args": [], "env": []}]),
    "one name twice": (-32602, [stdio("a", "ok"), stdio("a", "exit")]),
    "too many": (-32053, [stdio(f"n{number}", "ok") for number in range(17)]),
}


@pytest.mark.parametrize(("code", "servers"), REFUSED.values(), ids=REFUSED)
async def test_what_cannot_be_registered_opens_nothing(
    stage: Stage, code: int, servers: list[Json]
) -> None:
    project = stage.project(ALL)
    async with registering(stage) as agent:
        async with fails(code):
            await agent.new_session(project, mcpServers=servers)
        known = await agent.new_session(project)
        async with fails(code):
            await agent.resume(known, project, mcpServers=servers)
        front = await stage.front_end()
        sessions = await front.get("session", directory=str(project))
        assert [one["id"] for one in sessions] == [known]
        assert await listed(stage, project) == {}
        assert (await agent.prompt(known, "@@text 1@@"))["stopReason"] == "end_turn"


async def test_an_operator_may_refuse_them(stage: Stage) -> None:
    project = stage.project(ALL)
    async with registering(stage, "reject") as agent:
        async with fails(-32602) as error:
            await agent.new_session(project, mcpServers=[stdio("a", "ok")])
        assert "MCP" in str(error())
        assert await (await stage.front_end()).get("session", directory=str(project)) == []
        session = await agent.new_session(project, mcpServers=[])
        assert (await agent.prompt(session, "@@text 1@@"))["stopReason"] == "end_turn"


@pytest.mark.parametrize("policy", ["notice", "register", "reject"])
async def test_http_is_offered_where_it_is_taken(stage: Stage, policy: str) -> None:
    argv, env = agent_argv(stage.backend.url), agent_env(stage.backend.password)
    env |= {"OPENCODE_ACP_MCP": policy}
    async with CheckedClient.spawn(argv, env=env) as agent:
        offer = (await agent.initialize())["agentCapabilities"]["mcpCapabilities"]
        assert await agent.hang_up() == 0
    assert offer == {"http": policy == "register", "sse": False}
