"""The package installed in each way that README.md names, into a folder of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from stubs.parts import ROOT

DEADLINE: Final = 300.0
OLDEST: Final = ("pip==22.3", "setuptools==65.5.0")
"""What an environment of Python 3.11.0 holds (its ensurepip)."""
BUILD: Final = "import sys; from hatchling.build import build_wheel; build_wheel(sys.argv[1])"
NOT_PASSED_ON: Final = ("PYTHON", "PIPX_", "OPENCODE_", "VIRTUAL_ENV")
Way = Callable[[Path, Path], Path]
"""Installs a wheel into a folder; the command as its user calls it."""


def run(*argv: str | Path, cwd: Path, said: str = "", env: Mapping[str, str] | None = None) -> str:
    """What a command prints; it must end well. Without `env` it gets no variable of ours."""
    done = subprocess.run(
        [str(word) for word in argv],
        cwd=cwd,
        env={"PATH": os.environ["PATH"], "HOME": str(cwd)} if env is None else env,
        input=said,
        capture_output=True,
        text=True,
        timeout=DEADLINE,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build(folder: Path, source: Path = ROOT) -> Path:
    """The wheel of the checkout, or of a copy of it."""
    run(sys.executable, "-c", BUILD, folder, cwd=source)
    (found,) = folder.glob("*.whl")
    return found


def interpreter(command: Path) -> tuple[str, ...]:
    """The words that the command's first line calls."""
    return tuple(command.read_text("utf-8").partition("\n")[0].removeprefix("#!").split())


def venv_alone(wheel: Path, home: Path) -> Path:
    """By the pip of the tests, without dependencies; it asks no index."""
    python = _venv(home)
    return _installed(python, "--no-index", "--no-deps", wheel, cwd=home)


def uv_alone(wheel: Path, home: Path) -> Path:
    """By uv, without dependencies; it asks no index."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    (home / "left_out.txt").write_text("\n".join(project["dependencies"]))
    return uv(wheel, home, "--offline", "--no-index", "--excludes", "left_out.txt")


def oldest_pip(wheel: Path, home: Path) -> Path:
    """By the oldest pip that a Python 3.11 brings along."""
    python = _venv(home)
    _installed(python, *OLDEST, cwd=home)
    run(python, "-m", "pip", "install", wheel, cwd=home, env=_with_index(home))
    return python.with_name("opencode-acp")


def pipx_over_pip(wheel: Path, home: Path) -> Path:
    """By pipx as it is where there is no uv."""
    return _pipx(wheel, home, "pip")


def pipx_over_uv(wheel: Path, home: Path) -> Path:
    """By pipx as it is where there is uv, told to compile."""
    return _pipx(wheel, home, "uv", UV_COMPILE_BYTECODE="1")


def uv(wheel: Path, home: Path, *flags: str) -> Path:
    """By uv, told to compile."""
    env = _with_index(home)
    of_us = ("--python", sys.executable, "--compile-bytecode")
    run(_beside("uv"), "tool", "install", *of_us, *flags, wheel, cwd=home, env=env)
    return home / "bin" / "opencode-acp"


def _pipx(wheel: Path, home: Path, backend: str, **more: str) -> Path:
    env = _with_index(home) | more
    of_us = ("--python", sys.executable, "--backend", backend)
    run(_beside("pipx"), "install", *of_us, wheel, cwd=home, env=env)
    return home / "bin" / "opencode-acp"


def _venv(home: Path) -> Path:
    """The Python of an environment without pip, since Debian's Python makes no other."""
    run(sys.executable, "-m", "venv", "--without-pip", "venv", cwd=home)
    return home / "venv" / "bin" / "python"


def _installed(python: Path, *words: str | Path, cwd: Path) -> Path:
    """Installs from outside of the environment; where our command is, or would be."""
    pip = (*_pip(), "--python", str(python), "install", "--disable-pip-version-check")
    run(*pip, *words, cwd=cwd, env=_with_index(cwd))
    return python.with_name("opencode-acp")


def _pip() -> tuple[str, ...]:
    # This environment may have been made without pip, as on Debian; then its own Python has it.
    python = sys.executable if find_spec("pip") else sys._base_executable  # type: ignore[attr-defined]
    return (python, "-m", "pip")


def _beside(name: str) -> Path:
    return Path(sys.executable).with_name(name)


def _with_index(home: Path) -> dict[str, str]:
    """The variables of whoever installs: the index is the one that pip is told of."""
    passed_on = {k: v for k, v in os.environ.items() if not k.startswith(NOT_PASSED_ON)}
    asked = [*_pip(), "config", "get", "global.index-url"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    index = os.environ.get("PIP_INDEX_URL") or done.stdout.strip()
    folders = {
        "PIPX_HOME": "pipx",
        "PIPX_BIN_DIR": "bin",
        "PIPX_MAN_DIR": "man",
        "PIPX_COMPLETION_DIR": "completion",
        "UV_TOOL_DIR": "tools",
        "UV_TOOL_BIN_DIR": "bin",
        "UV_CACHE_DIR": "cache",
    }
    ours = {name: str(home / folder) for name, folder in folders.items()}
    return ({"UV_DEFAULT_INDEX": index} if index else {}) | passed_on | ours
