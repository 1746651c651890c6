"""The whole command line for argparse: what the agent takes, and every subcommand.

Only a subcommand, the help and the completion pay for this module; the agent reads its flags by
hand (`adapter.flags`).
"""

from __future__ import annotations

import argparse
import importlib
from typing import Final

COMMANDS: Final[tuple[str, ...]] = ("serve", "status", "sessions")
"""Modules of `adapter.commands`, in the order of the help."""


def parser() -> argparse.ArgumentParser:
    """The parser; the namespace's `run` is the function of the chosen subcommand."""
    top = argparse.ArgumentParser(prog="opencode-acp", allow_abbrev=False)
    commands = top.add_subparsers(title="commands", metavar="COMMAND")
    for name in COMMANDS:
        module = importlib.import_module(f"adapter.commands.{name}")
        command = commands.add_parser(
            name, help=module.ABOUT, description=module.ABOUT, allow_abbrev=False
        )
        module.arguments(command)
        command.set_defaults(run=module.run)
    return top
