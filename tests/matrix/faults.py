"""The faults: what each does to a scene, and what puts it right again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from adapter.upstream.lines import LINE_LIMIT
from stubs.client import AcpClientError
from stubs.proxy import FEED_PATH, Rule
from stubs.waiting import until
from tests.matrix.phases import nothing
from tests.matrix.scene import Scene, answered

Act = Callable[[Scene], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Fault:
    """`strike` comes in a phase of the turn, `mend` after what the client does meanwhile.

    `only` names the phases that have what it breaks, with the reason; none: all.
    """

    key: str
    means: str
    strike: Act
    mend: Act = nothing
    only: tuple[str, ...] = ()
    why: str = ""
    transports: tuple[str, ...] = ("process", "daemon")


# The feed.


def cut(clean: bool) -> Act:
    async def strike(scene: Scene) -> None:
        await torn(scene, clean=clean)

    return strike


async def torn(scene: Scene, *, clean: bool = False) -> None:
    """Until the feed is cut; what it held back is lost."""
    feeds = scene.proxy.feeds
    done = scene.proxy.cut_feed(clean=clean).done
    if feeds:
        await done.wait()


async def silence(scene: Scene) -> None:
    scene.proxy.hold()


async def given_up(scene: Scene) -> None:
    """Until the adapter has opened another feed."""

    def feeds() -> int:
        return list(scene.proxy.requests).count(f"GET {FEED_PATH}")

    before = feeds()

    async def again() -> bool:
        return feeds() > before

    await until("the silent feed is given up", again)
    scene.proxy.release()


async def repeat(scene: Scene) -> None:
    scene.proxy.repeats = True


def frame(event: Any) -> bytes:
    return b"data: " + json.dumps(event).encode() + b"\n\n"


async def unknown_events(scene: Scene) -> None:
    data = {"sessionID": scene.session}
    for kind in ("session.text.invented", "session.execution.invented", "wholly.new"):
        scene.proxy.insert(frame({"id": f"evt_{kind}", "type": kind, "data": data}))


async def garbage(scene: Scene) -> None:
    session = scene.session.encode()
    scene.proxy.insert(b'data: {"type":"session.text.delta","data":{"sessionID":"' + session)
    scene.proxy.insert(b'\n\ndata: \xff\xfe "' + session + b'"\n\n')
    scene.proxy.insert(b"data: []\n\ndata: 5\n\nevent:\n\n:\n\n")
    scene.proxy.insert(frame({"type": "session.text.delta", "data": {"sessionID": scene.session}}))


async def huge(scene: Scene) -> None:
    data = {"sessionID": scene.session, "text": "x" * (LINE_LIMIT + 1)}
    scene.proxy.insert(frame({"id": "evt_huge", "type": "session.tool.progress", "data": data}))


# Requests.


def rule(path: str, method: str = "POST", **how: Any) -> Act:
    async def strike(scene: Scene) -> None:
        # What holds the request of a phase back stays before it.
        scene.proxy.add(Rule(path, method, **how))

    return strike


def of_prompt(**how: Any) -> Act:
    async def strike(scene: Scene) -> None:
        """The request is at the proxy; what becomes of it is decided there."""
        (waiting,) = (one for one in scene.proxy.rules if one.delay)
        for name, value in how.items():
            setattr(waiting, name, value)

    return strike


def blind(status: int) -> Act:
    """The feed is gone, and the reads that say what became of it fail for a while."""

    async def strike(scene: Scene) -> None:
        reads = r"/(inbox|active|message|request|form|permission|info)$"
        scene.proxy.add(Rule(reads, "GET", times=4, status=status))
        await torn(scene)

    return strike


async def refused_password(scene: Scene) -> None:
    scene.proxy.add(Rule("", times=None, status=401))
    await torn(scene)


async def password_taken(scene: Scene) -> None:
    if scene.turn is not None:
        await asyncio.wait([scene.turn])
    scene.proxy.rules[:] = [one for one in scene.proxy.rules if one.status != 401]


# The server.


async def away(scene: Scene) -> None:
    await scene.proxy.refuse()


async def back(scene: Scene) -> None:
    await scene.nothing_goes_on()
    await scene.proxy.accept()


async def back_too_late(scene: Scene) -> None:
    if scene.turn is not None:
        await asyncio.wait([scene.turn])
    await scene.proxy.accept()


async def killed(scene: Scene) -> None:
    await scene.lane.backend.crash()


async def terminated(scene: Scene) -> None:
    await scene.lane.backend.terminate()


# The client and its transport.


async def stops_reading(scene: Scene) -> None:
    scene.agent.pause()


async def reads_again(scene: Scene) -> None:
    await scene.nothing_goes_on()
    scene.agent.go_on()


async def hangs_up(scene: Scene) -> None:
    await scene.agent.hang_up()
    await scene.lane.aclose()


async def agent_killed(scene: Scene) -> None:
    await scene.agent.kill()
    await scene.lane.aclose()


# Others at the session, and the client itself beside its turn.


async def second_prompt(scene: Scene) -> None:
    turn = asyncio.create_task(scene.agent.prompt(scene.session, "@@text 3@@"))
    scene.side.append((await answered(turn)).outcome)


def client_request(method: str) -> Act:
    async def strike(scene: Scene) -> None:
        params = {"sessionId": scene.session, "cwd": str(scene.project), "mcpServers": []}
        try:
            await scene.agent.request(method, params)
            scene.side.append("done")
        except AcpClientError as error:
            scene.side.append(str(error.code))

    return strike


def foreign_prompt(delivery: str) -> Act:
    async def strike(scene: Scene) -> None:
        body = {"text": "and @@text 4@@", "delivery": delivery}
        await scene.front.post(f"session/{scene.session}/prompt", body)

    return strike


async def foreign_interrupt(scene: Scene) -> None:
    await scene.front.post(f"session/{scene.session}/interrupt")


async def foreign_delete(scene: Scene) -> None:
    """Until the client has heard of it, unless the feed is held."""
    await scene.front.delete(f"session/{scene.session}")
    if scene.turn is not None and not scene.proxy.is_held:
        await asyncio.wait([scene.turn])


PROMPT_ONLY: Final = "it breaks the request with the prompt"
REPLY_ONLY: Final = "it breaks the request with the answer to a permission"
STOP_ONLY: Final = "it breaks the request that stops the turn"
STOPPING: Final = r"/interrupt$"

FAULTS: Final = (
    Fault("none", "nothing", nothing),
    Fault("feed-closed", "the server ends the event stream", cut(clean=True)),
    Fault("feed-torn", "the event stream breaks in the middle of an event", cut(clean=False)),
    Fault("feed-silent", "the event stream stays open and says nothing", silence, given_up),
    Fault("feed-twice", "every event comes twice", repeat),
    Fault("feed-unknown", "events of unknown kinds", unknown_events),
    Fault("feed-garbage", "lines that are no event", garbage),
    Fault("feed-huge", "an event of the session that is too long to be read", huge),
    Fault("reads-500", "the stream breaks, and reads fail for a while", blind(500)),
    Fault("reads-429", "the stream breaks, and reads are told to slow down", blind(429)),
    Fault(
        "refused", "the server refuses the password for a while", refused_password, password_taken
    ),
    Fault(
        "prompt-lost",
        "the prompt does not arrive",
        of_prompt(refuse=True),
        nothing,
        ("submitted",),
        PROMPT_ONLY,
    ),
    Fault(
        "prompt-unheard",
        "the prompt arrives, its answer does not",
        of_prompt(swallow=True),
        nothing,
        ("submitted",),
        PROMPT_ONLY,
    ),
    Fault(
        "prompt-late",
        "its answer comes after the events",
        of_prompt(late=0.6),
        nothing,
        ("submitted",),
        PROMPT_ONLY,
    ),
    Fault(
        "prompt-500",
        "the server fails on the prompt",
        of_prompt(status=500),
        nothing,
        ("submitted",),
        PROMPT_ONLY,
    ),
    Fault(
        "prompt-503",
        "the server is too busy for the prompt",
        of_prompt(status=503),
        nothing,
        ("submitted",),
        PROMPT_ONLY,
    ),
    Fault(
        "prompt-400",
        "the server refuses the prompt",
        of_prompt(status=400),
        nothing,
        ("submitted",),
        PROMPT_ONLY,
    ),
    Fault(
        "prompt-404",
        "the route of prompts is missing",
        of_prompt(status=404),
        nothing,
        ("submitted",),
        PROMPT_ONLY,
    ),
    Fault(
        "prompt-429",
        "the server takes no more prompts",
        of_prompt(status=429),
        nothing,
        ("submitted",),
        PROMPT_ONLY,
    ),
    Fault(
        "reply-lost",
        "the answer to a permission does not arrive",
        rule("/reply$", refuse=True),
        nothing,
        ("ask",),
        REPLY_ONLY,
    ),
    Fault(
        "reply-unheard",
        "it arrives, and nobody hears so",
        rule("/reply$", swallow=True),
        nothing,
        ("ask",),
        REPLY_ONLY,
    ),
    Fault(
        "reply-500",
        "the server fails on it",
        rule("/reply$", status=500),
        nothing,
        ("ask",),
        REPLY_ONLY,
    ),
    Fault(
        "stop-lost",
        "the stop does not arrive",
        rule(STOPPING, refuse=True),
        nothing,
        ("cancel",),
        STOP_ONLY,
    ),
    Fault(
        "stop-unheard",
        "it arrives, and nobody hears so",
        rule(STOPPING, swallow=True),
        nothing,
        ("cancel",),
        STOP_ONLY,
    ),
    Fault(
        "stop-500",
        "the server fails on it twice",
        rule(STOPPING, status=500, times=2),
        nothing,
        ("cancel",),
        STOP_ONLY,
    ),
    Fault("away", "the server cannot be reached while the turn goes on", away, back),
    Fault(
        "gone", "the server cannot be reached for longer than anybody waits", away, back_too_late
    ),
    Fault("killed", "the server is killed and started again", killed),
    Fault("terminated", "the server is told to end and started again", terminated),
    Fault("slow-client", "the client stops reading for a while", stops_reading, reads_again),
    Fault("client-leaves", "the client closes its end", hangs_up),
    Fault("agent-killed", "the client's process is killed", agent_killed),
    Fault("second-prompt", "the client sends another prompt to the session", second_prompt),
    Fault("load", "the client loads the session", client_request("session/load")),
    Fault("resume", "the client resumes the session", client_request("session/resume")),
    Fault("close", "the client closes the session", client_request("session/close")),
    Fault("foreign-queue", "a neighbour queues a prompt", foreign_prompt("queue")),
    Fault("foreign-steer", "a neighbour steers", foreign_prompt("steer")),
    Fault("foreign-stop", "a neighbour stops the session", foreign_interrupt),
    Fault("foreign-delete", "a neighbour deletes the session", foreign_delete),
)
