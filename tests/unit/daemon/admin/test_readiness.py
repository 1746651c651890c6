"""Readiness: each thing that can be missing is named, and the server is not asked too often."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from adapter.upstream.client import Server
from adapter.upstream.credentials import Credential
from contract.routes import REQUIRED
from stubs.waiting import until
from tests.unit.daemon.admin.office import Office, office


async def until_feed(place: Office, *, up: bool) -> None:
    async def reached() -> bool:
        return place.home.engine.feed.is_connected is up

    await until(f"the feed is {'up' if up else 'down'}", reached)


async def test_all_is_well(tmp_path: Path) -> None:
    async with office(tmp_path) as place:
        await until_feed(place, up=True)
        readiness = await place.readiness()
        assert readiness.ready
        assert readiness.missing == ()
        assert set(readiness.checks) == {"daemon", "server", "auth", "contract", "feed"}
        assert all(check.ok and not check.why for check in readiness.checks.values())


async def test_a_server_that_is_down(tmp_path: Path) -> None:
    async with office(tmp_path) as place:
        await until_feed(place, up=True)
        await place.home.stub.__aexit__(None, None, None)
        await until_feed(place, up=False)
        readiness = await place.readiness()
        assert readiness.missing == ("server", "auth", "contract", "feed")
        assert "cannot be reached" in readiness.checks["server"].why
        assert readiness.checks["auth"].ok is readiness.checks["contract"].ok is None
        assert (await place.get("/healthz")).status == 200


async def test_a_password_that_is_refused(tmp_path: Path) -> None:
    async with office(tmp_path) as place:
        await until_feed(place, up=True)
        place.home.stub.faults.unauthorized = True
        place.home.stub.cut_feed()
        await until_feed(place, up=False)
        readiness = await place.readiness()
        assert readiness.missing == ("auth", "contract", "feed")
        assert readiness.checks["server"].ok
        assert readiness.checks["auth"].why.endswith("the daemon was given none.")
        source = Credential("another", "the file /p")
        engine = place.home.engine
        engine.reconfigure(replace(engine.settings, credential=source, password_fix="mend it"))
        why = (await place.readiness()).checks["auth"].why
        assert why == "The OpenCode server refused the password of the file /p; mend it."
        await place.until_value("auth_refused", 1)
        place.home.stub.faults.unauthorized = False
        await until_feed(place, up=True)
        assert (await place.readiness()).ready
        assert await place.value("auth_refused") == 0


async def test_a_server_without_a_route(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def lacking(_: Server) -> frozenset[tuple[str, str]]:
        return frozenset((one.method, one.path) for one in REQUIRED[1:])

    monkeypatch.setattr(Server, "routes", lacking)
    async with office(tmp_path) as place:
        await until_feed(place, up=True)
        readiness = await place.readiness()
        assert readiness.missing == ("contract",)
        assert REQUIRED[0].name in readiness.checks["contract"].why


async def test_a_daemon_that_drains(tmp_path: Path) -> None:
    async with office(tmp_path) as place:
        await until_feed(place, up=True)
        assert await place.home.daemon.drain(1)
        readiness = await place.readiness()
        assert readiness.missing == ("daemon",)
        assert "draining" in readiness.checks["daemon"].why


async def test_those_who_ask_together_share_one_look(tmp_path: Path) -> None:
    async with office(tmp_path) as place:
        await until_feed(place, up=True)
        place.home.stub.faults.unauthorized = True
        place.home.stub.cut_feed()
        await until_feed(place, up=False)
        assert "feed" in (await place.readiness()).missing
        before = len(place.home.asked("GET", "/api/info"))
        await asyncio.gather(*(place.readiness() for _ in range(8)))
        assert len(place.home.asked("GET", "/api/info")) == before + 1
