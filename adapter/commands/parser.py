"""The whole command line for argparse: what the agent takes, and every subcommand.

Only a subcommand, the help and the completion pay for this module; the agent reads its flags by
hand (`adapter.flags`).
"""

from __future__ import annotations

import argparse
import importlib
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from adapter.flags import COMMANDS
from adapter.settings.arguments import add_settings
from adapter.settings.nearness import hint
from adapter.settings.table import BY_NAME

NAME: Final = "opencode-acp"
USAGE: Final = f"{NAME} [FLAG ...]\n       {NAME} COMMAND [FLAG ...]"
"""A flag that stands before a command is the agent's."""


class Parser(argparse.ArgumentParser):
    """Tells what a flag that it does not know was most likely meant for.

    A subcommand is asked before its parent, whose flags are not its own.
    """

    def parse_known_args(  # type: ignore[override]  # its overloads tell one namespace from another
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        given, strangers = super().parse_known_args(args, namespace)
        if strangers:
            flag = strangers[0].partition("=")[0]
            found = hint(flag, re.findall(r"--[a-z-]+", self.format_usage()))
            self.error(f"unrecognized arguments: {' '.join(strangers)}{found}")
        return given, strangers


def parser(names: Iterable[str] = COMMANDS) -> argparse.ArgumentParser:
    """The parser with these commands, whose modules are imported for it.

    The namespace's `run` is the function of the chosen one.
    """
    top = Parser(prog=NAME, usage=USAGE, allow_abbrev=False)
    top.add_argument("--version", action="store_true", help="print the version")
    top.add_argument("--no-daemon", action="store_true", help="the same as --daemon never")
    add_settings(top, BY_NAME)
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True, prog=NAME)
    for name in names:
        module = importlib.import_module(f"adapter.commands.{name}")
        about = COMMANDS[name]
        command = commands.add_parser(name, help=about, description=about, allow_abbrev=False)
        module.arguments(command)
        command.set_defaults(run=module.run)
    return top
