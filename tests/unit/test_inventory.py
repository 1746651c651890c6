"""contract/INVENTORY.md speaks of every container and every route, and of nothing else."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections import Counter

import pytest

from adapter.limits import Limits
from contract.routes import OPENAPI, ROUTES
from stubs.parts import ROOT
from tests.inventory.containers import containers, held
from tests.inventory.page import page
from tests.inventory.table import PASSING, TABLE, is_passing

AGAIN = "write what is missing into tests/inventory, and run `make inventory`"
LIMITS = {one.name for one in dataclasses.fields(Limits)}


def test_every_container_has_a_row() -> None:
    known = {kept.where for kept in TABLE}
    lacking = {where for where in containers() if where not in known and not is_passing(where)}
    assert lacking == set(), AGAIN


def test_every_row_has_a_container() -> None:
    assert {kept.where for kept in TABLE} - containers() == set(), AGAIN
    counted = Counter(kept.where for kept in TABLE)
    assert {where for where, times in counted.items() if times > 1} == set()


def test_every_class_that_passes_has_containers_and_no_row() -> None:
    assert PASSING.keys() - {where.rpartition(".")[0] for where in containers()} == set(), AGAIN
    assert {kept.where for kept in TABLE if is_passing(kept.where)} == set()


def test_the_page_is_what_they_make() -> None:
    written = (ROOT / "contract" / "INVENTORY.md").read_text(encoding="utf-8")
    assert written == page(), AGAIN


def test_nothing_is_left_unsaid() -> None:
    for kept in TABLE:
        assert all(map(str.strip, dataclasses.astuple(kept))), kept
        assert "|" not in "".join(dataclasses.astuple(kept)), kept


def test_limits_are_named_as_an_operator_names_them() -> None:
    """What the bound of another row is, is told by its class and attribute."""
    quoted = {name for kept in TABLE for name in re.findall(r"`(\w+)`", kept.bound)}
    assert quoted - LIMITS == set()


def test_every_route_has_a_line_with_its_reason() -> None:
    lines = page().splitlines()
    for route in (*ROUTES, OPENAPI):
        (line,) = [line for line in lines if line.startswith(f"| `{route.name}` |")]
        assert line.endswith(f"| {route.why} |")


@pytest.mark.parametrize(
    "body",
    [
        "def __init__(self):\n  self.a = {}",
        "def __init__(self):\n  self.a: dict[str, int] = dict(given)",
        "def __init__(self):\n  self.a = [] if given else None",
        "def __init__(self):\n  self.a = given or set()",
        "def __init__(self):\n  self.a: deque[int] = deque()",
        "def __init__(self):\n  self.a = asyncio.Queue()",
        "def __init__(self):\n  self.a = collections.OrderedDict()",
        "def __init__(self):\n  self.a = dict.fromkeys(names, 0)",
        "def __init__(self):\n  self.a = [x for x in given]",
        "def __init__(self):\n  self.a = bytearray()",
        "def __init__(self):\n  self.a: tuple[int, ...] = ()",
        "def __init__(self):\n  self.a: frozenset[int] = frozenset()",
        "def __init__(self):\n  self.a = b''",
        "def __init__(self):\n  self.a = Tasks()",
        "def later(self):\n  self.b, self.a = 1, 2\n  self.a = {}",
        "a: dict[str, int] = field(default_factory=dict)",
        "a: Names = field(default_factory=set)",
        "a: list[int]",
        "a: OffsetTable = field(default_factory=OffsetTable)",
        "a: tuple[int, ...] = ()",
    ],
)
def test_a_container_is_found(body: str) -> None:
    assert set(held(in_class(body))) == {"C.a"}


@pytest.mark.parametrize(
    "body",
    [
        "def __init__(self):\n  a = {}",
        "def __init__(self):\n  self.a: Mapping[str, int] = {'x': 1}",
        "def __init__(self):\n  self.a = call({}, [])",
        "def __init__(self):\n  self.a = 'text'",
        "def __init__(self):\n  other.a = {}",
        "a: Mapping[str, int] = field(default_factory=dict)",
        "a: int = 0",
    ],
)
def test_what_is_none_is_not_found(body: str) -> None:
    assert list(held(in_class(body))) == []


@pytest.mark.parametrize(
    "head", ["@dataclass(frozen=True)\nclass C:", "class C(NamedTuple):", "class C(Shape):"]
)
def test_a_value_is_no_container(head: str) -> None:
    assert list(held(ast.parse(f"{head}\n  a: list[int] = field(default_factory=list)"))) == []


def in_class(body: str) -> ast.Module:
    return ast.parse("class C:\n" + "\n".join(f"  {line}" for line in body.splitlines()))
