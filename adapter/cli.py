"""The command `opencode-acp`: flags, the first answer, and only then the rest of the program."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from adapter.acp.descriptors import reserve_stdout
from adapter.acp.hello import greet
from adapter.flags import COMMANDS, UsageError, help_text, parse_flags
from adapter.options import Opening
from adapter.start import START_ERRORS, read_start
from contract.version import VERSION


def main(argv: Sequence[str] | None = None) -> int:
    """Run the agent until its client leaves; the exit code.

    0: the client left. 2: a fatal start condition, told in one sentence on stderr. 130:
    interrupted. An exception is a bug: its traceback goes to stderr and the code is 1.
    """
    arguments = sys.argv[1:] if argv is None else list(argv)
    if arguments and not arguments[0].startswith("-"):
        return _command(arguments)
    if "--help" in arguments or "-h" in arguments:
        sys.stdout.write(help_text())
        return 0
    if "--version" in arguments:
        sys.stdout.write(f"opencode-acp {VERSION}\n")
        return 0
    try:
        options = parse_flags(arguments)
        start = read_start(options, os.environ)
    except (UsageError, *START_ERRORS) as error:
        sys.stderr.write(f"opencode-acp: {error}\n")
        return 2
    sink = reserve_stdout()
    try:
        greeting = greet(0, sink, mcp=start.mcp == "register")
        if greeting is None:
            return 0
        from adapter.acp.departure import end_with_client

        served = end_with_client(0)
        from adapter.run import run_stdio

        served()
        client, pending = greeting
        run_stdio(start, Opening(client, pending, source=0, sink=sink))
    except BrokenPipeError:
        return 0
    except KeyboardInterrupt:
        return 130


def _command(arguments: list[str]) -> int:
    """Run a subcommand; argparse ends the process itself with 2 for one that makes no sense."""
    from adapter.commands.parser import parser

    # One command is imported, all of them only to say which there are.
    names = [arguments[0]] if arguments[0] in COMMANDS else COMMANDS
    given = parser(names).parse_args(arguments)
    code: int = given.run(given)
    return code


if __name__ == "__main__":
    sys.exit(main())
