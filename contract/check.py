"""Compares the route table with the routes that a live server declares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from contract.routes import ROUTES, USED, Route, missing

_METHODS: Final = frozenset({"get", "put", "post", "delete", "patch", "head", "options"})


@dataclass(frozen=True)
class Comparison:
    """`absent`: in the table and not on the server; `new`: the reverse, as `METHOD /path`."""

    required: tuple[Route, ...]
    absent: tuple[Route, ...]
    new: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether every route that the adapter uses is there."""
        return not any(route in USED for route in self.absent)


def live_routes(document: object) -> frozenset[tuple[str, str]]:
    """METHOD and path template of an OpenAPI document; empty if it is none."""
    paths = document.get("paths") if isinstance(document, dict) else None
    if not isinstance(paths, dict):
        return frozenset()
    return frozenset(
        (method.upper(), path)
        for path, item in paths.items()
        if isinstance(path, str) and isinstance(item, dict)
        for method in item
        if method in _METHODS
    )


def compare(live: frozenset[tuple[str, str]]) -> Comparison:
    known = {(route.method, route.path): route for route in ROUTES}
    return Comparison(
        required=missing(live),
        absent=tuple(route for pair, route in known.items() if pair not in live),
        new=tuple(sorted(f"{method} {path}" for method, path in live - set(known))),
    )


def report(comparison: Comparison, *, whole: bool = False) -> str:
    """The comparison in lines: the verdict, then what stops the adapter.

    What makes no difference to it is a number, and listed too if `whole`.
    """
    absent = sorted(comparison.absent, key=lambda route: (not route.required, route.name))
    needed = [_missing(route) for route in absent if route in USED]
    others = [_missing(route) for route in absent if route not in USED]
    others += [f"new, not in the table: {name}" for name in comparison.new]
    if not needed and not others:
        return f"All {len(ROUTES)} routes are as the table has them."
    lines = ["Every route that the adapter uses is there."]
    if needed:
        lines = [f"Routes that the adapter uses are missing: {len(needed)}.", *needed]
    if others and whole:
        lines += others
    elif others:
        lines.append(f"Other differences: {len(others)}; --all lists them.")
    return "\n".join(lines)


def _missing(route: Route) -> str:
    return f"missing, {_weight(route)}: {route.name} ({route.why})"


def _weight(route: Route) -> str:
    if route.required:
        return "required"
    return "used" if route.used else "not used"
