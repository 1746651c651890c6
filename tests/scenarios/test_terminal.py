"""The terminal client of the project on the adapter: what a person sees by hand."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path

from stubs.parts import ROOT
from tests.scenarios.stage import Stage, agent_argv, agent_env, words

PATIENCE = 60.0
"""Seconds for one conversation."""


async def talk(stage: Stage, *options: str, said: str = "", until: str = "", code: int = 0) -> str:
    """All that it prints; standard input ends once it has printed `until`."""
    argv = [sys.executable, "-m", "stubs.client", *options, "--", *agent_argv(stage.backend.url)]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *argv, cwd=ROOT, env=agent_env(stage.backend.password), stdin=pipe, stdout=pipe
    )
    assert process.stdin is not None
    assert process.stdout is not None
    out = ""
    try:
        async with asyncio.timeout(PATIENCE):
            process.stdin.write(said.encode())
            while until not in out and (line := await process.stdout.readline()):
                out += line.decode()
            process.stdin.close()
            out += (await process.stdout.read()).decode()
            await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == code, out
    return out


def session_of(shown: str) -> str:
    found = re.search(r"^\[session\] (\S+)$", shown, re.MULTILINE)
    assert found is not None, shown
    return found[1]


def where(made: Path) -> tuple[str, str]:
    return "--cwd", str(made)


async def test_lines_are_prompts_and_all_that_is_said_is_shown(stage: Stage) -> None:
    made = stage.project()
    shown = await talk(stage, *where(made), said="@@text 3@@\n\n/compact\n")
    assert f"[text]\n{words(3)}\n" in shown
    assert "[compaction] completed (id msg_acp_" in shown
    assert shown.count("[done] end_turn (messageId msg_acp_") == 2


async def test_a_session_is_opened_again(stage: Stage) -> None:
    made = stage.project()
    session = session_of(await talk(stage, *where(made), "--prompt", "@@text 3@@"))
    options = (*where(made), "--takes", "notices,compaction", "--ambient")
    shown = await talk(stage, "--resume", session, *options, until="[notice] resumed: ")
    assert session_of(shown) == session
    assert "The last prompt of this session was answered. (messageId msg_acp_" in shown
    shown = await talk(stage, "--load", session, *options, "--prompt", "@@text 1@@")
    assert f"[user, replay]\n@@text 3@@\n[text, replay]\n{words(3)}\n" in shown


async def test_a_prompt_that_fails_is_an_error_with_its_data(stage: Stage) -> None:
    made = stage.project()
    shown = await talk(stage, *where(made), "--prompt", "@@error 400 always@@", code=1)
    assert "[error] -32603: " in shown
    assert '"retrySafe": true' in shown
