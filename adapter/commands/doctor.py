"""`opencode-acp doctor`: what stands between a client and an answer."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
from typing import Final

from adapter.doctor.examine import examine
from adapter.doctor.findings import exit_code
from adapter.doctor.report import agent_argv, as_json, screen
from adapter.settings.arguments import add_settings, options
from adapter.settings.table import BY_NAME
from contract.attach import INTERRUPTED

NAME: Final = "opencode-acp"


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--cwd", metavar="DIR", default=".", help="the project to ask for; the server opens it"
    )
    add_settings(parser, BY_NAME)


def run(given: argparse.Namespace) -> int:
    """The exit code of the worst finding: 0, 2 settings, 3 password, 4 server's API, 75 other."""
    # What the looks log is what the findings say.
    logging.basicConfig(level=logging.CRITICAL)
    said = options(given)
    try:
        findings = asyncio.run(examine(said, os.environ, os.path.abspath(given.cwd)))
    except KeyboardInterrupt:
        return INTERRUPTED
    argv = agent_argv(_command(), said, os.environ, os.getcwd())
    show = as_json if given.json else screen
    sys.stdout.write(show(findings, argv))
    return exit_code(findings)


def _command() -> str:
    """This very program, by a path that holds wherever acpx is started."""
    own = os.path.abspath(sys.argv[0])
    beside = os.path.join(os.path.dirname(sys.executable), NAME)
    paths = (path for path in (own, beside) if os.path.basename(path) == NAME)
    return next(filter(os.path.isfile, paths), NAME)
