"""`python tests/support/impatient.py FLAGS`: the agent with short deadlines.

The settings that nobody turns on a command line are as short here as a test can wait.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from unittest import mock

import uvloop

from adapter import cli, config
from adapter.acp.descriptors import reserve_stdout
from adapter.acp.hello import greet
from adapter.flags import parse_flags
from adapter.options import Opening
from adapter.run import serve

SILENCE = 1.0
LONGEST_PAUSE = 0.2
GAP_VARIABLE = "IMPATIENT_GAP"
GAP = 2.0
RECONNECTING = 0.5
UNATTENDED = 1.0


def impatient(settings: config.Settings) -> config.Settings:
    """The settings with short deadlines."""
    gap = float(os.environ.get(GAP_VARIABLE, GAP))
    return replace(
        settings,
        waits=replace(settings.waits, gap=gap, reconnecting=RECONNECTING, unattended=UNATTENDED),
        feed=replace(settings.feed, silence=SILENCE, longest_pause=LONGEST_PAUSE),
        admission_unreachable=gap,
    )


def main() -> int:
    """As `adapter.cli`, but for the settings; `serve` as the first word is the daemon likewise."""
    if sys.argv[1:2] == ["serve"]:
        ordinary = config.settings
        with mock.patch.object(config, "settings", lambda start: impatient(ordinary(start))):
            return cli.main(sys.argv[1:])
    options = parse_flags(sys.argv[1:])
    sink = reserve_stdout()
    settings = config.load(options, os.environ)
    greeting = greet(0, sink, mcp=settings.mcp.policy == "register")
    if greeting is not None:
        client, pending = greeting
        uvloop.run(serve(impatient(settings), Opening(client, pending, source=0, sink=sink)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
