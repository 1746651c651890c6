"""contract/INVENTORY.md, made of the table and the routes."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Final

from contract.routes import OPENAPI, ROUTES, Route
from tests.inventory.kept import Kept
from tests.inventory.table import PASSING, TABLE

TEMPLATE: Final = Path(__file__).with_name("page.md")
HEAD: Final = ("container", "entry", "bound", "at the bound", "cleared by")


def page() -> str:
    """The whole page."""
    ordered = sorted(TABLE, key=lambda kept: kept.where)
    tables = "".join(
        f"\n### {room}\n\n{_table(list(rows))}"
        for room, rows in groupby(ordered, key=lambda kept: kept.where.partition(".")[0])
    )
    return TEMPLATE.read_text(encoding="utf-8").format(
        tables=tables,
        passing="\n".join(_line(f"`{name}`", what) for name, what in PASSING.items()),
        routes="\n".join(map(_route, (*ROUTES, OPENAPI))),
    )


def _table(rows: list[Kept]) -> str:
    lines = [_line(*HEAD), _line(*("---" for _ in HEAD))]
    for kept in rows:
        name = kept.where.partition(".")[2]
        lines.append(_line(f"`{name}`", kept.key, kept.bound, kept.full, kept.cleared))
    return "".join(f"{line}\n" for line in lines)


def _route(route: Route) -> str:
    disposition = "needed" if route.required else "used" if route.used else "not used"
    return _line(f"`{route.name}`", disposition, route.why)


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
