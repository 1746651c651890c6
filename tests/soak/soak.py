"""The soak itself: everybody works under faults, leaves, and what is left is looked at."""

from __future__ import annotations

import asyncio
import time
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from adapter.commands.inquiry import get
from contract.attach import admin_socket
from stubs.client import AcpClient
from stubs.proxy import Proxy
from stubs.waiting import until
from tests.scenarios.backends import stub_backend
from tests.scenarios.stage import agent_argv, agent_env
from tests.soak.faults import disturb
from tests.soak.users import Tally, User
from tests.soak.watch import GROWTH, Sample, growth, sample, watch
from tests.support.daemons import Daemons, LentDaemon, relay_argv


@dataclass(slots=True)
class Report:
    """What came of a soak. `wrong` is empty if all is well."""

    tally: Tally = field(default_factory=Tally)
    samples: list[Sample] = field(default_factory=list)
    counted: dict[str, int] = field(default_factory=dict)
    """Prompts by outcome, as the daemon's metrics have them."""
    wrong: list[str] = field(default_factory=list)


async def soak(root: Path, users: int, seconds: float, seed: int = 1) -> Report:
    """Run it. Raises what a daemon or a client that breaks the rules raises."""
    report = Report()
    async with stub_backend(root) as backend, Proxy(backend.url) as proxy:
        argv, env = agent_argv(proxy.url), agent_env(backend.password)
        daemons = Daemons()
        try:
            async with daemons.lent(argv, env) as daemon:
                relay = relay_argv(argv, daemon.path)
                await _metrics(daemon)  # what a first request to it loads is no leak
                before = sample(daemon.process.pid, time.monotonic())
                over = asyncio.Event()
                async with asyncio.TaskGroup() as group:
                    group.create_task(watch(daemon.process.pid, report.samples, over))
                    group.create_task(disturb(proxy, backend.stub, over, seed))
                    for number in range(users):
                        project = backend.project()
                        user = User(seed * 1000 + number, relay, env, project, report.tally)
                        group.create_task(user.work(over))
                    await asyncio.sleep(seconds)
                    over.set()
                await daemon.rests()
                _judge(report, await _metrics(daemon))
                visitor = AcpClient.spawn(relay, env=env)
                report.wrong += await _left_open(daemon, visitor, backend.project(), before)
        finally:
            await daemons.aclose()
    report.wrong += report.tally.wrong
    return report


async def _metrics(daemon: LentDaemon) -> dict[str, int]:
    """Prompts by outcome."""
    text = await asyncio.to_thread(get, admin_socket(daemon.path), "/metrics")
    return {
        one.labels["outcome"]: int(one.value)
        for family in text_string_to_metric_families(text.decode())
        for one in family.samples
        if one.name == "opencode_acp_prompts_total" and one.value
    }


def _judge(report: Report, counted: dict[str, int]) -> None:
    tally, report.counted = report.tally, counted
    turns = sum(counted.values())
    # Of a client that left nobody knows whether its last prompt came to be a turn.
    if not tally.prompts - tally.unanswered <= turns <= tally.prompts:
        sent = f"{tally.prompts} prompts were sent, {tally.unanswered} have no answer"
        report.wrong.append(f"{sent}, counted are {counted}")
    if counted.get("end_turn", 0) < tally.outcomes["end_turn"]:
        report.wrong.append(f"finished turns are missing in {counted}")
    if growth(report.samples) > GROWTH:
        report.wrong.append(f"memory grew by {growth(report.samples):.2f}")


async def _left_open(
    daemon: LentDaemon,
    client: AbstractAsyncContextManager[AcpClient],
    project: Path,
    before: Sample,
) -> list[str]:
    """Descriptors that are open still.

    Connections to the server that were kept alive go with the next request of their pool: one is
    of turns, one of all else.
    """
    async with client as agent:
        await agent.initialize()
        session = await agent.new_session(project)
        # The client's own connection, and one of each pool.
        allowed = before.descriptors + 3

        async def closed() -> bool:
            await agent.prompt(session, "@@text 1@@")
            await agent.request("session/list", {})
            return sample(daemon.process.pid, 0).descriptors <= allowed

        try:
            await until("the descriptors are closed", closed)
        except TimeoutError:
            left = sample(daemon.process.pid, 0).descriptors
            return [f"{left} descriptors are open, {allowed} are allowed"]
    return []
