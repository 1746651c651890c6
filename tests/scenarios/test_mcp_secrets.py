"""What a client entrusts to its MCP servers is told to nobody, whatever the server says of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from stubs.parts import ROOT
from tests.scenarios.stage import Json, Stage, fails, saw_log
from tests.scenarios.test_mcp import ALL, call, http_server, listed, registering, stdio

SECRET: Final = "cAnary-of-mcp-7Qx"


def secretive(url: str) -> list[Json]:
    """Servers with a secret in all that they have, each of which fails in another way."""
    key, header = {"name": "KEY", "value": SECRET}, {"name": "X-Token", "value": SECRET}
    web = {"type": "http", "headers": [header]}
    local = {"args": [f"--key={SECRET}"], "env": [key]}
    return [
        {**local, "name": "missing", "command": f"/nonexistent/{SECRET}"},
        {**local, "name": "no program", "command": str(ROOT)},
        stdio("exit", "exit", KEY=SECRET),
        stdio("refuse", "refuse", "/dev/null", SECRET, KEY=SECRET),
        {**web, "name": "refuses", "url": f"{url}?key={SECRET}"},
        {**web, "name": "no port", "url": f"http://me:{SECRET}@127.0.0.1:9/?key={SECRET}"},
        {**web, "name": "no host", "url": f"http://{SECRET}.invalid/"},
    ]


UNSENDABLE: Final[dict[str, Json]] = {
    "header": {"type": "http", "name": "h", "url": "http://127.0.0.1:9/",
               "headers": [{"name": "Authorization", "value": f"Bearer {SECRET}\n."}]},
    "no latin-1": {"type": "http", "name": "h", "url": "http://127.0.0.1:9/",
                   "headers": [{"name": "Authorization", "value": f"{SECRET}\u2013"}]},
    "header name": {"type": "http", "name": "h", "url": "http://127.0.0.1:9/",
                    "headers": [{"name": f"A {SECRET}", "value": ""}]},
    "variable": stdio("e", "ok", KEY=f"{SECRET}\0"),
    "argument": stdio("a", "ok", f"{SECRET}\0"),
    "command": {"name": "c", "command": f"{SECRET}\0", "args": [], "env": []},
    "address": {"type": "http", "name": "u", "url": f"http://{SECRET} /", "headers": []},
}  # fmt: skip


@pytest.mark.parametrize("server", UNSENDABLE.values(), ids=UNSENDABLE)
async def test_what_the_server_could_only_refuse_opens_nothing_and_is_not_quoted(
    stage: Stage, server: Json
) -> None:
    """X-14: the server would quote it in its list."""
    project = stage.project(ALL)
    async with registering(stage, "register", "", "--log-level", "debug") as agent:
        async with fails(-32602) as error:
            await agent.new_session(project, mcpServers=[server])
        assert await agent.hang_up() == 0
        assert await listed(stage, project) == {}
        assert SECRET not in json.dumps([error().message, error().data])
        assert b"PUT" not in agent.stderr
        assert SECRET.encode() not in agent.stderr


async def test_nothing_tells_or_logs_what_a_client_keeps_secret(
    stage: Stage, tmp_path: Path
) -> None:
    """X-14: commands, arguments, environments, headers and addresses; the server quotes them."""
    project = stage.project(ALL)
    async with (
        http_server(tmp_path) as url,
        registering(stage, "register", "", "--log-level", "debug") as agent,
    ):
        servers = secretive(url)
        works = stdio("works", "ok", "/dev/null", SECRET, KEY=SECRET)
        session = await agent.new_session(project, mcpServers=[*servers, works])
        await agent.prompt(session, call(session, "works", "echo"))
        (notice,) = agent.transcript(session).notices
        told = notice["_meta"]["opencode-acp"]["servers"]
        assert [one["name"] for one in told] == [one["name"] for one in servers]
        assert {one["reason"] for one in told} == {
            "its program was not found",
            "its program may not be run",
            "it ended before it could be used",
            "it failed to start",
            "its address refused the request",
            "its address cannot be reached",
        }
        await agent.close_session(session)
        assert await agent.hang_up() == 0
        assert SECRET not in json.dumps([line.message for line in agent.updates])
        await saw_log(agent, "PUT")
        assert SECRET.encode() not in agent.stderr
