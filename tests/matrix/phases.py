"""The phases of a turn in which a fault may come, and how a scene gets there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from stubs.proxy import Rule
from stubs.real_server import Permission
from stubs.waiting import until
from tests.matrix.scene import Scene
from tests.scenarios.stage import ASKS, saw_text, saw_tool, shell, words

ADMISSION_SECONDS: Final = 0.3


async def nothing(_: Scene) -> None:
    """No more is done in that phase."""


@dataclass(frozen=True, slots=True)
class Phase:
    """`reach` begins the turn and waits for its phase; `meanwhile` is done under the fault.

    `texts` is all that the model says to the prompt, and `thoughts` what it thinks.
    """

    key: str
    means: str
    reach: Callable[[Scene], Awaitable[None]]
    texts: str
    thoughts: str = ""
    meanwhile: Callable[[Scene], Awaitable[None]] = nothing
    permission: Permission = field(default_factory=dict)


async def submitted(scene: Scene) -> None:
    scene.proxy.add(Rule(r"/prompt$", "POST", delay=ADMISSION_SECONDS))
    scene.prompt("@@text 40 25@@")
    path = f"POST /api/session/{scene.session}/prompt"

    async def posted() -> bool:
        return path in scene.proxy.requests

    await until("the prompt is on its way", posted)


async def queued(scene: Scene) -> None:
    front = scene.front
    await front.post(f"session/{scene.session}/prompt", {"text": "@@text 40 25@@"})

    async def runs() -> bool:
        return bool(await front.rows(scene.session, "user"))

    await until("the neighbour's turn runs", runs)
    scene.prompt("@@text 12 25@@")
    await front.until_inbox(scene.session, 1)


async def text(scene: Scene) -> None:
    scene.prompt("@@think 3 && text 40 25@@")
    await saw_text(scene.agent, scene.session, "w3 ")


async def tool(scene: Scene) -> None:
    scene.prompt(f"@@text 2 && {shell('sleep 1; echo out')} || text 5 25@@")
    await saw_tool(scene.agent, scene.session, "in_progress")


async def ask(scene: Scene) -> None:
    scene.prompt(f"@@text 2 && {shell('echo out')} || text 5 25@@")
    await scene.agent.wait_for(lambda: is_asked(scene))


def is_asked(scene: Scene) -> bool:
    """Whether the client was asked for a permission of the session."""
    asked = ("session/request_permission", scene.session)
    messages = (line.message for line in reversed(scene.agent.updates) if "params" in line.message)
    return any((one["method"], one["params"].get("sessionId")) == asked for one in messages)


async def allow(scene: Scene) -> None:
    scene.patience.set()


async def long_text(scene: Scene) -> None:
    scene.prompt("@@text 300 25@@")
    await saw_text(scene.agent, scene.session, "w3 ")


async def cancel(scene: Scene) -> None:
    await scene.agent.cancel(scene.session)


async def ended(scene: Scene) -> None:
    """Its end is on the way, and held."""
    scene.prompt("@@text 20 25@@")
    await saw_text(scene.agent, scene.session, "w3 ")
    scene.proxy.hold()
    await scene.front.until_idle(scene.session)


async def let_pass(scene: Scene) -> None:
    scene.proxy.release()


PHASES: Final = (
    Phase("submitted", "the request with the prompt is on its way", submitted, words(40)),
    Phase("queued", "the prompt waits behind a neighbour's turn", queued, words(12)),
    Phase("text", "the model writes", text, words(40), words(3, "think")),
    Phase("tool", "a tool runs", tool, words(2) + words(5)),
    Phase(
        "ask", "a permission is open, and answered after", ask, words(2) + words(5), "", allow, ASKS
    ),
    Phase(
        "cancel",
        "the model writes, and the client cancels after",
        long_text,
        words(300),
        "",
        cancel,
    ),
    Phase(
        "ended", "the server is done, and nobody has heard so far", ended, words(20), "", let_pass
    ),
)
