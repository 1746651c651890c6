"""How many updates are built in a second on one core: what a replay or a busy turn needs.

Each round builds the update of every message of a mix and nothing else: no line is encoded. The
time is that of this process, whatever else the machine does.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from typing import Final

from adapter.acp import updates
from adapter.core.values import Chunk, Tool, ToolStatus
from contract.shapes import ToolContent
from tests.bench.report import report

HOME: Final = "/srv/project"
LEAST_TEXTS: Final = 50_000
MESSAGES: Final = 20_000
ROUNDS: Final = 5
WORDS: Final = "a sentence of the usual length, with some \u201cquotes\u201d and an end. "
PATCH: Final = "--- a\n+++ a\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"

Build = Callable[[], object]


def text(number: int) -> Build:
    chunk = Chunk(1, f"msg_{number}", "text", WORDS)
    return lambda: list(updates.chunks(chunk))


def thought(number: int) -> Build:
    chunk = Chunk(1, f"msg_{number}", "reasoning", WORDS * 4)
    return lambda: list(updates.chunks(chunk))


def user(number: int) -> Build:
    return lambda: list(updates.user_text(f"msg_{number}", WORDS * 2))


def shell(number: int) -> Build:
    """A command with 2 KB of output, as it ends."""
    output = ToolContent(type="text", text=WORDS * 30)
    tool = Tool(
        1, f"msg_{number}", "call_0_0", "shell", ToolStatus.COMPLETED, first=True,
        input={"command": "make test", "description": "Run the tests"}, content=(output,),
        metadata={"status": "completed", "truncated": False, "exit": 0},
    )  # fmt: skip
    return lambda: updates.tool(tool, HOME)


def edit(number: int) -> Build:
    """A small edit, as it ends."""
    files = [{"file": f"src/file{number % 50}.py", "patch": PATCH, "status": "modified"}]
    tool = Tool(
        1, f"msg_{number}", "call_0_0", "edit", ToolStatus.COMPLETED, first=True,
        input={"path": f"src/file{number % 50}.py", "oldString": "two", "newString": "2"},
        content=(ToolContent(type="text", text="Edited (1 replacement)"),),
        metadata={"files": files, "truncated": False},
    )  # fmt: skip
    return lambda: updates.tool(tool, HOME)


def running(number: int) -> Build:
    """A call that has begun."""
    tool = Tool(
        1, f"msg_{number}", "call_0_0", "read", ToolStatus.IN_PROGRESS,
        input={"path": f"src/file{number % 50}.py", "offset": 10},
    )  # fmt: skip
    return lambda: updates.tool(tool, HOME)


# What stands in a conversation of a coding agent: of eight messages three are calls of tools.
MIX: Final = (user, thought, running, shell, text, running, edit, text)


def rate(kinds: Iterable[Callable[[int], Build]]) -> float:
    """Updates per second over MESSAGES messages of these kinds in turn."""
    makers = tuple(kinds)
    builds = [makers[number % len(makers)](number) for number in range(MESSAGES)]
    start = time.process_time()
    for build in builds:
        build()
    return MESSAGES / (time.process_time() - start)


def measure() -> bool:
    """Whether texts keep within the bound."""
    kept = report(
        "updates of texts", [rate([text]) for _ in range(ROUNDS)], "/s", LEAST_TEXTS, least=True
    )
    for what, kinds in (
        ("updates of thoughts", (thought,)),
        ("updates of calls that run", (running,)),
        ("updates of commands with 2 KB of output", (shell,)),
        ("updates of edits with a diff", (edit,)),
        ("updates of a conversation", MIX),
    ):
        report(what, [rate(kinds) for _ in range(ROUNDS)], "/s")
    return kept


if __name__ == "__main__":
    sys.exit(0 if measure() else 1)
