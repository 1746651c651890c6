"""acpx/runtime 0.19.1, the library that OpenClaw embeds."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from contract.errors import Code
from tests.interop.node import Json, steps
from tests.interop.script import PROMPTS
from tests.scenarios.backends import Backend
from tests.scenarios.stage import ASKS, agent_argv, agent_env, words

CHOSEN: Final = {
    "model": "fake/fake-2",
    "options": {"model": "fake/fake-2", "effort": "high", "mode": "reviewer"},
}
WELL: Final = {"exitCode": 0, "signal": None}


def ended(process: Json) -> list[tuple[str, Json]]:
    """How each agent process ended, by what it was for."""
    exits = process["exits"]["exits"]
    return sorted(
        ((one["kind"], {"exitCode": one["exitCode"], "signal": one["signal"]}) for one in exits),
        key=str,
    )


def text(turn: Json, stream: str = "output") -> str:
    """What the turn streamed."""
    deltas = (event for event in turn["events"] if event["type"] == "text_delta")
    return "".join(event["text"] for event in deltas if event["stream"] == stream)


def outcome(turn: Json) -> tuple[str, str]:
    """How it ended, and in what status its last tool was left."""
    tools = [event["status"] for event in turn["events"] if event["type"] == "tool_call"]
    return turn["result"]["status"], tools[-1]


def chosen(told: dict[str, Json]) -> Json:
    """The model that the runtime takes for the current one, and all that was chosen."""
    return {key: told["chosen"][key] for key in CHOSEN}


async def test_sessions_of_two_processes(backend: Backend, tmp_path: Path) -> None:
    told: dict[str, Any] = {
        "command": agent_argv(backend.url),
        "env": agent_env(backend.password),
        "cwd": str(backend.project(ASKS)),
        "state": str(tmp_path),
        "prompts": PROMPTS,
    }
    first = await steps("acpx_runtime.mjs", told)
    assert first["probe"]["healthy"] is True
    assert first["probe"]["availableModelIds"] == ["fake/fake-1", "fake/fake-2"]
    assert first["chat"]["configOptionKeys"] == ["model", "effort", "mode"]
    assert chosen(first) == CHOSEN
    assert text(first["turn"], "thought") == words(2, "think")
    assert text(first["turn"]) == words(3) + words(2)
    assert outcome(first["turn"]) == ("completed", "completed")
    assert first["spent"]["cumulative"]["totalTokens"] == 2100
    assert first["cancelled"]["result"]["status"] == "cancelled"
    assert text(first["refused"]) == words(4)
    assert outcome(first["refused"]) == ("completed", "failed")

    again = await steps("acpx_runtime.mjs", {**told, "resume": first["once"]["id"]})
    assert again["chat"]["id"] == first["chat"]["id"]
    assert text(again["turn"]) == words(3) + words(2)
    assert chosen(again) == CHOSEN
    assert outcome(again["answered"]) == ("completed", "completed")
    assert [form["message"] for form in again["answered"]["forms"]] == ["Which color?"]
    assert again["once"]["id"] == first["once"]["id"]
    assert text(again["resumed"]) == words(4)
    assert outcome(again["resumed"]) == ("completed", "completed")
    assert again["gone"]["code"] == Code.SESSION_GONE
    # A probe ends as well as a session does: no process needed a signal.
    assert ended(first) == [("runtime-probe", WELL), *[("runtime-session", WELL)] * 2]
    assert ended(again) == [("runtime-session", WELL)] * 4
