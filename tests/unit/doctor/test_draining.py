"""The doctor and a daemon that is there and takes nobody: one that ends, and one that is full."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from adapter.doctor.findings import State as Is
from adapter.limits import Limits
from contract.attach import TEMPORARY
from tests.unit.daemon.admin.office import office
from tests.unit.daemon.test_leaving import running
from tests.unit.doctor.test_daemon import visited

LONG_ENOUGH = 10.0


@pytest.mark.parametrize("mode", ["auto", "require"])
async def test_a_daemon_that_drains_is_not_taken_for_none(tmp_path: Path, mode: str) -> None:
    async with office(tmp_path) as one:
        caller, _ = await running(one.home)
        await one.until_value("sse_connected", 1)
        draining = asyncio.create_task(one.home.daemon.drain(LONG_ENOUGH))
        await asyncio.sleep(0)
        found = await visited(one, daemon=mode)
        told = found["daemon"]
        assert (told.state, told.code) == (Is.FAILED, TEMPORARY)
        assert "is draining: it waits for 1 turn, " in told.sentence
        assert "Wait for its end" in told.fix
        # What it says of its server holds.
        assert found["feed"].state is Is.OK
        await caller.hang_up()
        assert await draining


async def test_a_daemon_that_drains_and_that_nobody_can_ask(tmp_path: Path) -> None:
    async with office(tmp_path) as one:
        await running(one.home)
        assert not await one.home.daemon.drain(0.05)
        found = await visited(one, admin_socket=str(tmp_path / "none"))
        told = found["daemon"]
        assert (told.state, told.code) == (Is.FAILED, TEMPORARY)
        assert f"The daemon at {one.home.path} is ending" in told.sentence
        assert "serve" not in told.fix


async def test_a_daemon_that_is_full(tmp_path: Path) -> None:
    async with office(tmp_path, limits=Limits(connections=1)) as one:
        await one.home.client()
        told = (await visited(one))["daemon"]
        assert (told.state, told.code) == (Is.FAILED, TEMPORARY)
        assert "1 client at most" in told.sentence
        assert "opencode-acp status" in told.fix
