"""The metrics of what stands, where a scrape alone shows them: formats, limits, the process."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from adapter.daemon.admin.standing import Process
from adapter.limits import Limits
from contract.version import VERSION
from tests.unit.daemon.admin.office import office


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("accept", "media"),
    [
        ("*/*", "text/plain; version=0.0.4; charset=utf-8"),
        ("application/openmetrics-text; version=1.0.0", "application/openmetrics-text; version=1"),
    ],
)
async def test_the_format_is_the_one_that_is_accepted(
    tmp_path: Path, accept: str, media: str
) -> None:
    async with office(tmp_path) as place:
        said = await place.get("/metrics", accept=accept)
        assert said.status == 200
        assert said.media.startswith(media)
        assert f'opencode_acp_build_info{{version="{VERSION}"}} 1.0' in said.text


async def test_limits_that_are_hit_are_counted(tmp_path: Path) -> None:
    limits = Limits(sessions_per_connection=1, turn_output_bytes=12)
    async with office(tmp_path, limits=limits) as place:
        caller = await place.home.client()
        session = await caller.new(tmp_path)
        refused = await caller.send("session/new", cwd=str(tmp_path), mcpServers=[])
        assert "error" in await caller.answer(refused)
        await caller.answer(await caller.prompt(session, "@@text 40@@"))
        hit = await place.by("limits_hit_total", "limit")
        assert hit == {"sessions_per_connection": 1, "turn_output_bytes": 1}


async def test_the_age_of_the_oldest_prompt_is_told(tmp_path: Path) -> None:
    clock = Clock()
    async with office(tmp_path, clock=clock) as place:
        assert await place.value("oldest_prompt_seconds") == 0
        callers = [await place.home.client() for _ in range(3)]
        sessions = [await caller.new(tmp_path) for caller in callers]
        prompts: list[int] = []
        for caller, session in zip(callers, sessions, strict=True):
            prompts.append(await caller.prompt(session, "@@wait 30000@@"))
            await place.until_value("pending_prompts", len(prompts))
            clock.now += 600
        assert await place.value("oldest_prompt_seconds") == 1800
        ages: list[float] = []
        for caller, session, prompt in zip(callers[:2], sessions, prompts, strict=False):
            params = {"sessionId": session}
            await caller.say({"jsonrpc": "2.0", "method": "session/cancel", "params": params})
            await caller.answer(prompt)
            ages.append(await place.value("oldest_prompt_seconds"))
        assert ages == [1200, 600]
        await callers[2].hang_up()
        await place.until_value("oldest_prompt_seconds", 0)


def samples(collector: Process) -> dict[str, float]:
    return {one.name: one.value for metric in collector.collect() for one in metric.samples}


def test_the_process_is_measured() -> None:
    found = samples(Process(registry=None))
    assert found["process_resident_memory_bytes"] > 1_000_000
    assert "process_start_time_seconds" in found


def test_the_process_is_measured_where_proc_shows_processes_alone(tmp_path: Path) -> None:
    """As a unit with `ProcSubset=pid` sees it: there is no /proc/stat."""
    (tmp_path / "self").symlink_to(f"/proc/{os.getpid()}")
    found = samples(Process(registry=CollectorRegistry(), proc=str(tmp_path)))
    assert found["process_resident_memory_bytes"] > 1_000_000
    assert found["process_open_fds"] > 0
    assert "process_start_time_seconds" not in found
    assert not any(map(math.isnan, found.values()))
