"""`opencode-acp completion`: what a shell needs in order to complete commands, flags and words."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Iterator, Mapping
from typing import Final

import shtab

from adapter.settings.table import Kind
from contract.attach import OK

SHELLS: Final = ("bash", "zsh", "fish")
COMPLETED: Final[Mapping[str, object]] = {
    Kind.PATH.value: shtab.FILE,
    "FILE": shtab.FILE,
    "DIR": shtab.DIRECTORY,
}
"""What a shell looks for, by the word of the help."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS)


def run(given: argparse.Namespace) -> int:
    """Print the script; to be evaluated by the shell, or put where it looks for completions."""
    # The parser imports every command, and so this one.
    whole = importlib.import_module("adapter.commands.parser").parser()
    for action in _actions(whole):
        if action.metavar in COMPLETED:
            action.complete = COMPLETED[str(action.metavar)]  # type: ignore[attr-defined]
    sys.stdout.write(shtab.complete(whole, shell=given.shell) + "\n")
    return OK


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for one in action.choices.values():
                yield from _actions(one)
