"""The tables of ACP against the published schema, and against what the adapter's sources name."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable
from typing import Final

import pytest

from contract.initialize import initialize_result
from contract.surface import (
    AGENT_METHODS,
    CLIENT_METHODS,
    PROTOCOL_METHODS,
    PROXY_METHODS,
    UPDATES,
    Entry,
    used,
)
from tests.support.schema import Side, methods, updates
from tests.support.structure import modules, parse, strings

SIDES: Final[tuple[tuple[Side, tuple[Entry, ...]], ...]] = (
    ("agent", AGENT_METHODS),
    ("client", CLIENT_METHODS),
    ("protocol", PROTOCOL_METHODS),
    ("proxy", PROXY_METHODS),
)
ALL: Final = (*(entry for _, entries in SIDES for entry in entries), *UPDATES)
SOURCES: Final = modules("adapter", "contract")
# Served by every agent that has sessions at all: there is no capability for them.
WITHOUT_CAPABILITY: Final = frozenset(
    {"session/new", "session/prompt", "session/cancel", "session/set_mode"}
    | {"session/set_config_option"}
)


def stability(entries: Iterable[Entry]) -> dict[str, bool]:
    return {entry.name: entry.stable for entry in entries}


def published(stable: Iterable[str], unstable: Iterable[str]) -> dict[str, bool]:
    """What the two schemas have, as `stability` has it."""
    return dict.fromkeys(unstable, False) | dict.fromkeys(stable, True)


def named() -> set[str]:
    """The string constants of the product, the tables themselves apart."""
    files = [path for name, path in SOURCES.items() if name != "contract.surface"]
    return set().union(*(strings(parse(path)) for path in files))


@pytest.mark.parametrize(("side", "entries"), SIDES, ids=[side for side, _ in SIDES])
def test_the_methods_are_those_of_the_schema(side: Side, entries: tuple[Entry, ...]) -> None:
    schema = published(methods(side, stable=True), methods(side, stable=False))
    assert stability(entries) == schema


def test_the_updates_are_those_of_the_schema() -> None:
    assert stability(UPDATES) == published(updates(stable=True), updates(stable=False))


@pytest.mark.parametrize("entries", [*(entries for _, entries in SIDES), UPDATES])
def test_a_name_stands_in_a_table_once(entries: tuple[Entry, ...]) -> None:
    assert [name for name, times in Counter(e.name for e in entries).items() if times > 1] == []


def test_every_entry_says_why() -> None:
    assert [entry.name for entry in ALL if len(entry.why) < 10] == []


def test_the_sources_name_every_method_in_use_and_no_other() -> None:
    known = {entry.name for _, entries in SIDES for entry in entries}
    wanted = frozenset[str]().union(*(used(entries) for _, entries in SIDES))
    assert named() & known == wanted


def test_the_sources_name_every_update_in_use_and_no_other() -> None:
    assert named() & {entry.name for entry in UPDATES} == used(UPDATES)


def test_what_is_offered_is_what_is_served() -> None:
    offer = initialize_result({"protocolVersion": 1})["agentCapabilities"]
    assert isinstance(offer, dict)
    optional = {f"session/{name}" for name in offer["sessionCapabilities"]}
    optional |= {"session/load"} if offer["loadSession"] else set()
    sessions = {name for name in used(AGENT_METHODS) if name.startswith("session/")}
    assert optional == sessions - WITHOUT_CAPABILITY


def test_a_name_in_a_docstring_is_no_use() -> None:
    source = '"""plan"""\ndef f():\n    "notice"\n    return {"tool_call": 1}\n'
    assert strings(ast.parse(source)) == {"tool_call"}


def test_what_a_client_may_say_to_us_is_what_we_look_for() -> None:
    """The extensions that `initialize` announces, against the source that reads them."""
    offer = initialize_result({"protocolVersion": 1})["agentCapabilities"]
    assert isinstance(offer, dict)
    read = {
        found
        for path in modules("adapter").values()
        for found in re.findall(r'ours\([\w.]+\)\.get\("(\w+)"\)', path.read_text("utf-8"))
    }
    assert offer["_meta"]["opencode-acp"]["extensions"] == sorted(read)
