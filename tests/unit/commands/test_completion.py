"""Completions, and that help, parser and completion know the same commands and flags."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

import adapter.commands
from adapter.commands.completion import SHELLS
from adapter.commands.parser import parser
from adapter.flags import COMMANDS, help_text
from adapter.settings.table import SETTINGS
from stubs.parts import ROOT

README: Final = ROOT / "README.md"


@pytest.mark.parametrize("shell", SHELLS)
def test_a_completion_has_every_command_and_flag(shell: str) -> None:
    argv = [sys.executable, "-m", "adapter.cli", "completion", shell]
    script = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=True).stdout
    for word in (*COMMANDS, *(setting.flag.removeprefix("--") for setting in SETTINGS)):
        assert word in script


def test_bash_can_read_its_own() -> None:
    argv = [sys.executable, "-m", "adapter.cli", "completion", "bash"]
    script = subprocess.run(argv, capture_output=True, timeout=30, check=True).stdout
    subprocess.run(["bash", "-n"], input=script, timeout=30, check=True)


def completed(words: str, directory: Path) -> set[str]:
    """What bash offers in that directory behind these words, with the line that README tells."""
    (line,) = re.findall(r"^\| bash \| `(.+)` \|$", README.read_text("utf-8"), re.M)
    script = f"""{line}
        read -r _ _ _ _ function _ <<< "$(complete -p opencode-acp)"
        COMP_WORDS=({words} '') COMP_CWORD=$(set -- {words}; echo $#)
        $function
        printf '%s\\n' "${{COMPREPLY[@]%/}}"
    """
    env = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=directory,
        env=env,
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert not done.stderr
    return set(done.stdout.split())


def test_a_directory_is_completed_by_directories_alone(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "password").touch()
    assert completed("opencode-acp doctor --cwd", tmp_path) == {"project"}
    both = {"project", "password"}
    assert completed("opencode-acp serve --password-file", tmp_path) == both


def test_the_help_tells_of_each_command_what_it_says_itself() -> None:
    everything = " ".join(parser().format_help().split())
    for name, about in COMMANDS.items():
        assert f"{name} {about}" in " ".join(help_text().split())
        assert f"{name} {about}" in everything


def test_every_module_that_runs_is_a_command() -> None:
    folder = Path(adapter.commands.__file__).parent
    modules = [
        importlib.import_module(f"adapter.commands.{one.stem}") for one in folder.glob("*.py")
    ]
    runs = {one.__name__.rpartition(".")[2] for one in modules if hasattr(one, "run")}
    assert runs == set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        parser([name]).parse_args([name, "--help"])
    told = " ".join(capsys.readouterr().out.split())
    assert f"opencode-acp {name}" in told
    assert COMMANDS[name] in told
