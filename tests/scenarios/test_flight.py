"""A turn that nothing proves leaves its flight in the log, and the core flies it again."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.scenarios.stage import (
    Stage,
    agent_argv,
    agent_env,
    checked_agent,
    fails,
    prompting,
    saw_log,
    saw_text,
)


async def test_an_unknown_outcome_can_be_replayed(own_stage: Stage, tmp_path: Path) -> None:
    argv = [*agent_argv(own_stage.backend.url), "--log-format", "json"]
    async with checked_agent(argv, agent_env(own_stage.backend.password)) as agent:
        session = await agent.new_session(own_stage.project())
        async with prompting(agent, session, "canary @@text 300 30@@") as prompt:
            await saw_text(agent, session, "w3 ")
            await own_stage.backend.crash()
            async with fails(-32050) as error:
                await prompt
        await saw_log(agent, "the flight of ")
        log = agent.stderr
    assert b"canary" not in log and b"w3" not in log
    (tmp_path / "log").write_bytes(log)
    command = [sys.executable, "-m", "adapter.cli", "replay", str(tmp_path / "log")]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe)
    out, err = await process.communicate()
    assert (process.returncode, err) == (0, b"")
    lines = out.decode().splitlines()
    (settled,) = [line for line in lines if "Settled(" in line]
    assert "-32050" in settled
    assert error().data["messageId"] in settled
    assert lines[-1] == "It ended as it did."
