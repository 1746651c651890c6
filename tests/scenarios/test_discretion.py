"""What a user, a model or a server writes is in no line of the log above the level `debug` (O-20).

On the stub alone, which fails as it is told to and quotes the canary each time.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from stubs.client import choose
from stubs.server.faults import Rule
from stubs.waiting import until
from tests.scenarios.backends import StubBackend, stub_backend
from tests.scenarios.questions import COLOR, FORMS, accept, ask
from tests.scenarios.stage import (
    ASKS,
    Json,
    agent_argv,
    agent_env,
    checked_agent,
    fails,
    prompting,
    saw_log,
    saw_text,
    shell,
)
from tests.support.checked import CheckedClient

CANARY: Final = "cAnary-of-words-8Rt"
FAULTY: Final = """
import sys
from unittest import mock
from adapter import cli

async def fails(prompt, *_):
    raise ValueError(str(prompt))

with mock.patch("adapter.engine.flights.recognise", fails):
    sys.exit(cli.main(sys.argv[1:]))
"""


@asynccontextmanager
async def discreet(
    root: Path, log_format: str, capabilities: Json | None = None
) -> AsyncIterator[tuple[CheckedClient, StubBackend]]:
    async with stub_backend(root) as backend:
        argv = [*agent_argv(backend.url), "--log-level", "info", "--log-format", log_format]
        env = agent_env(backend.password)
        policy = choose("allow_once")
        async with checked_agent(argv, env, policy, capabilities) as agent:
            yield agent, backend
        assert CANARY.encode() not in agent.stderr


async def logged(agent: CheckedClient, words: bytes, times: int = 1) -> None:
    """Wait until the log has them so often."""

    async def said() -> bool:
        return agent.stderr.count(words) >= times

    await until(f"{words!r} in the log", said)


@pytest.mark.parametrize("log_format", ["text", "json", "journal"])
async def test_the_words_of_a_turn_are_not_logged(tmp_path: Path, log_format: str) -> None:
    async with discreet(tmp_path, log_format, FORMS) as (agent, backend):
        agent.form_policy = accept(q0=CANARY)
        session = await agent.new_session(backend.project(ASKS))
        question = {**COLOR, "question": CANARY}
        for script in (
            f'@@say "{CANARY}" || {shell(f"echo {CANARY}")} || {ask(question)} || text 2@@',
            f'@@tool read {{"path":"{CANARY}"}} || tool {CANARY} {{"{CANARY}":1}} || text 2@@',
        ):
            result = await agent.prompt(session, f"{CANARY} {script}")
            assert result["stopReason"] == "end_turn"
        async with fails(-32603):
            await agent.prompt(session, f"{CANARY} @@error 400 always@@")
        await agent.prompt(session, f"/{CANARY} {CANARY} @@text 2@@")
        await logged(agent, b"recovered", 4)
        assert (b"CLIENT" in agent.stderr) is (log_format != "text")


async def test_the_complaints_of_a_server_are_not_logged(tmp_path: Path) -> None:
    """It may quote a prompt in them; the client, whose prompt it is, is told."""
    async with discreet(tmp_path, "text") as (agent, backend):
        session = await agent.new_session(backend.project(ASKS))
        faults = backend.stub.faults

        def rule(path: str, status: int, times: int = 1) -> None:
            faults.add(Rule("status", path, status=status, times=times, message=CANARY))

        rule("/command$", 500, 9)
        await agent.new_session(backend.project(ASKS))
        faults.clear()
        rule("/prompt$", 400)
        async with fails(-32603) as refused:
            await agent.prompt(session, f"{CANARY} @@text 1@@")
        rule("/permission/.*/reply$", 400)
        rule("/interrupt$", 500, 99)
        async with prompting(agent, session, f"{CANARY} @@{shell('echo hi')}@@") as turn:
            await logged(agent, b"was refused")
            rule("/(inbox|message|active)$", 500, 9)
            backend.stub.cut_feed(torn=True)
            await logged(agent, b"a snapshot of")
            await agent.cancel(session)
            await logged(agent, b"Interrupt failed")
            faults.clear()
            await turn
        assert CANARY in refused().message
        await saw_log(agent, "The OpenCode server failed (500).")
        await saw_log(agent, "refused the request (400 UnknownError).")


async def test_what_led_to_an_oddity_is_logged_without_a_word(tmp_path: Path) -> None:
    async with discreet(tmp_path, "text") as (agent, backend):
        session = await agent.new_session(backend.project())
        script = f'@@say "{CANARY}. {"and so on " * 9}" 20@@'
        async with prompting(agent, session, f"{CANARY} {script}") as turn:
            await saw_text(agent, session, CANARY[:8])
            ((message, _),) = agent.transcript(session).texts
            data = {"sessionID": session, "assistantMessageID": message, "ordinal": 0}
            ended = {"type": "session.text.ended", "data": {**data, "text": CANARY[::-1] * 9}}
            backend.stub.inject(ended)
            assert (await turn)["stopReason"] == "end_turn"
        await logged(agent, b"not as it had been shown")


async def test_a_crash_of_ours_is_told_without_what_it_was_about(tmp_path: Path) -> None:
    program = tmp_path / "faulty.py"
    program.write_text(FAULTY)
    async with stub_backend(tmp_path) as backend:
        argv = [sys.executable, str(program), "--server", backend.url, "--log-level", "info"]
        env = agent_env(backend.password)
        async with CheckedClient.spawn([*argv, "--daemon", "never"], env=env) as agent:
            await agent.initialize()
            session = await agent.new_session(backend.project())
            async with fails(-32050):
                await agent.prompt(session, f"{CANARY} @@text 1@@")
            assert await agent.hang_up() == 0
        await saw_log(agent, "Traceback")
        await saw_log(agent, "ValueError\n")
        assert CANARY.encode() not in agent.stderr
