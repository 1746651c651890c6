"""Runs schedules on a server, several side by side, and says what was found."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import httpx

from stubs.client import AcpClient, AcpClientError
from stubs.proxy import Proxy, Rule
from stubs.real_server import real_server
from stubs.server import StubServer
from stubs.server.config import Settings
from tests.stress.check import Seen, faults
from tests.stress.plan import Act, Plan, Prompt, plan

ResultT = TypeVar("ResultT")

# Seconds after which a turn counts as hanging.
PATIENCE = 45.0
AT_ONCE = 4
AGENT = Path(sys.prefix) / "bin" / "opencode-acp"


@dataclass(slots=True)
class Stage:
    """The server, its project, a client of its API, and two agents behind a proxy each."""

    project: Path
    restart: Callable[[bool], Awaitable[None]]
    api: httpx.AsyncClient
    proxies: list[Proxy]
    agents: list[AcpClient]


@dataclass(frozen=True, slots=True)
class Running:
    """A server; `restart` ends it by SIGTERM if `clean`, else by SIGKILL."""

    url: str
    password: str
    project: Path
    restart: Callable[[bool], Awaitable[None]]


@asynccontextmanager
async def server(root: Path, *, stub: bool) -> AsyncIterator[Running]:
    """A server that asks before shell commands."""
    if stub:
        project = root / "project"
        project.mkdir()
        (project / "opencode.json").write_text('{"permission": {"shell": "ask"}}')
        async with StubServer(Settings(password="stress", project=str(project))) as one:
            yield Running(
                one.url,
                "stress",
                project,
                lambda clean: one.restart("terminated" if clean else "lost", down=0.3),
            )
    else:
        async with real_server(root, {"shell": "ask"}) as real:

            async def restart(clean: bool) -> None:
                await (real.stop() if clean else real.kill())
                await real.start()

            yield Running(real.url, real.password, real.project, restart)


async def policy(params: Mapping[str, Any]) -> str | None:
    """Allow, after a little while that depends on the call, so that asks meet cuts."""
    await asyncio.sleep((hash(params["toolCall"]["toolCallId"]) % 7) / 10)
    return "allow_once"


@asynccontextmanager
async def stage(root: Path, *, stub: bool, level: str) -> AsyncIterator[Stage]:
    async with AsyncExitStack() as stack:
        one = await stack.enter_async_context(server(root, stub=stub))
        proxies = [await stack.enter_async_context(Proxy(one.url)) for _ in range(2)]
        env = {**os.environ, "OPENCODE_SERVER_PASSWORD": one.password}
        agents = [
            await stack.enter_async_context(
                AcpClient.spawn(
                    [str(AGENT), "--server", proxy.url, "--no-daemon", "--log-level", level],
                    env=env,
                    policy=policy,
                )
            )
            for proxy in proxies
        ]
        for agent in agents:
            await agent.initialize()
        auth = httpx.BasicAuth("opencode", one.password)
        # A connection of its own for each request: none outlives a restart of the server.
        limits = httpx.Limits(max_keepalive_connections=0)
        api = await stack.enter_async_context(
            httpx.AsyncClient(base_url=one.url, auth=auth, limits=limits)
        )
        yield Stage(one.project, one.restart, api, proxies, agents)


async def run_turn(stage: Stage, client: int, session: str, prompt: Prompt) -> Seen:
    """One turn from its prompt to its answer."""
    agent = stage.agents[client]
    before = len(agent.updates)
    cancelled = False
    turn = asyncio.create_task(agent.prompt(session, prompt.text, timeout=PATIENCE))
    if prompt.cancel_after is not None:
        done, _ = await asyncio.wait({turn}, timeout=prompt.cancel_after)
        if not done:
            cancelled = True
            await agent.cancel(session)
    stop, code, message, audit = None, None, "", {}
    try:
        result = await turn
        stop, audit = result["stopReason"], result["_meta"]["opencode-acp"]
    except AcpClientError as error:
        code, message, audit = error.code, error.message, error.data or {}
    texts: dict[str, str] = {}
    thoughts: dict[str, str] = {}
    for line in agent.updates[before:]:
        params = line.message.get("params") or {}
        update = params.get("update") or {}
        if params.get("sessionId") != session:
            continue
        kind = update.get("sessionUpdate")
        into = {"agent_message_chunk": texts, "agent_thought_chunk": thoughts}.get(str(kind))
        if into is not None:
            key = update["messageId"]
            into[key] = into.get(key, "") + update["content"]["text"]
    return Seen(client, prompt, texts, thoughts, stop, code, message, audit, cancelled)


async def run_act(stage: Stage, session: str, act: Act) -> None:
    proxy = stage.proxies[act.client]
    match act.kind:
        case "cut":
            proxy.cut_feed(clean=act.clean)
        case "refuse":
            await proxy.refuse()
            await asyncio.sleep(act.seconds)
            await proxy.accept()
        case "swallow":
            proxy.add(Rule(rf"/{session}/prompt$", "POST", swallow=True))
        case "status":
            proxy.add(Rule(act.path, times=act.times, status=503))
        case "swallow_any":
            proxy.add(Rule(act.path, times=act.times, swallow=True))
        case "prompt" if act.prompt is not None:
            body = {"text": act.prompt.text, "delivery": act.delivery}
            await stage.api.post(f"/api/session/{session}/prompt", json=body)
        case "restart":
            await stage.restart(act.clean)
        case "interrupt":
            await stage.api.post(f"/api/session/{session}/interrupt")
        case _:
            raise ValueError(act.kind)


async def reached(request: Callable[[], Awaitable[ResultT]]) -> ResultT:
    """A request that is made again while a neighbour's schedule refuses connections."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return await request()
        except AcpClientError:
            if time.monotonic() > end:
                raise
            await asyncio.sleep(0.1)


