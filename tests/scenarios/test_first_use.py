"""The first use of a directory: the server boots it meanwhile, what is built in first."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio

from stubs.real_server import PASSWORD, real_server
from stubs.server import Settings
from tests.scenarios.backends import Backend, RealBackend, stub_backend
from tests.scenarios.stage import Json, Stage
from tests.scenarios.test_mcp import SERVER, listed
from tests.scenarios.test_sessions import choices

BUILT_IN: Final[Json] = {
    "id": "built-in",
    "name": "Free of charge",
    "tool_call": True,
    "modalities": {"input": ["text"], "output": ["text"]},
    "cost": {"input": 0, "output": 0},
    "limit": {"context": 100_000, "output": 8_000},
}
# A server that knows no model without a configuration shows its lists all at once.
CATALOGUE: Final[Json] = {
    "opencode": {
        "id": "opencode",
        "name": "OpenCode",
        "env": ["OPENCODE_API_KEY"],
        "npm": "@ai-sdk/openai-compatible",
        "api": "http://127.0.0.1:9/v1",
        "models": {"built-in": BUILT_IN},
    }
}


@pytest_asyncio.fixture(
    loop_scope="session", params=["stub", pytest.param("real", marks=pytest.mark.real)]
)
async def own_stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stage]:
    """A server that takes its time for a directory, and has a model of its own half-way."""
    async with AsyncExitStack() as stack:
        backend: Backend
        if request.param == "stub":
            settings = Settings(password=PASSWORD, boot=0.4)
            backend = await stack.enter_async_context(stub_backend(tmp_path, settings))
        else:
            server = real_server(tmp_path, catalogue=CATALOGUE)
            backend = RealBackend(tmp_path, await stack.enter_async_context(server))
        yield Stage(backend, stack)


async def test_model_and_mode_are_those_of_the_configuration(own_stage: Stage) -> None:
    """Half-way through a boot another model and another agent are the default ones."""
    agent, front = await own_stage.agent(), await own_stage.front_end()
    for _ in range(2):
        project = own_stage.project(model="fake/fake-2", default_agent="reviewer")
        session = await agent.new_session(project)
        told = choices(agent.sessions[session])
        assert told == {"model": "fake/fake-2", "effort": "default", "mode": "reviewer"}
        await agent.prompt(session, "@@text 1@@")
        # The server uses them by itself: nobody has chosen anything for the session.
        assert {"agent", "model"}.isdisjoint(await front.get(f"session/{session}"))
        assert "config_option_update" not in agent.transcript(session).latest
        await agent.set_mode(session, "build")
        await agent.prompt(session, "@@text 1@@")
        rows = await front.rows(session, "assistant")
        ran = [(row["agent"], row["model"]["id"]) for row in rows]
        assert ran == [("reviewer", "fake-2"), ("build", "fake-2")]


@pytest.mark.parametrize("own_stage", [pytest.param("real", marks=pytest.mark.real)], indirect=True)
async def test_an_mcp_server_of_the_configuration_that_hangs_holds_up_nothing(
    own_stage: Stage,
) -> None:
    """On the real server alone: the stub starts none of those."""
    agent = await own_stage.agent()
    hangs = {"type": "local", "command": [sys.executable, SERVER, "hang"]}
    project = own_stage.project(mcp={"slow": hangs})
    # Less than what a directory whose lists stay empty is waited for.
    async with asyncio.timeout(8):
        session = await agent.new_session(project)
    assert await listed(own_stage, project) == {"slow": "pending"}
    assert (await agent.prompt(session, "@@text 2@@"))["stopReason"] == "end_turn"
    # Asked to end, it would wait for the one that hangs.
    assert isinstance(own_stage.backend, RealBackend)
    await own_stage.backend.server.kill()
