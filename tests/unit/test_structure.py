"""The walls of the design, read from the source; every reader is shown a fault that it finds."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path
from typing import Final

import pytest

from contract.version import VERSION
from stubs.parts import ROOT
from tests.support.structure import (
    FILE_CALLS,
    FORBIDDEN_CALLS,
    FORBIDDEN_MODULES,
    IO_CALLS,
    IO_MODULES,
    PACKAGES,
    WALL_CLOCKS,
    calls,
    coroutines,
    cycle,
    imports,
    modules,
    mutable_state,
    parse,
    references,
    v1_strings,
)

MAX_LINES: Final = 400
OURS: Final = modules(*PACKAGES)
PRODUCT: Final = modules("adapter", "contract")
CORE: Final = modules("adapter.core")

# Which of our modules the modules of a room may import; the first prefix that fits decides.
MAY_IMPORT: Final = (
    ("contract", ("contract",)),
    # The table of limits is plain values, for every room that holds one of them.
    ("adapter.limits", ()),
    ("adapter.core", ("contract", "adapter.core", "adapter.limits")),
    # Updates are built from what core puts out, so its plain values are known there too.
    ("adapter.acp", ("contract", "adapter.acp", "adapter.core.values", "adapter.limits")),
    ("adapter.upstream", ("contract", "adapter.upstream")),
    # One engine knows nothing of who runs it: a process for one client, or the daemon.
    (
        "adapter.engine",
        (
            "contract",
            "adapter.engine",
            "adapter.core",
            "adapter.acp",
            "adapter.upstream",
            "adapter.config",
            "adapter.limits",
        ),
    ),
    # What the admin socket says is known to both of its ends, and those who ask there are no part
    # of the daemon: they know its settings, which say where it answers.
    ("adapter.daemon.admin.shapes", ()),
    # As is what is said of a daemon that ends, and whose place a socket is.
    ("adapter.daemon.ending", ("contract",)),
    ("adapter.daemon.exposure", ()),
    *(
        (
            f"adapter.commands.{name}",
            (
                "contract",
                "adapter.daemon.admin.shapes",
                "adapter.daemon.ending",
                "adapter.daemon.exposure",
                "adapter.commands",
                "adapter.settings",
                "adapter.start",
            ),
        )
        for name in ("inquiry", "screen", "sessions", "status")
    ),
    ("adapter", ("contract", "adapter")),
    ("stubs", ("contract", "stubs")),
)


def is_below(name: str, prefix: str) -> bool:
    return name == prefix or name.startswith(f"{prefix}.")


def top(name: str) -> str:
    return name.partition(".")[0]


def named(files: dict[str, Path]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("path", list(files.values()), ids=list(files))


@named(PRODUCT)
def test_nothing_at_module_level_can_change(path: Path) -> None:
    assert mutable_state(parse(path)) == []


@named(PRODUCT)
def test_nothing_starts_a_process_or_runs_data(path: Path) -> None:
    tree = parse(path)
    assert calls(tree, FORBIDDEN_CALLS) == []
    found = set(filter(FORBIDDEN_MODULES.match, imports(tree, OURS)))
    # Python has no function for prctl(2).
    assert found == ({"ctypes"} if path == OURS["adapter.daemon.process"] else set())


def test_no_file_is_opened_but_those_of_the_operator_the_null_device_and_the_lock() -> None:
    """Nothing is kept on disk, and no file of a project is read."""
    opened = {
        name: len(found)
        for name, path in modules("adapter").items()
        if (found := calls(parse(path), FILE_CALLS))
    }
    assert opened == {
        # A log that its user names.
        "adapter.commands.replay": 1,
        "adapter.configfile": 1,
        "adapter.upstream.credentials": 1,
        "adapter.acp.descriptors": 1,
        # The lock beside the socket, the socket's directory, and a socket that nobody serves.
        "adapter.daemon.listening": 4,
        # The null device is the descriptor in reserve.
        "adapter.daemon.accepting": 1,
        # Of /proc: a limit of the kernel, the processes, and what they have open.
        "adapter.doctor.machine": 3,
    }


@named(PRODUCT)
def test_no_route_or_event_of_the_old_api_is_named(path: Path) -> None:
    assert v1_strings(parse(path)) == []


@named(PRODUCT)
def test_no_clock_is_read_that_somebody_may_set(path: Path) -> None:
    """A jump of the time of day ends no wait and makes none longer (O-35)."""
    assert references(parse(path), WALL_CLOCKS) == []


@named(CORE)
def test_core_does_no_io(path: Path) -> None:
    tree = parse(path)
    assert list(filter(IO_MODULES.match, imports(tree, OURS))) == []
    assert calls(tree, IO_CALLS) + coroutines(tree) == []


@named(OURS)
def test_rooms_import_only_what_they_may(path: Path) -> None:
    name = next(name for name, file in OURS.items() if file == path)
    allowed = next(allowed for room, allowed in MAY_IMPORT if is_below(name, room))
    ours = {n for n in imports(parse(path), OURS) if top(n) in (*PACKAGES, "tests")}
    assert {n for n in ours if not any(is_below(n, room) for room in allowed)} == set()


def test_no_import_leads_back() -> None:
    graph = {
        name: {n for n in imports(parse(path), OURS, at_start=True) if n in OURS}
        for name, path in OURS.items()
    }
    assert cycle(graph) == []


def test_files_are_short() -> None:
    files = {**OURS, **modules("tests")}
    lines = {name: len(path.read_text("utf-8").splitlines()) for name, path in files.items()}
    assert {name: n for name, n in lines.items() if n > MAX_LINES} == {}


def test_the_version_is_stated_once_more_and_alike() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["version"] == VERSION


def test_the_lock_of_the_real_parts_holds_no_address() -> None:
    lock = (ROOT / "tools" / "package-lock.json").read_text("utf-8")
    assert re.search(r"resolved|https?://", lock) is None


# The readers find what they are for.


@pytest.mark.parametrize(
    "source",
    [
        "x = []",
        "x = {}",
        "X: Final = {}",
        "X: dict[str, int] = {}",
        "x = collections.deque()",
        "x = asyncio.Lock()",
        "x = [n for n in y]",
        "class A:\n    seen = []",
        "if y:\n    x = []",
        "try:\n    x = {}\nfinally:\n    pass",
        "def f():\n    global x\n    x = 1",
        "@functools.lru_cache(8)\ndef f(): ...",
        "class A:\n    @cache\n    def f(self): ...",
    ],
)
def test_state_is_found(source: str) -> None:
    assert len(mutable_state(ast.parse(source))) == 1


@pytest.mark.parametrize(
    "source",
    [
        "__all__ = ['x']",
        "X = (1, 2)",
        "X: Final[Mapping[str, int]] = {'a': 1}",
        "X = MappingProxyType({'a': 1})",
        "X = dict[str, int]",
        "X = frozenset({1})",
        "def f():\n    x = []",
        "class A:\n    def f(self):\n        self.x = {}",
    ],
)
def test_constants_and_locals_are_no_state(source: str) -> None:
    assert mutable_state(ast.parse(source)) == []


def test_file_calls_are_found() -> None:
    source = "open('x', 'w'); os.unlink(p); Path('x').write_text(''); tempfile.mkstemp()"
    assert len(calls(ast.parse(source), FILE_CALLS)) == 4
    assert calls(ast.parse("self.window.open(x); a.replace(b, c)"), FILE_CALLS) == []


def test_calls_are_found() -> None:
    tree = ast.parse("eval('1'); os.execv(a, b); await asyncio.create_subprocess_exec('x')")
    assert len(calls(tree, FORBIDDEN_CALLS)) == 3
    assert calls(ast.parse("re.compile('x'); model.eval()"), FORBIDDEN_CALLS) == []


@pytest.mark.parametrize(
    ("source", "faults"),
    [
        ("x = '/session'", 1),
        ("x = f'/session/{s}/message'", 1),
        ("x = '/event'", 1),
        ("x = 'session.next.text.delta'", 1),
        ("x = '/api/session'", 0),
        ("x = f'/api/session/{s}/permission/{p}/reply'", 0),
        ("def f():\n    '/event ends with the server'", 0),
        ("x = 'session/new'", 0),
    ],
)
def test_the_old_api_is_found(source: str, faults: int) -> None:
    assert len(v1_strings(ast.parse(source))) == faults


def test_imports_are_found_wherever_they_stand() -> None:
    source = "import os.path\nfrom a import b, c\ndef f():\n    from a.d import e\n"
    assert imports(ast.parse(source), {"a.b": 0}) == {"os.path", "a.b", "a", "a.d"}
    assert imports(ast.parse(source), {}, at_start=True) == {"os.path", "a"}
    hidden = "if TYPE_CHECKING:\n    import a\nelse:\n    import b\n"
    assert imports(ast.parse(hidden), {}, at_start=True) == {"b"}


def test_a_cycle_is_found() -> None:
    assert cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    assert cycle({"a": {"b", "c"}, "b": {"c"}}) == []


def test_modules_of_io_are_found() -> None:
    for name in ("asyncio", "urllib.request", "_socket"):
        assert IO_MODULES.match(name)
    for name in ("__future__", "dataclasses", "timeit", "contract.reads"):
        assert not IO_MODULES.match(name)
    assert FORBIDDEN_MODULES.match("pickle")


@pytest.mark.parametrize(
    ("source", "faults"),
    [
        ("time.time()", 1),
        ("def f(clock=time.time): ...", 1),
        ("from time import time_ns, monotonic", 1),
        ("datetime.now(UTC)", 1),
        ("datetime.datetime.utcnow()", 1),
        ("time.clock_gettime(time.CLOCK_REALTIME)", 1),
        ("time.monotonic(); loop.time(); time.CLOCK_MONOTONIC", 0),
        ("datetime.fromtimestamp(seconds, UTC)", 0),
    ],
)
def test_clocks_are_found(source: str, faults: int) -> None:
    assert len(references(ast.parse(source), WALL_CLOCKS)) == faults


def test_coroutines_are_found() -> None:
    assert len(coroutines(ast.parse("async def f():\n    await g()"))) == 2
