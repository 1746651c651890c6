"""A daemon with many clients, each behind a relay: the delay of its updates, and its memory.

Each client has a session open, and as many as are let have a turn, which is answered at the pace of
the real server, ten deltas a second. The stub server and all clients share this process and its
clock; relays and daemon run beside it. What both ends take is part of the numbers.
"""

from __future__ import annotations

import asyncio
import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from adapter.limits import DEFAULTS
from stubs.client import AcpClient
from stubs.server import Settings, StubServer
from tests.bench.bench_latency import Turn
from tests.bench.bench_start import COLD_MS
from tests.bench.report import report
from tests.support.daemons import COMMAND, Daemons, LentDaemon

DELAY_MS: Final = 5.0
MEMORY_MB: Final = 120.0
TURN_SECONDS: Final = 600


@dataclass(frozen=True, slots=True)
class Load:
    """`deltas` a turn and round, one every `gap` seconds; no two turns at the same moment."""

    clients: int = 64
    turns: int = DEFAULTS.prompts
    rounds: int = 5
    deltas: int = 40
    gap: float = 0.1


@dataclass(slots=True)
class Figures:
    """Milliseconds of each round and of each client, and megabytes before and after the turns."""

    medians: list[float] = field(default_factory=list)
    slow: list[float] = field(default_factory=list)
    """The delay that 99 of 100 deltas keep below."""
    starts: list[float] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)


def resident(pid: int) -> float:
    """Megabytes of a process that are in memory."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found is not None
    return int(found.group(1)) / 1024


def has_come(turn: Turn, text: str) -> bool:
    return text in turn.arrivals()


async def one_round(turns: Sequence[Turn], load: Load, number: int) -> list[float]:
    """The delay of each delta in milliseconds; all have come when it returns."""
    sent: dict[tuple[int, str], float] = {}
    pause = load.gap / len(turns)
    due = time.monotonic()
    for delta in range(load.deltas):
        for at, turn in enumerate(turns):
            text = f"{number}.{delta} "
            sent[at, text] = turn.send(text)
            due += pause
            await asyncio.sleep(due - time.monotonic())
    last = f"{number}.{load.deltas - 1} "
    for turn in turns:
        await turn.client.wait_for(partial(has_come, turn, last))
    arrived = [turn.arrivals() for turn in turns]
    return [(arrived[at][text] - moment) * 1000 for (at, text), moment in sent.items()]


async def measured(stub: StubServer, daemon: LentDaemon, load: Load, project: Path) -> Figures:
    """All clients come and stay; then the turns of some of them are answered."""
    figures = Figures()
    argv = [COMMAND, "--socket", daemon.path, "--daemon", "require"]
    async with AsyncExitStack() as stack:
        turns: list[Turn] = []
        for _ in range(load.clients):
            start = time.monotonic()
            client = await stack.enter_async_context(AcpClient.spawn(argv))
            await client.initialize()
            figures.starts.append((time.monotonic() - start) * 1000)
            turns.append(Turn(stub, client, await client.new_session(project)))
        figures.memory.append(resident(daemon.process.pid))
        turns = turns[: load.turns]
        answers = [await turn.begin(TURN_SECONDS) for turn in turns]
        for number in range(load.rounds):
            delays = await one_round(turns, load, number)
            figures.medians.append(statistics.median(delays))
            figures.slow.append(statistics.quantiles(delays, n=100)[98])
        figures.memory.append(resident(daemon.process.pid))
        for turn, answer in zip(turns, answers, strict=True):
            await turn.client.cancel(turn.session)
            assert (await answer)["stopReason"] == "cancelled"
    return figures


async def measure(load: Load) -> Figures:
    """The figures of a daemon of its own."""
    daemons = Daemons()
    with tempfile.TemporaryDirectory() as project:
        async with StubServer(Settings(project=project)) as stub:
            try:
                async with daemons.lent(
                    [COMMAND, "--server", stub.url], dict(os.environ)
                ) as daemon:
                    return await measured(stub, daemon, load, Path(project))
            finally:
                await daemons.aclose()


def within(figures: Figures, load: Load) -> bool:
    """Print them; whether they keep within the bounds."""
    beside = f"{load.turns} turns"
    kept = report(
        f"relay to the answer to initialize, of {load.clients}", figures.starts, "ms", COLD_MS
    )
    report(f"server to client beside {beside}, median", figures.medians, "ms")
    kept &= report(f"server to client beside {beside}, p99", figures.slow, "ms", DELAY_MS)
    kept &= report(f"daemon with {load.clients} clients", [max(figures.memory)], "MB", MEMORY_MB)
    return kept


if __name__ == "__main__":
    sys.exit(0 if within(asyncio.run(measure(LOAD := Load())), LOAD) else 1)
