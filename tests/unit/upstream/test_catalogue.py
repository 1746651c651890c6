"""One bounded load for all who wait, kept until it changes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import respx

from adapter.upstream.catalogue import MAX_DIRECTORIES, Catalogues
from adapter.upstream.client import Server
from adapter.upstream.errors import Refused

API = "http://127.0.0.1:4096/api"
PLACE = "/srv/project"
AGENT = {"id": "build", "name": "Build"}
COMMAND = {"name": "review", "description": "Looks at changes"}
MODEL = {"id": "fake-1", "providerID": "fake"}


class Clock:
    """Time that passes only in `sleep`."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pauses: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)


class Booting:
    """Answers the lists of directories that are empty for the first `empty` reads of models,
    and whose plugins are for the first `booting` of theirs."""

    def __init__(self, mock: respx.MockRouter, empty: int = 0, booting: int = 0) -> None:
        self.empty = empty
        self.booting = booting
        self.reads = 0
        self.asked = asyncio.Event()
        self.gate: asyncio.Event | None = None
        mock.get(f"{API}/agent").mock(side_effect=self._agents)
        mock.get(f"{API}/model").mock(side_effect=self._models)
        mock.get(f"{API}/model/default").respond(json={"data": MODEL})
        mock.get(f"{API}/command").respond(json={"data": [COMMAND]})
        mock.get(f"{API}/skill").respond(status_code=404)
        self.plugins = mock.get(f"{API}/plugin").mock(side_effect=self._plugins)

    def _agents(self, request: httpx.Request) -> httpx.Response:
        return _list([AGENT] if self.reads >= self.empty // 2 else [])

    def _plugins(self, request: httpx.Request) -> httpx.Response:
        self.booting -= 1
        return _list([{"id": "opencode.agent"}] if self.booting < 0 else [])

    async def _models(self, request: httpx.Request) -> httpx.Response:
        self.reads += 1
        self.asked.set()
        if self.gate is not None:
            await self.gate.wait()
        return _list([MODEL] if self.reads > self.empty else [])


def _list(data: list[Any]) -> httpx.Response:
    return httpx.Response(200, json={"data": data})


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def catalogues(clock: Clock) -> AsyncIterator[Catalogues]:
    async with Server("http://127.0.0.1:4096") as server:
        catalogues = Catalogues(server, clock=clock, sleep=clock.sleep)
        yield catalogues
        await catalogues.aclose()


async def test_a_fresh_directory_is_waited_for(
    catalogues: Catalogues, clock: Clock, respx_mock: respx.MockRouter
) -> None:
    booting = Booting(respx_mock, empty=6)
    catalogue = await catalogues.get(PLACE)
    assert catalogue.complete
    assert [model.key for model in catalogue.models] == ["fake/fake-1"]
    assert catalogue.default is not None
    # A list that a session does not need may fail.
    assert ([one.name for one in catalogue.commands], catalogue.skills) == (["review"], ())
    assert booting.reads == 7
    assert clock.pauses == sorted(clock.pauses)
    assert (clock.pauses[0], clock.pauses[-1]) == (0.05, 0.4)


async def test_half_a_boot_is_waited_for(
    catalogues: Catalogues, respx_mock: respx.MockRouter
) -> None:
    """Its lists have what is built in: another default than the one of the configuration."""
    booting = Booting(respx_mock, booting=3)
    assert (await catalogues.get(PLACE)).complete
    assert booting.reads == 4


async def test_half_a_boot_at_the_deadline_is_not_kept(
    catalogues: Catalogues, respx_mock: respx.MockRouter
) -> None:
    booting = Booting(respx_mock, booting=1000)
    catalogue = await catalogues.get(PLACE)
    assert (catalogue.complete, len(catalogue.models)) == (False, 1)
    booting.booting = 0
    assert (await catalogues.get(PLACE)).complete


async def test_a_server_that_lists_no_plugins_is_not_waited_for(
    catalogues: Catalogues, respx_mock: respx.MockRouter
) -> None:
    booting = Booting(respx_mock)
    booting.plugins.respond(404)
    assert (await catalogues.get(PLACE)).complete
    assert booting.reads == 1


async def test_a_complete_catalogue_is_kept_until_it_is_invalidated(
    catalogues: Catalogues, respx_mock: respx.MockRouter
) -> None:
    booting = Booting(respx_mock)
    assert catalogues.last(PLACE) is None
    first = await catalogues.get(PLACE)
    assert catalogues.last(PLACE) is first
    assert await catalogues.get(PLACE) is first
    assert booting.reads == 1
    catalogues.invalidate("/srv/other")
    await catalogues.get(PLACE)
    assert booting.reads == 1
    catalogues.invalidate(PLACE)
    assert catalogues.last(PLACE) is first
    second = await catalogues.get(PLACE)
    assert booting.reads == 2
    assert catalogues.last(PLACE) is second
    catalogues.invalidate()
    await catalogues.get(PLACE)
    assert booting.reads == 3


async def test_an_incomplete_one_is_given_at_the_deadline_and_never_kept(
    catalogues: Catalogues, clock: Clock, respx_mock: respx.MockRouter
) -> None:
    booting = Booting(respx_mock, empty=1000)
    catalogue = await catalogues.get(PLACE)
    assert (catalogue.complete, len(catalogue.agents), catalogue.models) == (False, 0, ())
    assert 9.5 < clock.now <= 10.0
    booting.empty = 0
    assert (await catalogues.get(PLACE)).complete


async def test_a_directory_is_not_waited_for_in_vain_twice(
    catalogues: Catalogues, clock: Clock, respx_mock: respx.MockRouter
) -> None:
    booting = Booting(respx_mock, empty=1000)
    await catalogues.get(PLACE)
    before, reads = clock.now, booting.reads
    await catalogues.get(PLACE)
    assert (clock.now, booting.reads) == (before, reads + 1)
    catalogues.invalidate(PLACE)
    await catalogues.get(PLACE)
    assert clock.now > before + 9


async def test_callers_share_one_load_and_leave_it_alone(
    catalogues: Catalogues, respx_mock: respx.MockRouter
) -> None:
    booting = Booting(respx_mock)
    booting.gate = asyncio.Event()
    callers = [asyncio.create_task(catalogues.get(PLACE)) for _ in range(3)]
    async with asyncio.timeout(5):
        await booting.asked.wait()
    callers[0].cancel()
    await asyncio.wait([callers[0]])
    booting.gate.set()
    second, third = await asyncio.gather(*callers[1:])
    assert callers[0].cancelled()
    assert second is third
    assert booting.reads == 1


async def test_what_was_invalidated_during_its_load_is_not_kept(
    catalogues: Catalogues, respx_mock: respx.MockRouter
) -> None:
    booting = Booting(respx_mock)
    booting.gate = asyncio.Event()
    caller = asyncio.create_task(catalogues.get(PLACE))
    async with asyncio.timeout(5):
        await booting.asked.wait()
    catalogues.invalidate(PLACE)
    booting.gate.set()
    loaded = await caller
    assert loaded.complete
    assert catalogues.last(PLACE) is loaded
    await catalogues.get(PLACE)
    assert booting.reads == 2


async def test_an_error_reaches_the_callers_and_the_next_call_tries_again(
    catalogues: Catalogues, respx_mock: respx.MockRouter
) -> None:
    Booting(respx_mock)
    agents = respx_mock.get(f"{API}/agent").respond(400)
    with pytest.raises(Refused):
        await catalogues.get(PLACE)
    with pytest.raises(Refused):
        await catalogues.get(PLACE)
    assert agents.call_count == 2


async def test_closing_ends_a_load(catalogues: Catalogues, respx_mock: respx.MockRouter) -> None:
    booting = Booting(respx_mock)
    booting.gate = asyncio.Event()
    caller = asyncio.create_task(catalogues.get(PLACE))
    async with asyncio.timeout(5):
        await booting.asked.wait()
    await catalogues.aclose()
    await asyncio.wait([caller], timeout=5)
    assert caller.cancelled()


async def test_directories_are_bounded(
    catalogues: Catalogues, respx_mock: respx.MockRouter
) -> None:
    booting = Booting(respx_mock)
    for number in range(MAX_DIRECTORIES + 1):
        await catalogues.get(f"/srv/{number}")
    reads = booting.reads
    await catalogues.get(f"/srv/{MAX_DIRECTORIES}")
    assert booting.reads == reads
    await catalogues.get("/srv/0")
    assert booting.reads == reads + 1
