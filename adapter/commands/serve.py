"""`opencode-acp serve`: the daemon, until it is told to stop."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys

import uvloop

from adapter import config
from adapter.daemon.activation import ACP, ADMIN, passed
from adapter.daemon.admin.service import Admin
from adapter.daemon.daemon import Daemon, Terms
from adapter.daemon.listening import Listener, listen
from adapter.daemon.metrics import Metrics
from adapter.daemon.process import no_core_dumps, room_for_clients
from adapter.daemon.refusal import Refusal
from adapter.engine.engine import Engine
from adapter.settings.agreement import differing
from adapter.settings.arguments import add_settings, options
from adapter.settings.table import SETTINGS
from adapter.start import START_ERRORS, read_start
from adapter.upstream.gasp import last_gasp
from contract.attach import OK, USAGE

ABOUT = "serve every client of this user through one socket"

logger = logging.getLogger(__name__)


def arguments(parser: argparse.ArgumentParser) -> None:
    add_settings(parser, (one.name for one in SETTINGS if one.name != "daemon"))


def run(given: argparse.Namespace) -> int:
    """Serve; an exit code of `contract.attach`. A start that cannot work ends with a sentence."""
    try:
        start = read_start(options(given), os.environ)
    except START_ERRORS as error:
        sys.stderr.write(f"opencode-acp: {error}\n")
        return USAGE
    logging.basicConfig(
        level=(start.log_level or "info").upper(),
        stream=sys.stderr,
        format="opencode-acp: %(levelname)s %(name)s: %(message)s",
    )
    logging.getLogger("httpx").setLevel(logging.WARNING)
    settings = config.settings(start)
    try:
        sockets = passed(os.environ)
        listener = sockets.get(ACP) or listen(start.socket)
        admin = sockets.get(ADMIN) or listen(start.admin_socket)
    except Refusal as refusal:
        sys.stderr.write(f"opencode-acp: {refusal}\n")
        return refusal.code
    no_core_dumps()
    room = room_for_clients(settings.limits.connections)
    uids = start.allowed_uids
    terms = Terms(
        room=room,
        allowed_uids=uids if uids is not None else frozenset({os.getuid()}),
        differs=lambda hello: differing(start, hello.settings, hello.cwd),
    )
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(serve(settings, listener, admin, terms))


async def serve(
    settings: config.Settings, listener: Listener, admin: Listener, terms: Terms
) -> int:
    """One engine and one daemon on it, until a signal ends it."""
    metrics = Metrics()
    async with Engine(settings, observer=metrics) as engine:
        async with (
            Daemon(engine, listener, terms) as daemon,
            Admin(daemon, metrics, admin),
        ):
            stop = asyncio.Event()
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, stop.set)
            logger.info("listening at %s", listener.path)
            await stop.wait()
            await daemon.drain(20.0)
        await last_gasp(settings.server, settings.credential, removals=engine.mcp.unheld())
    return OK
