"""Random plays on the stub and on the real server look the same."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from stubs.real_server import real_server
from stubs.server import Settings, StubServer
from tests.differential.plays import perform, play
from tests.differential.seen import events_of, rows_of, torn
from tests.unit.stubs.server_client import Client

Look = tuple[list[str], list[str]]
SETTINGS: Final = Settings(retry_base=0.01)


async def looks(client: Client, seeds: range) -> dict[int, Look]:
    """Events and rows of each play."""
    found: dict[int, Look] = {}
    for seed in seeds:
        session = await perform(play(seed), client)
        assert torn(client.events, session) == []
        found[seed] = events_of(client.events, session), rows_of(await client.rows(session))
        client.events.clear()
    return found


@pytest.mark.real
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(range(11, 23), id="12"),
        pytest.param(range(1001, 1151), id="150", marks=pytest.mark.long),
    ],
)
async def test_the_stub_does_as_the_server(tmp_path: Path, seeds: range) -> None:
    async with (
        real_server(tmp_path) as real,
        Client(real.url, str(real.project), real.password) as client,
    ):
        theirs = await looks(client, seeds)
    async with StubServer(SETTINGS) as stub, Client(stub.url, str(tmp_path)) as client:
        ours = await looks(client, seeds)
    for seed in seeds:
        assert ours[seed] == theirs[seed], play(seed)
