"""Completions, and that help, parser and completion know the same commands and flags."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from adapter import flags
from adapter.commands.completion import SHELLS
from adapter.commands.parser import COMMANDS, parser
from adapter.settings.table import SETTINGS


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


def test_the_help_tells_of_each_command_what_it_says_itself() -> None:
    told = dict(flags.COMMANDS)
    own = {name: importlib.import_module(f"adapter.commands.{name}").ABOUT for name in COMMANDS}
    assert told == own


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        parser([name]).parse_args([name, "--help"])
    assert f"opencode-acp {name}" in capsys.readouterr().out
