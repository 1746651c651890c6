"""A daemon with an admin socket, and whoever asks there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from adapter.daemon.admin.service import Admin
from adapter.daemon.admin.shapes import Readiness, State
from adapter.daemon.listening import listen
from adapter.daemon.metrics import Metrics
from stubs.waiting import until
from tests.unit.daemon.house import House, house

Labels = Mapping[str, str]


@dataclass
class Said:
    """An answer of the admin socket."""

    status: int
    media: str
    text: str


class Office:
    """The daemon, its metrics and its admin socket."""

    def __init__(self, home: House, metrics: Metrics, admin: Admin) -> None:
        self.home = home
        self.metrics = metrics
        self.admin = admin
        self.path = Path(admin.listener.path)

    async def get(self, path: str, **headers: str) -> Said:
        connector = aiohttp.UnixConnector(str(self.path))
        async with (
            aiohttp.ClientSession(connector=connector) as client,
            client.get(f"http://admin{path}", headers=headers) as answer,
        ):
            return Said(answer.status, answer.headers["content-type"], await answer.text())

    async def state(self) -> State:
        return State.model_validate_json((await self.get("/debug/state")).text)

    async def readiness(self) -> Readiness:
        said = await self.get("/readyz")
        readiness = Readiness.model_validate_json(said.text)
        assert said.status == (200 if readiness.ready else 503)
        return readiness

    async def samples(self) -> dict[str, list[tuple[Labels, float]]]:
        """Every sample of the metrics by its name, as the text has it."""
        text = (await self.get("/metrics")).text
        found: dict[str, list[tuple[Labels, float]]] = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                found.setdefault(sample.name, []).append((sample.labels, sample.value))
        return found

    async def by(self, name: str, label: str) -> dict[str, float]:
        """The values of a metric that are not zero, by one label, without the prefix."""
        samples = (await self.samples())[f"opencode_acp_{name}"]
        return {labels[label]: value for labels, value in samples if value}

    async def value(self, name: str) -> float:
        """Of a metric without labels, without the prefix."""
        ((labels, value),) = (await self.samples())[f"opencode_acp_{name}"]
        assert not labels
        return value

    async def until_value(self, name: str, wanted: float) -> None:
        async def reached() -> bool:
            return await self.value(name) == wanted

        await until(f"{name} is {wanted:g}", reached)


@asynccontextmanager
async def office(root: Path, **given: Any) -> AsyncIterator[Office]:
    """A house as `tests.unit.daemon.house` has it, and its admin socket beside the other one."""
    metrics = Metrics()
    async with house(root, observer=metrics, **given) as home:
        listener = listen(str(root / "run" / "admin.sock"))
        async with Admin(home.daemon, metrics, listener) as admin:
            yield Office(home, metrics, admin)


async def visit(path: Path) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection that says nothing."""
    return await asyncio.open_unix_connection(str(path))
