"""The pages name what exists, and name all of it: codes, flags, variables, files, make targets."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Final

import pytest

from adapter.core.values import Stop
from adapter.daemon.reload import FIXED
from adapter.flags import help_text
from adapter.settings.table import BY_NAME, SETTINGS, Place
from adapter.upstream.credentials import FOLDER_VARIABLE, PASSWORD_VARIABLES
from contract.errors import Code
from stubs.parts import ROOT
from tests.support.structure import modules, parse

PAGES: Final = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    ROOT / "contract" / "INVENTORY.md",
]
MINUS: Final = "\N{MINUS SIGN}"
# Paths in backticks that begin with one of these are files of the project.
FOLDERS: Final = ("adapter", "contract", "stubs", "tests", "docs", "deploy", "tools", "scripts")

LINK: Final = re.compile(r"\]\(([^)\s]+)\)")
QUOTED: Final = re.compile(r"`([^`\n]+)`")


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def anchors(path: Path) -> set[str]:
    """The anchors of a page's headings, as they are made for Markdown on the web."""
    headings = re.findall(r"^#+ (.+)$", read(path), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.fixture(scope="module", params=PAGES, ids=[page.name for page in PAGES])
def page(request: pytest.FixtureRequest) -> Path:
    found: Path = request.param
    return found


@pytest.mark.parametrize("code", Code, ids=[code.name for code in Code])
def test_every_code_is_explained(code: Code) -> None:
    assert f"| {MINUS}{-code} |" in read(ROOT / "docs" / "outcomes.md")


def notice_kinds(tree: ast.Module) -> set[str]:
    """The kinds of the notices that a module makes, written out or as a constant of it."""
    constants = {
        ast.unparse(node.target if isinstance(node, ast.AnnAssign) else node.targets[0]): node.value
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
    }
    found = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        name = ast.unparse(node.func).rpartition(".")[2]
        kind = node.args[1:2] if name == "Notice" else node.args[:1] if name == "notice" else []
        for argument in kind:
            value = constants.get(ast.unparse(argument), argument)
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                found.add(value.value)
    return found


def test_every_notice_is_explained_to_writers_of_clients() -> None:
    made = {kind for path in modules("adapter").values() for kind in notice_kinds(parse(path))}
    section = read(ROOT / "docs" / "clients.md").partition("## Notices")[2]
    assert set(re.findall(r"^\| `(\w+)` \|", section, re.M)) == made


@pytest.mark.parametrize("stop", Stop, ids=[stop.value for stop in Stop])
def test_every_stop_reason_is_explained(stop: Stop) -> None:
    assert f"| `{stop.value}` |" in read(ROOT / "docs" / "outcomes.md")


def test_no_code_is_explained_that_is_not_used() -> None:
    told = re.findall(rf"^\| {MINUS}(\d+) \|", read(ROOT / "docs" / "outcomes.md"), re.M)
    assert {-int(code) for code in told} == set(Code)


def reasons(source: str) -> set[str]:
    """What a module gives as `data.code`: constants at its place in the makers of such errors."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        given: ast.expr | None = None
        match node:
            case ast.Call(func=ast.Name("failed"), args=[_, _, _, reason]):
                given = reason
            case ast.Call(func=ast.Name("not_sent"), args=[_, reason, _]):
                given = reason
            case ast.keyword(arg="reason", value=reason):
                given = reason
            case ast.Dict(keys=[ast.Constant("code"), *_], values=[reason, *_]):
                given = reason
        if isinstance(given, ast.Constant) and isinstance(given.value, str):
            found.add(given.value)
    return found - {""}


def test_every_reason_that_is_given_is_explained() -> None:
    # Those of the operator's commands are no answers to a client.
    rooms = ("adapter/acp", "adapter/core", "adapter/engine", "contract")
    files = [path for room in rooms for path in (ROOT / room).rglob("*.py")]
    given = set().union(*(reasons(read(path)) for path in files))
    page = read(ROOT / "docs" / "outcomes.md")
    told = re.findall(rf"^\| {MINUS}\d+ \| `(\w+)`", page, re.M)
    assert set(told) == given


def test_every_setting_is_in_the_readme() -> None:
    text = read(ROOT / "README.md")
    flags = set(re.findall(r"(?<=  )--[a-z-]+", help_text()))
    names = {name for setting in SETTINGS for name in (setting.flag, setting.variable)}
    names |= {f"${FOLDER_VARIABLE}", *PASSWORD_VARIABLES}
    assert {name for name in flags | names if f"`{name}" not in text} == set()


def test_what_a_reload_leaves_as_it_is_is_told() -> None:
    text = read(ROOT / "docs" / "operations.md")
    (told,) = re.findall(r"takes over all of it but (.*?), which want a restart", text)
    in_a_file = {name for name in FIXED if BY_NAME[name].place is not Place.COMMAND}
    assert set(QUOTED.findall(told)) == in_a_file


def test_the_readme_opens_with_the_two_commands() -> None:
    block = read(ROOT / "README.md").split("```")[1]
    assert re.findall(r"^make \w+", block, re.M) == ["make run", "make test"]


def test_links_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(read(page)):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_files_that_are_named_exist(page: Path) -> None:
    for name in QUOTED.findall(read(page)):
        # A test by its name is below tests/, and looked for by tests/unit/test_requirements.py.
        is_path = " " not in name and "::" not in name
        if is_path and name.startswith(tuple(f"{folder}/" for folder in FOLDERS)):
            assert (ROOT / name).exists(), name


def test_make_targets_that_are_named_exist(page: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):", read(ROOT / "Makefile"), re.M))
    named = set(re.findall(r"^make ([a-z]+)|`make ([a-z]+)", read(page), re.M))
    assert {first or second for first, second in named} <= targets


def test_all_make_targets_are_in_contributing() -> None:
    targets = set(re.findall(r"^([a-z]+):", read(ROOT / "Makefile"), re.M)) - {"help"}
    text = read(ROOT / "CONTRIBUTING.md")
    assert {target for target in targets if f"`make {target}" not in text} == set()


def test_a_broken_page_would_be_noticed() -> None:
    assert reasons("failed(t, c, 'words', 'unknown')") == {"unknown"}
    assert reasons("not_sent(C, 'busy', 'words', retry_safe=True)") == {"busy"}
    assert reasons("x = {'code': 'not_open', 'admitted': False}") == {"not_open"}
    assert LINK.findall("[a](b.md#c)") == ["b.md#c"]
    assert QUOTED.findall("see `adapter/gone.py`") == ["adapter/gone.py"]
    assert "flags-and-environment" in anchors(ROOT / "README.md")
