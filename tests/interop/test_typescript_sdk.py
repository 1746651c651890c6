"""The client of the TypeScript SDK 2.4.0, which repairs bad fields and complains on stderr."""

from __future__ import annotations

from typing import Any

from tests.interop.node import Json, steps
from tests.interop.script import PROMPTS, WHOLE
from tests.scenarios.backends import Backend
from tests.scenarios.stage import ASKS, agent_argv, agent_env, words


def choices(step: Json) -> dict[str, str]:
    """The current value of each option."""
    return {option["id"]: option["currentValue"] for option in step["configOptions"]}


def text(updates: list[Json], kind: str) -> str:
    """The text of all chunks of that kind."""
    found = (update for update in updates if update["sessionUpdate"] == kind)
    return "".join(update["content"]["text"] for update in found)


def listed(step: Json) -> set[str]:
    """The sessions of a list."""
    return {session["sessionId"] for session in step["sessions"]}


async def conversation(backend: Backend) -> dict[str, Any]:
    return await steps(
        "typescript_sdk.mjs",
        {
            "command": agent_argv(backend.url),
            "env": agent_env(backend.password),
            "cwd": str(backend.project(ASKS)),
            "prompts": PROMPTS,
        },
    )


async def test_a_conversation(backend: Backend) -> None:
    told = await conversation(backend)
    assert told["initialize"]["protocolVersion"] == 1
    before = {"model": "fake/fake-1", "effort": "default", "mode": "build"}
    assert choices(told["new"]) == before
    after = {"model": "fake/fake-2", "effort": "high", "mode": "reviewer"}
    assert choices(told["effort"]) == after

    prompt = told["prompt"]
    assert (prompt["stopReason"], prompt["usage"]["totalTokens"]) == ("end_turn", 2100)
    assert text(prompt["updates"], "agent_thought_chunk") == words(2, "think")
    assert text(prompt["updates"], "agent_message_chunk") == words(3) + words(2)
    (ask,) = prompt["asks"]
    tools = [u for u in prompt["updates"] if u["sessionUpdate"].startswith("tool_call")]
    assert {tool["toolCallId"] for tool in tools} == {ask["toolCall"]["toolCallId"]}
    assert (tools[-1]["status"], tools[-1]["content"][0]["content"]["text"]) == (
        "completed",
        "hi\n",
    )

    question = told["question"]
    (form,) = question["forms"]
    tool = [u for u in question["updates"] if u["sessionUpdate"].startswith("tool_call")][-1]
    assert (tool["toolCallId"], tool["status"]) == (form["toolCallId"], "completed")
    assert "Red" in tool["content"][0]["content"]["text"]

    stops = [told[step]["stopReason"] for step in ("cancel", "abort", "withdrawn")]
    assert (stops, told["withdrawn"]["aborted"]) == (["cancelled"] * 3, True)
    assert choices(told["resume"]) == choices(told["load"]) == after
    history = told["load"]["updates"]
    assert text(history, "user_message_chunk").startswith(WHOLE)
    assert text(history, "agent_thought_chunk") == words(2, "think")
    assert text(history, "agent_message_chunk").startswith(words(3) + words(2) + "w0 w1 ")
    mine, fork = told["new"]["sessionId"], told["fork"]["sessionId"]
    assert listed(told["list"]) == {mine, fork}
    assert listed(told["list again"]) == {mine}
    assert told["salvaged"]["salvaged"] == []
    assert told["exit"]["code"] == 0
