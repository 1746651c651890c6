"""`python tests/support/impatient.py FLAGS`: the agent with short deadlines.

The settings that nobody turns on a command line are as short here as a test can wait.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace

import uvloop

from adapter import config
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


def main() -> None:
    """As `adapter.cli`, but for the settings."""
    options = parse_flags(sys.argv[1:])
    sink = reserve_stdout()
    settings = config.load(options, os.environ)
    greeting = greet(0, sink, mcp=settings.mcp.policy == "register")
    if greeting is None:
        return
    gap = float(os.environ.get(GAP_VARIABLE, GAP))
    settings = replace(
        settings,
        waits=replace(settings.waits, gap=gap, reconnecting=RECONNECTING, unattended=UNATTENDED),
        feed=replace(settings.feed, silence=SILENCE, longest_pause=LONGEST_PAUSE),
        admission_unreachable=gap,
    )
    client, pending = greeting
    uvloop.run(serve(settings, Opening(client, pending, source=0, sink=sink)))


if __name__ == "__main__":
    main()
