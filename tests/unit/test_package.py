"""S3-23: the package works installed, outside of the checkout, and declares what it imports.

X-19: whatever is installed is locked by hash, and the wheel is the same each time.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import sysconfig
import tomllib
import zipfile
from importlib.metadata import distributions, packages_distributions
from pathlib import Path
from typing import Final

import pytest

from contract.version import VERSION
from stubs.parts import ROOT
from tests.support.installs import build, run, venv_alone
from tests.support.structure import imports, modules, parse

LOCKED: Final = re.compile(
    r"^([\w.-]+)==([^\s;]+)(?: ;[^\\\n]+)?(?: \\\n +--hash=sha256:[0-9a-f]{64})+\n", re.M
)
# Python's own, and ours.
NOT_LOCKED: Final = ("pip", "setuptools", "opencode-acp-adapter")
HELLO: Final = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the checkout."""
    return build(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment that holds the wheel, and sees the dependencies of this one."""
    home = tmp_path_factory.mktemp("elsewhere")
    python = venv_alone(wheel, home).with_name("python")
    site = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=home)
    # A folder that is named in such a file is searched, and its own such files are not read: the
    # link from there to the checkout stays out.
    Path(site.strip(), "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return home


def test_the_command_tells_its_version(installed: Path) -> None:
    command = installed / "venv" / "bin" / "opencode-acp"
    assert run(command, "--version", cwd=installed).split()[-1] == VERSION


def test_the_command_answers_initialize_outside_of_the_checkout(installed: Path) -> None:
    command = installed / "venv" / "bin" / "opencode-acp"
    answer = json.loads(run(command, cwd=installed, said=json.dumps(HELLO) + "\n"))
    assert answer["result"]["agentInfo"]["version"] == VERSION


def test_every_module_is_the_installed_one(installed: Path) -> None:
    """All of the product can be imported, and none of it comes from the checkout."""
    names = sorted(name for name in modules("adapter", "contract") if "__main__" not in name)
    code = (
        "import importlib, sys\n"
        f"for name in {names}: importlib.import_module(name)\n"
        "print(*(sys.modules[name].__file__ for name in ('adapter.run', 'contract.routes')))"
    )
    places = run(installed / "venv" / "bin" / "python", "-c", code, cwd=installed).split()
    assert all(Path(place).is_relative_to(installed / "venv") for place in places)


def test_the_wheel_holds_the_packages_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.partition("/")[0] for name in archive.namelist()}
    stem = f"opencode_acp_adapter-{VERSION}"
    assert tops == {"adapter", "contract", "stubs", f"{stem}.data", f"{stem}.dist-info"}


def test_the_wheel_is_the_same_at_another_time(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    for name in ("adapter", "contract", "stubs", "scripts"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, copy)
    first = build(tmp_path / "first", copy).read_bytes()
    for path in copy.rglob("*"):
        os.utime(path, (1_000_000_000, 1_000_000_000))
    assert build(tmp_path / "second", copy).read_bytes() == first


def plain(requirement: str) -> str:
    """The name of a package as the index has it."""
    return re.sub(r"[-_.]+", "-", re.split(r"[<>=~!\[; ]", requirement)[0]).lower()


def locked(file: str) -> set[tuple[str, str]]:
    """Names and versions that a lock file has a hash of; it may hold nothing else.

    A package may have several: one for each range of versions of Python.
    """
    text = re.sub(r"^#.*\n", "", (ROOT / file).read_text("utf-8"), flags=re.M)
    assert LOCKED.sub("", text) == ""
    return set(LOCKED.findall(text))


def test_every_package_that_is_installed_is_locked_by_hash() -> None:
    """What the package needs, what builds it, and all that the tests see."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    builds = declared["build-system"]["requires"]
    assert declared["dependency-groups"]["build"] == builds
    project = declared["project"]
    of_run, of_tests = locked("requirements.txt"), locked("requirements-dev.txt")
    assert of_run <= of_tests
    runs, tests = ({name for name, _ in pairs} for pairs in (of_run, of_tests))
    assert {plain(line) for line in project["dependencies"] + builds} <= runs
    assert {plain(line) for line in project["optional-dependencies"]["dev"]} <= tests
    here = {(plain(each.name), each.version) for each in distributions()}
    assert {pair for pair in here - of_tests if pair[0] not in NOT_LOCKED} == set()


def test_what_is_imported_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    declared = {re.split(r"[<>=~!\[; ]", line)[0].lower() for line in project["dependencies"]}
    files = modules("adapter", "contract", "stubs")
    roots = {name.partition(".")[0] for path in files.values() for name in imports(parse(path), {})}
    known = packages_distributions()
    ours = {"adapter", "contract", "stubs"}
    needed = {
        known[root][0].lower()
        for root in roots - ours - set(sys.stdlib_module_names)
        if root in known
    }
    assert needed == declared
