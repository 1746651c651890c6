"""The known defect of adapters that still call the first version's routes."""

from __future__ import annotations

import re
from pathlib import Path

import adapter
import contract
from contract.routes import USED

# What the first version had and the second has not: routes, events and reply keys.
GONE = re.compile(
    r"/session/[^\s\"']*/(?:permissions/|abort|event\b|history)|/api/health|/global/event"
    r"|session\.next\.|permission\.v2\.|message\.part\.updated|session\.idle"
)


def test_defect_v1_routes() -> None:
    roots = [Path(str(package.__file__)).parent for package in (adapter, contract)]
    paths = [path for root in roots for path in root.rglob("*.py")]
    assert len(paths) > 20
    for path in paths:
        found = GONE.findall(path.read_text(encoding="utf-8"))
        assert not found, (path.name, found)


def test_the_search_finds_them() -> None:
    for old in ("/session/{id}/abort", "/session/x/permissions/y", "/global/event", "session.idle"):
        assert GONE.search(old)


def test_every_route_in_use_is_one_of_the_second_version() -> None:
    assert all(route.path.startswith("/api/") for route in USED)
