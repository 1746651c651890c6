"""A minute of the soak: nothing grows, leaks or is lost. `make soak` has ten, and 50 clients."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.soak.soak import soak

USERS: Final = 16
SECONDS: Final = 60.0


@pytest.mark.timeout(240)
async def test_a_daemon_under_faults_stays_as_it_is(tmp_path: Path) -> None:
    report = await soak(tmp_path, USERS, SECONDS)
    assert report.wrong == []
    assert report.tally.outcomes["end_turn"] > USERS
    assert len(report.tally.outcomes) > 2
