"""Finds in the source what can grow: the containers that objects of the adapter hold.

A container is an attribute that begins as a list, a dict, a set or one of their kin, as bytes that
are added to, or as one of our classes whose bound is its owner's (`OWNED`). Left out are

- value objects: frozen dataclasses, named tuples, enumerations, errors, and models of what is read
  or said, which are made whole and not changed;
- tables that are written once: a display whose annotation is a read-only type;
- what is local to a call: variables of functions, and the attributes of `tests.inventory.table`'s
  passing classes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final

from tests.support.structure import READ_ONLY, modules, parse

ROOMS: Final = ("acp", "core", "daemon", "engine", "upstream")
KINDS: Final = re.compile(
    r"^(\w+\.)?(list|dict|set|bytearray|deque|defaultdict|OrderedDict|Counter|ChainMap|BytesIO"
    r"|StringIO|Queue|LifoQueue|PriorityQueue|SimpleQueue|WeakKeyDictionary|WeakValueDictionary"
    r"|WeakSet|array|CollectorRegistry|AsyncClient)$|^dict\.fromkeys$"
)
OWNED: Final = re.compile(r"^(Tasks|OffsetTable)$")
VALUES: Final = re.compile(r"(Enum|NamedTuple|Shape|BaseModel|Error|Exception|Protocol)$")


def containers() -> set[str]:
    """`module.Class.attribute` of each, without the `adapter.` that all begin with."""
    rooms = modules(*(f"adapter.{room}" for room in ROOMS))
    return {
        f"{name.removeprefix('adapter.')}.{found}"
        for name, path in rooms.items()
        for found in held(parse(path))
    }


def held(tree: ast.Module) -> Iterator[str]:
    """`Class.attribute` of each container in a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and not _is_value(node):
            for statement in node.body:
                if isinstance(statement, ast.AnnAssign) and _is_field(statement):
                    yield f"{node.name}.{ast.unparse(statement.target)}"
            yield from (f"{node.name}.{name}" for name in _assigned(node))


def _is_value(made: ast.ClassDef) -> bool:
    frozen = any("frozen=True" in ast.unparse(one) for one in made.decorator_list)
    return frozen or any(VALUES.search(ast.unparse(base)) for base in made.bases)


def _is_field(statement: ast.AnnAssign) -> bool:
    """Whether a field of a dataclass is a container, made for it or given to it."""
    kind, value = ast.unparse(statement.annotation), statement.value
    if value is not None and _is_empty(value):
        return True
    if KINDS.match(kind.partition("[")[0]):
        return True
    factories = value.keywords if isinstance(value, ast.Call) else []
    is_constant = READ_ONLY.match(kind) is not None
    made = [one.value for one in factories if one.arg == "default_factory" and not is_constant]
    return any(map(_is_kind, made))


def _assigned(made: ast.ClassDef) -> Iterator[str]:
    """The attributes of `self` that are given a container somewhere in the class."""
    for node in ast.walk(made):
        match node:
            case ast.Assign(targets=targets, value=value):
                is_constant = False
            case ast.AnnAssign(target=target, annotation=kind, value=ast.expr() as value):
                targets = [target]
                is_constant = READ_ONLY.match(ast.unparse(kind)) is not None
            case _:
                continue
        if _is_empty(value) or (_makes(value) and not is_constant):
            for one in targets:
                if isinstance(one, ast.Attribute) and ast.unparse(one.value) == "self":
                    yield one.attr


def _is_empty(value: ast.expr) -> bool:
    """What cannot be changed and begins with nothing is replaced by something longer."""
    match value:
        case ast.Constant(value=b"") | ast.Tuple(elts=[]):
            return True
        case ast.Call(func=ast.Name("frozenset"), args=[]):
            return True
        case _:
            return False


def _makes(value: ast.expr) -> bool:
    match value:
        case ast.IfExp(body=first, orelse=second):
            return _makes(first) or _makes(second)
        case ast.BoolOp(values=values):
            return any(map(_makes, values))
        case ast.List() | ast.Dict() | ast.Set() | ast.ListComp() | ast.DictComp() | ast.SetComp():
            return True
        case ast.Call(func=made):
            return _is_kind(made)
        case _:
            return False


def _is_kind(made: ast.expr) -> bool:
    name = ast.unparse(made)
    return bool(KINDS.match(name) or OWNED.match(name))
