"""Starts: a server that is down or is not the one, settings that cannot work, a crash."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest
from aiohttp import web

from contract.routes import PROMPT, REQUIRED
from stubs.real_server import PASSWORD
from stubs.server import Settings, StubServer
from tests.scenarios.raw import raw_agent
from tests.scenarios.stage import agent_argv, agent_env, checked_agent, fails, words

HELLO = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}
HELLO_LINE = json.dumps(HELLO).encode() + b"\n"


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


async def test_a_server_that_is_down_and_comes_up_later(tmp_path: Path) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    async with checked_agent(agent_argv(url), agent_env(PASSWORD)) as agent:
        async with fails(-32603) as error:
            await agent.new_session(tmp_path)
        assert url in error().message
        async with StubServer(Settings(password=PASSWORD), port):
            session = await agent.new_session(tmp_path)
            await agent.prompt(session, "@@text 3@@")
            assert agent.transcript(session).text() == words(3)


async def test_a_server_without_a_route_is_refused_by_its_name(tmp_path: Path) -> None:
    paths: dict[str, dict[str, object]] = {}
    for route in REQUIRED:
        if route != PROMPT:
            paths.setdefault(route.path, {})[route.method.lower()] = {}

    async def openapi(_: web.Request) -> web.Response:
        return web.json_response({"openapi": "3.1.0", "paths": paths})

    app = web.Application()
    app.router.add_get("/openapi.json", openapi)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        async with checked_agent(agent_argv(url), agent_env(PASSWORD)) as agent:
            for attempt in (
                agent.new_session(tmp_path),
                agent.resume("ses_something", tmp_path),
            ):
                async with fails(-32054) as error:
                    await attempt
                assert PROMPT.name in error().message
    finally:
        await runner.cleanup()


@pytest.mark.parametrize(
    "flags",
    [
        ["--server", "nonsense"],
        ["--server", "http://user:secret@127.0.0.1:1"],
        ["--password-file", "/nonexistent/file"],
        ["--nothing"],
        ["--log-level", "loud"],
    ],
)
async def test_a_start_that_cannot_work_is_one_sentence(flags: list[str]) -> None:
    argv = [*agent_argv("http://127.0.0.1:1"), *flags]
    async with raw_agent(argv, agent_env(PASSWORD)) as agent:
        # A client that leaves at once is a probe, which need not be told.
        await agent.say(HELLO_LINE)
        await agent.ended()
        code, out, err = await agent.finish()
    assert code == 2
    # It ends before it answers: only then does a client show what it said.
    assert out == b""
    assert len(err.decode().strip().splitlines()) == 1, err.decode()
    assert b"secret" not in err


async def test_a_crash_leaves_stdout_to_acp(tmp_path: Path) -> None:
    (tmp_path / "uvloop.py").write_text("print('noise')\nraise RuntimeError('broken')\n", "utf-8")
    env = {**agent_env(PASSWORD), "PYTHONPATH": str(tmp_path)}
    async with raw_agent(agent_argv("http://127.0.0.1:1"), env) as agent:
        await agent.say(HELLO_LINE)
        assert "result" in await agent.line()
        await agent.ended()
        code, out, err = await agent.finish()
    assert (code, out) == (1, b"")
    assert b"broken" in err and b"noise" in err
