"""Readers of our own source: imports, module-level state, calls, string constants.

Each takes a parsed module and returns sentences that name a line, so that a test can show them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from stubs.parts import ROOT

PACKAGES: Final = ("adapter", "contract", "stubs")
READ_ONLY: Final = re.compile(r"\b(Mapping|Sequence|Set|frozenset|tuple|Collection)\[")
MUTABLE_CALLS: Final = re.compile(
    r"\b(list|dict|set|bytearray|deque|defaultdict|OrderedDict|Counter|ContextVar|local"
    r"|Event|Lock|RLock|Condition|Semaphore|Queue|LifoQueue|WeakKeyDictionary|WeakValueDictionary"
    r"|WeakSet|Client|AsyncClient|ClientSession|count|iter)$"
)
CACHES: Final = re.compile(r"\b(cache|lru_cache)\b")
FORBIDDEN_CALLS: Final = re.compile(
    r"^(eval|exec|compile|__import__"
    r"|os\.(system|popen|fork|forkpty|exec\w*|spawn\w*|posix_spawn\w*)"
    r"|posix\.(system|fork|exec\w*|posix_spawn\w*)"
    r"|(\w+\.)*(create_subprocess_exec|create_subprocess_shell|subprocess_exec|subprocess_shell))$"
)
# Calls that open, write, move or list files.
FILE_CALLS: Final = re.compile(
    r"^(io\.)?open$|^os\.(open|mkfifo|mknod|link|symlink|rename|replace|remove|unlink|mkdir|makedirs"
    r"|rmdir|listdir|scandir|walk|truncate)$"
    r"|\.(read_text|read_bytes|write_text|write_bytes|touch|mkdir|iterdir|glob|rglob|unlink)$"
    r"|^(tempfile|shutil|sqlite3|glob)\."
)
FORBIDDEN_MODULES: Final = re.compile(
    r"^(subprocess|multiprocessing|pickle|marshal|shelve|dill|pty|ctypes)(\.|$)"
)
# Modules that read a clock, chance, the machine or the network, or that need a loop.
IO_MODULES: Final = re.compile(
    r"^(aiohttp|anyio|asyncio|concurrent|datetime|fcntl|glob|http|httpcore|httpx|httpx_sse|io"
    r"|logging|multiprocessing|os|pathlib|platform|posix|queue|random|requests|sched|secrets|select"
    r"|selectors|shutil|signal|socket|socketserver|sqlite3|ssl|subprocess|sys|syslog|tempfile"
    r"|tenacity|threading|time|urllib|uuid|uvloop|_(?!_future__)\w+)(\.|$)"
)
# Clocks that somebody may set, or that jump with the time of day.
WALL_CLOCKS: Final = re.compile(
    r"(^|\.)time\.(time|time_ns|localtime|gmtime|ctime|asctime|strftime|CLOCK_(REALTIME|TAI)\w*)$"
    r"|(^|\.)(datetime|date)\.(now|utcnow|today)$"
)
IO_CALLS: Final = re.compile(r"^(open|print|input|breakpoint)$")
V1_ROUTE: Final = re.compile(
    r"^/(session|event|global|config|provider|agent|command|permission|question|app|file|find|mcp"
    r"|path|project|doc|log|auth|instance|tui|vcs)(/|$|\?)"
    r"|prompt_async|\bsession\.next\.|\bpermission\.v2\.|\bsession\.idle\b"
    r"|\bmessage\.(part\.)?(updated|removed)\b"
)


def modules(*packages: str) -> dict[str, Path]:
    """The modules below these packages: dotted name to file."""
    found = {}
    for package in packages:
        for path in sorted((ROOT / package.replace(".", "/")).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def parse(path: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def imports(tree: ast.Module, known: Mapping[str, object], at_start: bool = False) -> set[str]:
    """What a module imports, as dotted names; a name from a package of ours is a module too.

    `at_start`: only what is imported while the module itself is being imported.
    """
    found: set[str] = set()
    for node in _started(tree) if at_start else ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            inner = {f"{base}.{alias.name}" for alias in node.names} & known.keys()
            found |= inner if len(inner) == len(node.names) else inner | {base}
    return found


def cycle(graph: Mapping[str, set[str]]) -> list[str]:
    """One cycle of a graph as a path, or []."""
    done: set[str] = set()

    def visit(name: str, path: list[str]) -> list[str]:
        if name in path:
            return [*path[path.index(name) :], name]
        if name in done:
            return []
        for following in sorted(graph.get(name, ())):
            if found := visit(following, [*path, name]):
                return found
        done.add(name)
        return []

    return next((found for name in sorted(graph) if (found := visit(name, []))), [])


def mutable_state(tree: ast.Module) -> list[str]:
    """Module-level and class-level objects that can change, caches, and `global` statements.

    A literal list, dict or set is taken as a constant when its annotation is a read-only type.
    """
    faults = []
    for node in _started(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            annotation = ast.unparse(node.annotation) if isinstance(node, ast.AnnAssign) else ""
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [ast.unparse(target) for target in targets]
            is_constant = names == ["__all__"] or READ_ONLY.search(annotation) is not None
            if _is_mutable(node.value) and not is_constant:
                faults.append(f"line {node.lineno}: {names[0]} can change")
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            faults.append(f"line {node.lineno}: global {', '.join(node.names)}")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            caches = [d for d in node.decorator_list if CACHES.search(ast.unparse(d))]
            faults += [f"line {node.lineno}: {node.name} keeps a cache" for _ in caches]
    return faults


def calls(tree: ast.Module, pattern: re.Pattern[str]) -> list[str]:
    """The calls whose dotted name matches."""
    return [
        f"line {node.lineno}: {ast.unparse(node.func)}()"
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and pattern.search(ast.unparse(node.func))
    ]


def references(tree: ast.Module, pattern: re.Pattern[str]) -> list[str]:
    """What is named with a dot, called or not, or imported from a module, and matches."""
    names: list[tuple[int, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            names.append((node.lineno, ast.unparse(node)))
        elif isinstance(node, ast.ImportFrom):
            names += [(node.lineno, f"{node.module}.{alias.name}") for alias in node.names]
    return [f"line {line}: {name}" for line, name in names if pattern.search(name)]


def coroutines(tree: ast.Module) -> list[str]:
    """The async functions and the awaits."""
    kinds = (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)
    return [f"line {node.lineno}: async" for node in ast.walk(tree) if isinstance(node, kinds)]


def v1_strings(tree: ast.Module) -> list[str]:
    """The string constants, docstrings apart, that name a route or event of the old API.

    Of a formatted string only the beginning counts as the beginning of a path.
    """
    skipped = {id(node) for node in _docstrings(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            skipped |= {id(part) for part in node.values[1:]}
    return [
        f"line {node.lineno}: {node.value!r}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in skipped
        and V1_ROUTE.search(node.value)
    ]


def strings(tree: ast.Module) -> set[str]:
    """The string constants, docstrings apart."""
    skipped = {id(node) for node in _docstrings(tree)}
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in skipped
    }


def _started(tree: ast.Module) -> Iterator[ast.AST]:
    """The nodes that run while the module is imported, what only a type checker sees apart."""
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop(0)
        yield node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting += node.orelse
            continue
        waiting += [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]


def _is_mutable(value: ast.expr) -> bool:
    displays = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
    if isinstance(value, displays):
        return True
    return isinstance(value, ast.Call) and bool(MUTABLE_CALLS.search(ast.unparse(value.func)))


def _docstrings(tree: ast.Module) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value
