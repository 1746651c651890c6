"""Whichever way it was installed, the command is the same script and starts the same."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio

from contract.version import VERSION
from stubs.parts import ROOT
from tests.support import installs
from tests.support.relays import (
    BUILT_IN,
    DEADLINE,
    IMPORTS,
    Start,
    daemon,
    echo,
    flags,
    starting,
)

# These ask an index for what the package depends on.
WHOLE: Final = [
    pytest.param(way, id=way.__name__, marks=[pytest.mark.long, pytest.mark.timeout(600)])
    for way in (installs.oldest_pip, installs.pipx_over_pip, installs.pipx_over_uv, installs.uv)
]
ALONE: Final = [
    pytest.param(way, id=way.__name__) for way in (installs.venv_alone, installs.uv_alone)
]
IMPORTED: Final = re.compile(r"^import time: +\d+ \| +\d+ \| +(\S+)$", re.M)
LIST_IMPORTS: Final = ("-X", "importtime")
PURELIB: Final = "import sysconfig; print(sysconfig.get_path('purelib'))"


@dataclass(frozen=True)
class Installed:
    """`interpreter`: the words that the command's first line calls; `compiled`: whether each
    module of a relay had its byte code before the first start."""

    command: Path
    interpreter: tuple[str, ...]
    compiled: bool


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the checkout."""
    return installs.build(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module", params=[*ALONE, *WHOLE])
def installed(
    request: pytest.FixtureRequest, wheel: Path, tmp_path_factory: pytest.TempPathFactory
) -> Installed:
    way: installs.Way = request.param
    home = tmp_path_factory.mktemp("i")
    command = way(wheel, home)
    interpreter = installs.interpreter(command)
    site = Path(installs.run(interpreter[0], "-c", PURELIB, cwd=home).strip())
    sources = [site.joinpath(*name.split(".")) for name in IMPORTS]
    files = [path / "__init__.py" if path.is_dir() else path.with_suffix(".py") for path in sources]
    compiled = all(file.is_file() and Path(cache_from_source(file)).is_file() for file in files)
    return Installed(command, interpreter, compiled)


@pytest_asyncio.fixture
async def start() -> AsyncIterator[Start]:
    async with starting() as begin:
        yield begin


def test_the_command_is_the_very_script(installed: Installed) -> None:
    """No wrapper of the installer's, and run by the Python of the install."""
    script = (ROOT / "scripts" / "opencode-acp").read_text("utf-8")
    line, _, rest = installed.command.read_text("utf-8").partition("\n")
    assert (line[:3], rest) == ("#!/", script.partition("\n")[2])
    # pipx adds -E: what the user's variables say is for other Pythons.
    assert installed.interpreter[1:] in ((), ("-E",))
    assert Path(installed.interpreter[0]).parent == installed.command.resolve().parent


def test_it_is_compiled_before_its_first_start(installed: Installed) -> None:
    """Else each start compiles it, where nobody may write there."""
    assert installed.compiled


def test_it_tells_its_version(installed: Installed, tmp_path: Path) -> None:
    told = installs.run(installed.command, "--version", cwd=tmp_path)
    assert told == f"opencode-acp {VERSION}\n"


async def test_it_is_a_relay_where_a_daemon_listens(
    installed: Installed, tmp_path: Path, start: Start
) -> None:
    async with daemon(tmp_path / "s", echo):
        process = await start(*flags(tmp_path / "s"), command=[str(installed.command)])
        async with asyncio.timeout(DEADLINE):
            out, err = await process.communicate(b"one\ntwo")
    assert (process.returncode, out, err) == (0, b"one\ntwo", b"")


async def test_it_imports_what_a_relay_needs_and_nothing_else(
    installed: Installed, tmp_path: Path, start: Start
) -> None:
    """Beyond what each start of that Python imports."""
    words = [*installed.interpreter, *LIST_IMPORTS]
    async with daemon(tmp_path / "s", echo):
        async with asyncio.timeout(DEADLINE):
            bare = await start("-c", "pass", command=words)
            _, by_python = await bare.communicate()
            relay = await start(*flags(tmp_path / "s"), command=[*words, str(installed.command)])
            out, by_relay = await relay.communicate(b"one")
    assert (bare.returncode, relay.returncode, out) == (0, 0, b"one")
    first, all_of_it = (set(IMPORTED.findall(err.decode())) for err in (by_python, by_relay))
    assert all_of_it - first - BUILT_IN == IMPORTS
