"""`opencode-acp completion`: what a shell needs in order to complete commands, flags and words."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Iterator
from typing import Final

import shtab

from adapter.settings.table import BY_NAME, Kind
from contract.attach import OK

ABOUT = "print a completion for bash, zsh or fish"

SHELLS: Final = ("bash", "zsh", "fish")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS)


def run(given: argparse.Namespace) -> int:
    """Print the script; to be evaluated by the shell, or put where it looks for completions."""
    # The parser imports every command, and so this one.
    whole = importlib.import_module("adapter.commands.parser").parser()
    for action in _actions(whole):
        setting = BY_NAME.get(action.dest)
        if setting is not None and setting.kind is Kind.PATH:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    sys.stdout.write(shtab.complete(whole, shell=given.shell) + "\n")
    return OK


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for one in action.choices.values():
                yield from _actions(one)
