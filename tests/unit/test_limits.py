"""The table of limits: a file lowers them one by one and raises none."""

from __future__ import annotations

import ast
import dataclasses

import pytest

from adapter.limits import DEFAULTS, FLOORS, Bound, LimitError, Limits, lowered
from stubs.parts import ROOT
from tests.support.structure import modules, parse

# What builds or bounds something by the limits; without them it would take the defaults.
BOUNDED = {
    "updates": {"chunks", "user_text", "tool", "notice", "compaction", "title", "prompted",
                "progress", "prompt_error"},
    "toolcalls": {"describe", "permission"},
    "toolresults": {"content", "progress", "content_room", "output_room"},
    "prompts": {"content"},
}  # fmt: skip
NAMES = [one.name for one in dataclasses.fields(Limits)]


def highest(name: str) -> float:
    value: float = getattr(DEFAULTS, name)
    return value


@pytest.mark.parametrize("name", NAMES)
def test_each_limit_can_be_lowered_alone(name: str) -> None:
    less = FLOORS.get(name, 1)
    changed = lowered({name: less})
    assert getattr(changed, name) == less
    assert dataclasses.replace(changed, **{name: highest(name)}) == DEFAULTS  # type: ignore[arg-type]


@pytest.mark.parametrize("name", NAMES)
def test_none_can_be_raised_turned_off_or_be_something_else(name: str) -> None:
    least = FLOORS.get(name, 1)
    for value in (highest(name) + 1, 10**400, 0, -1, least - 1, True, "8", None, [8], float("nan")):
        with pytest.raises(LimitError, match=name) as caught:
            lowered({name: value})
        assert str(caught.value).count(".") == 1


def test_a_count_is_whole_and_a_time_need_not_be() -> None:
    with pytest.raises(LimitError):
        lowered({"prompts": 3.0})
    assert lowered({"setup_seconds": 0.5}).setup_seconds == 0.5
    with pytest.raises(LimitError):
        lowered({"setup_seconds": float("inf")})


def test_an_unknown_name_is_told() -> None:
    with pytest.raises(LimitError, match="'session'"):
        lowered({"sessions": 3, "session": 3})


def test_nothing_changes_without_a_value() -> None:
    assert lowered({}) is not None
    assert lowered({}) == DEFAULTS
    assert lowered({"prompts": DEFAULTS.prompts}) == DEFAULTS


def test_what_can_be_hit_has_the_name_of_its_limit() -> None:
    # A text that is split loses nothing.
    assert {bound.value for bound in Bound} == set(NAMES) - {"text_chunk_chars"}


def test_each_that_can_be_hit_is_counted_somewhere() -> None:
    named = {
        node.attr
        for path in modules("adapter").values()
        for node in ast.walk(parse(path))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "Bound"
    }
    assert named == {bound.name for bound in Bound}


@pytest.mark.parametrize("name", NAMES)
def test_each_limit_is_in_the_readme(name: str) -> None:
    assert f"`{name}`" in (ROOT / "README.md").read_text(encoding="utf-8")


def unlimited(tree: ast.AST) -> list[str]:
    """Calls of what takes limits that hand on none."""
    return [
        f"{ast.unparse(node.func)}, line {node.lineno}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.attr in BOUNDED.get(node.func.value.id, set())
        and not any(
            "limits" in ast.unparse(given)
            for given in [*node.args, *(keyword.value for keyword in node.keywords)]
        )
    ]


def test_the_limits_are_handed_on_wherever_they_hold() -> None:
    found = {name: unlimited(parse(path)) for name, path in modules("adapter").items()}
    assert {name: calls for name, calls in found.items() if calls} == {}
    assert unlimited(ast.parse("updates.chunks(chunk)")) == ["updates.chunks, line 1"]
    assert unlimited(ast.parse("updates.chunks(chunk, self._limits)")) == []
