"""What holds for all that one busy client causes: the requests to the server, and what is said.

On the stub alone, which writes down the requests that it saw.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from contract import routes
from stubs.client import choose
from stubs.server import Settings
from stubs.server.faults import Rule
from stubs.server.host import Seen
from tests.scenarios.backends import StubBackend, stub_backend
from tests.scenarios.stage import (
    ASKS,
    agent_argv,
    agent_env,
    checked_agent,
    fails,
    prompting,
    saw_text,
    shell,
    words,
)
from tests.scenarios.test_children import child
from tests.support.checked import CheckedClient

SECRET: Final = "cAnary-of-this-test-9Zq"
BASIC: Final = base64.b64encode(f"opencode:{SECRET}".encode()).decode()


@asynccontextmanager
async def server(root: Path) -> AsyncIterator[StubBackend]:
    async with stub_backend(root, Settings(password=SECRET)) as backend:
        yield backend


async def busy_day(agent: CheckedClient, backend: StubBackend) -> None:
    """Something of everything: choices, tools, asks, a question, a child, a gap, a cancel, a
    failure, a resume, a close."""
    project = backend.project(ASKS)
    session = await agent.new_session(project)
    await agent.set_mode(session, "plan")
    await agent.set_mode(session, "build")
    for option in (await agent.resume(session, project))["configOptions"]:
        current = option["currentValue"]
        other = [one["value"] for one in option["options"] if one["value"] != current]
        for value in [*other[:1], current]:
            await agent.set_config_option(session, option["id"], value)
    option = {"label": "Red", "description": "warm"}
    asked = {"questions": [{"question": "Color?", "header": "C", "options": [option]}]}
    for script in (
        f"@@think 3 && text 3 && {shell('echo hi')} || text 2@@",
        f"@@{child(shell('echo hi'))} || text 2@@",
        f"@@tool question {json.dumps(asked)} || text 2@@",
    ):
        assert (await agent.prompt(session, script))["stopReason"] == "end_turn"
    async with prompting(agent, session, "@@text 40 20@@") as cut:
        await saw_text(agent, session, "w3 ")
        backend.stub.cut_feed(torn=True)
        assert (await cut)["stopReason"] == "end_turn"
    async with prompting(agent, session, "@@text 300 20@@") as stopped:
        await saw_text(agent, session, "w41 ")
        await agent.cancel(session)
        assert (await stopped)["stopReason"] == "cancelled"
    async with fails(-32603):
        await agent.prompt(session, "@@error 400 always@@")
    await agent.close_session(session)


def is_used(seen: Seen) -> bool:
    """Whether a request is one of the routes in use."""
    return any(
        seen.method == route.method
        and re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", route.path), seen.path)
        for route in (*routes.USED, routes.OPENAPI)
    )


async def test_every_request_is_a_route_in_use(tmp_path: Path) -> None:
    """S4-D1: whatever a client does, the server sees nothing but used rows of the table."""
    async with server(tmp_path) as backend:
        argv = agent_argv(backend.url)
        async with checked_agent(argv, agent_env(SECRET), choose("allow_once")) as agent:
            await busy_day(agent, backend)
        log = list(backend.stub.log)
    assert [(seen.method, seen.path) for seen in log if not is_used(seen)] == []
    paths = {seen.path.rpartition("/")[2] for seen in log}
    assert {"prompt", "interrupt", "reply", "agent", "model", "inbox", "message", "info"} <= paths
    assert not is_used(Seen("GET", "/session", "", ""))
    assert not is_used(Seen("GET", "/api/session/ses_a/form/frm_a", "", ""))


def arguments_of(agent: CheckedClient) -> bytes:
    """The command line that every user of the machine can read."""
    return Path(f"/proc/{agent.process.pid}/cmdline").read_bytes()


@pytest.mark.parametrize("source", ["environment", "file"])
async def test_the_password_is_in_nothing_that_is_said(tmp_path: Path, source: str) -> None:
    """S0-06, S3-13: no line to the client, no line of the log at its most talkative, no argument
    and no request body has it, whatever happens."""
    async with server(tmp_path) as backend:
        argv = [*agent_argv(backend.url), "--log-level", "debug"]
        env = agent_env(SECRET)
        if source == "file":
            file = tmp_path / "password"
            file.write_text(SECRET + "\n")
            file.chmod(0o600)
            argv += ["--password-file", str(file)]
            del env["OPENCODE_SERVER_PASSWORD"]
        async with checked_agent(argv, env) as agent:
            await busy_day(agent, backend)
            session = await agent.new_session(backend.project())
            arguments = arguments_of(agent)
            # A proxy that quotes what it was asked.
            quoting = f"You sent Authorization: Basic {BASIC}, which is {SECRET}."
            for path, status in (("/prompt$", 400), ("/command$", 500)):
                rule = Rule("status", path, status=status, times=9, message=quoting)
                backend.stub.faults.add(rule)
            async with fails(-32603) as refused:
                await agent.prompt(session, "@@text 1@@")
            assert "You sent Authorization: Basic [hidden]" in refused().message
            await agent.new_session(backend.project())
            backend.stub.faults.clear()
            backend.stub.faults.unauthorized = True
            async with fails(-32000) as unauthorised:
                await agent.prompt(session, "@@text 1@@")
            backend.stub.faults.clear()
            errors = [[one.message, one.data] for one in (refused(), unauthorised())]
            said = json.dumps([[line.message for line in agent.updates], errors])
        told = said.encode() + agent.stderr + arguments
        bodies = "".join(seen.body + seen.path + seen.query for seen in backend.stub.log)
    assert b"session/prompt" in agent.stderr or b"POST" in agent.stderr, agent.stderr[-500:]
    for secret in (SECRET, BASIC):
        assert secret.encode() not in told
        assert secret not in bodies


async def test_text_around_a_tool_is_said_once(tmp_path: Path) -> None:
    """S2-35: text A, a tool, text B, and then a read with A and B and C emits C alone."""
    async with server(tmp_path) as backend:
        argv = agent_argv(backend.url)
        async with checked_agent(argv, agent_env(SECRET)) as agent:
            session = await agent.new_session(backend.project())
            script = f"@@text 5 && {shell('echo hi')} || text 60 20@@"
            async with prompting(agent, session, script) as turn:
                await saw_text(agent, session, words(5))
                await saw_text(agent, session, "w20 ")
                backend.stub.cut_feed(torn=True)
                await turn
            texts = agent.transcript(session).texts
    assert list(texts.values()) == [words(5), words(60)]
