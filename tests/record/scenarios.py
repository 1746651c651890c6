"""What is recorded. Each scenario has a session of its own; the model is the scripted one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Final

from tests.record.recorder import Recorder

Scenario = Callable[[Recorder], Awaitable[None]]

PERMISSION: Final = {"shell": "ask", "edit": "allow"}
WRITE: Final = 'tool write {"path":"notes.txt","content":"one\\ntwo\\n"}'
EDIT: Final = 'tool edit {"path":"notes.txt","oldString":"two","newString":"three"}'
SHELL: Final = 'tool shell {"command":"echo forty-two"}'
CHILD: Final = r"\u0040@" + 'tool shell {\\"command\\":\\"echo child\\"} || text 3' + r"@\u0040"


async def text(recorder: Recorder) -> None:
    """A thought and a text."""
    await recorder.prompt(1, "@@think 5 30 && text 20 30@@")
    await recorder.ended()


async def tools(recorder: Recorder) -> None:
    """Text, a tool that is asked for and allowed, two edits, text: four steps of one turn."""
    steps = (f"text 6 30 && {SHELL}", f"think 3 30 && {WRITE}", EDIT, "text 10 30")
    await recorder.prompt(1, f"@@{' || '.join(steps)}@@")
    await recorder.reply("once")
    await recorder.ended()


async def rejected(recorder: Recorder) -> None:
    """A tool that is rejected with a message, after which the turn goes on."""
    await recorder.prompt(1, f"@@{SHELL} || text 8 30@@")
    await recorder.reply("reject", "The user refused this.")
    await recorder.ended()


async def child(recorder: Recorder) -> None:
    """A sub-agent whose tool is asked for in the child session."""
    call = f'tool subagent {{"agent":"general","description":"d","prompt":"{CHILD}"}}'
    await recorder.prompt(1, f"@@{call} || text 4 30@@")
    await recorder.reply("once")
    await recorder.ended()


async def retried(recorder: Recorder) -> None:
    """The provider fails once before any text."""
    await recorder.prompt(1, "@@error 500 1 && text 8 30@@")
    await recorder.ended()


async def dropped(recorder: Recorder) -> None:
    """The provider breaks off after partial text, and the text comes anew in another message."""
    await recorder.prompt(1, "@@text 8 30 && drop 1@@")
    await recorder.ended()


async def failed(recorder: Recorder) -> None:
    """The provider refuses for good."""
    await recorder.prompt(1, "@@error 400 always@@")
    await recorder.ended()


async def filtered(recorder: Recorder) -> None:
    """The provider's content filter ends the answer."""
    await recorder.prompt(1, "@@text 3 30 && filter@@")
    await recorder.ended()


async def interrupted(recorder: Recorder) -> None:
    """An interrupt in mid-text."""
    await recorder.prompt(1, "@@text 200 30@@")
    await recorder.heard("session.text.delta", times=2)
    await recorder.interrupt()
    await recorder.ended()


async def queued(recorder: Recorder) -> None:
    """Two prompts, the second one while the first runs: one execution serves both."""
    await recorder.prompt(1, "@@text 12 30@@")
    await recorder.heard("session.text.delta")
    await recorder.prompt(2, "@@text 7 30@@")
    await recorder.ended()


async def parked(recorder: Recorder) -> None:
    """An interrupt parks the prompt that waits; a change of its delivery wakes it."""
    await recorder.prompt(1, "@@text 200 30@@")
    await recorder.heard("session.text.delta")
    second = await recorder.prompt(2, "@@text 7 30@@")
    await recorder.interrupt()
    await recorder.ended()
    await recorder.wake(second)
    await recorder.ended(times=2)


async def withdrawn(recorder: Recorder) -> None:
    """A prompt that is taken out of the inbox before it is delivered."""
    await recorder.prompt(1, "@@text 20 30@@")
    await recorder.heard("session.text.delta")
    second = await recorder.prompt(2, "@@text 7@@")
    await recorder.withdraw(second)
    await recorder.ended()


async def silent(recorder: Recorder) -> None:
    """A model that says nothing for longer than the pause between two heartbeats."""
    await recorder.prompt(1, "@@text 3 30 && wait 16000 && text 3 30@@")
    await recorder.ended()


SCENARIOS: Final[Mapping[str, Scenario]] = MappingProxyType(
    {
        one.__name__: one
        for one in (
            text, tools, rejected, child, retried, dropped, failed, filtered,
            interrupted, queued, parked, withdrawn, silent,
        )
    }
)  # fmt: skip