async def run_plan(stage: Stage, schedule: Plan) -> tuple[list[Seen], list[str]]:
    first, second = stage.agents
    session = await reached(lambda: first.new_session(stage.project))
    await reached(lambda: second.resume(session, stage.project))
    seen: list[Seen] = []

    async def client(number: int) -> None:
        for pause, prompt in schedule.prompts[number]:
            await asyncio.sleep(pause)
            seen.append(await run_turn(stage, number, session, prompt))

    async def acts() -> None:
        began = time.monotonic()
        for act in schedule.acts:
            await asyncio.sleep(max(0.0, began + act.at - time.monotonic()))
            # A restart may take the request of a foreign front end with it.
            with contextlib.suppress(httpx.TransportError):
                await run_act(stage, session, act)

    async def foreign_asks() -> None:
        """The foreign front end answers what is asked in turns of its own."""
        while True:
            await asyncio.sleep(0.7)
            with contextlib.suppress(httpx.TransportError):
                listed = await stage.api.get(f"/api/session/{session}/permission")
                for ask in listed.json().get("data", []) if listed.status_code == 200 else []:
                    await asyncio.sleep(1.0)
                    await stage.api.post(
                        f"/api/session/{session}/permission/{ask['id']}/reply",
                        json={"decision": "once"},
                    )

    helper = asyncio.create_task(foreign_asks()) if schedule.has("prompt") else None
    try:
        await asyncio.gather(acts(), client(0), client(1))
    except TimeoutError:
        return seen, ["a turn hangs"]
    finally:
        if helper is not None:
            helper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await helper
    query = {"order": "asc", "limit": "200"}
    rows = (await stage.api.get(f"/api/session/{session}/message", params=query)).json()["data"]
    for agent in stage.agents:
        await agent.close_session(session)
    return seen, faults(schedule, seen, rows)


@dataclass(slots=True)
class Summary:
    """Of many schedules. `found` are sentences on faults; none: all is well."""

    outcomes: Counter[str] = field(default_factory=Counter)
    gaps: int = 0
    recovered: int = 0
    found: list[str] = field(default_factory=list)

    def add(self, seed: int, turns: Iterable[Seen], wrong: Iterable[str]) -> None:
        """One schedule more."""
        for turn in turns:
            self.outcomes[turn.stop or str(turn.code)] += 1
            self.gaps += turn.audit.get("gaps", 0)
            self.recovered += turn.audit.get("recoveredChars", 0)
        self.found += [f"seed {seed}: {one}" for one in wrong]


async def run_all(
    folder: Path,
    seeds: Iterable[int],
    *,
    stub: bool = False,
    restarts: bool = False,
    level: str = "error",
) -> Summary:
    """The schedules of these seeds; `folder` is empty. With `restarts` one after the other."""
    summary = Summary()
    # A restart hits every session of the server.
    gate = asyncio.Semaphore(1 if restarts else AT_ONCE)
    async with stage(folder, stub=stub, level=level) as one:

        async def guarded(seed: int) -> None:
            async with gate:
                summary.add(seed, *await run_plan(one, plan(seed, restarts=restarts)))

        await asyncio.gather(*(guarded(seed) for seed in seeds))
        summary.found += [text for agent in one.agents for text in agent.violations]
    return summary
