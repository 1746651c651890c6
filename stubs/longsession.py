"""A session with a long history, as the body of the server's import route.

Rows are made, not prompted: a thousand turns of a real model take minutes.
"""

from __future__ import annotations

from typing import Any, Final

Json = dict[str, Any]

BEGAN: Final = 1_700_000_000_000
TURN_MS: Final = 1000


def long_session(
    session: str, directory: str, turns: int, *, tools: int = 0, size: int = 0
) -> Json:
    """`turns` prompts with one answer each; an answer has `tools` reads of `size` characters."""
    rows: list[Json] = []
    for turn in range(turns):
        rows += _turn(session.removeprefix("ses_"), turn, tools, size)
    return {
        "info": {
            "id": session,
            "projectID": "global",
            "cost": 0,
            "tokens": {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}},
            "time": {"created": BEGAN, "updated": BEGAN + turns * TURN_MS},
            "title": "A long talk",
            "location": {"directory": directory},
        },
        "messages": rows,
        "location": {"directory": directory},
    }


def answer_text(turn: int) -> str:
    """What the answer of a turn says."""
    return f"answer {turn} "


def _turn(name: str, turn: int, tools: int, size: int) -> list[Json]:
    began = BEGAN + turn * TURN_MS
    text = {"type": "text", "text": answer_text(turn)}
    calls = [_tool(number, size, began) for number in range(tools)]
    return [
        {
            "id": f"msg_{turn:06}a{name}",
            "type": "user",
            "text": f"prompt {turn}",
            "time": {"created": began},
        },
        {
            "id": f"msg_{turn:06}b{name}",
            "type": "assistant",
            "agent": "build",
            "model": {"id": "fake-1", "providerID": "fake"},
            "content": [text, *calls],
            "finish": "stop",
            "cost": 0,
            "tokens": {"input": 1, "output": 1, "reasoning": 0, "cache": {"read": 0, "write": 0}},
            "time": {"created": began + 1, "completed": began + 2},
        },
    ]


def _tool(number: int, size: int, began: int) -> Json:
    return {
        "type": "tool",
        "id": f"call_{number}",
        "name": "read",
        "executed": False,
        "state": {
            "status": "completed",
            "input": {"path": f"file{number}.txt"},
            "content": [{"type": "text", "text": "line of text\n" * (size // 13)}],
            "metadata": {"truncated": False},
        },
        "time": {"created": began, "ran": began, "completed": began},
    }
