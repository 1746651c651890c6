"""What holds for every test of the suite."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio
from hypothesis import HealthCheck, settings

from tests.support.daemons import Daemons, by_daemon

# How fast a machine makes examples says nothing about the code.
settings.register_profile("suite", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")


@pytest_asyncio.fixture(scope="session", loop_scope="session", autouse=by_daemon())
async def daemons() -> AsyncIterator[None]:
    """On the third transport: the daemons that the agents of a worker share."""
    Daemons.shared = daemons = Daemons()
    yield
    Daemons.shared = None
    await daemons.aclose()
