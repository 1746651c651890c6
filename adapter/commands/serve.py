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
from adapter.daemon.agreement import agreement
from adapter.daemon.daemon import Daemon, Terms
from adapter.daemon.listening import Listener, listen
from adapter.daemon.metrics import Metrics
from adapter.daemon.process import no_core_dumps, room_for_clients
from adapter.daemon.refusal import Refusal
from adapter.engine.engine import Engine
from adapter.flags import UsageError, check_server
from adapter.options import Options
from adapter.start import START_ERRORS, read_start
from adapter.upstream.credentials import FILE_VARIABLE
from adapter.upstream.gasp import last_gasp
from contract.attach import (
    ADMIN_VARIABLE,
    OK,
    SOCKET_VARIABLE,
    USAGE,
    admin_socket,
    default_socket,
)

ABOUT = "serve every client of this user through one socket"

logger = logging.getLogger(__name__)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--socket", metavar="PATH")
    parser.add_argument("--admin-socket", metavar="PATH")
    parser.add_argument("--server", metavar="URL")
    parser.add_argument("--password-file", metavar="FILE")
    parser.add_argument("--config", metavar="FILE")
    parser.add_argument("--log-level", metavar="LEVEL", default="info")


def run(given: argparse.Namespace) -> int:
    """Serve; an exit code of `contract.attach`. A start that cannot work ends with a sentence."""
    options = Options(given.server, given.password_file, given.config, given.log_level)
    try:
        if given.server is not None:
            check_server(given.server, "--server")
        start = read_start(options, os.environ)
    except (UsageError, *START_ERRORS) as error:
        sys.stderr.write(f"opencode-acp: {error}\n")
        return USAGE
    logging.basicConfig(
        level=options.log_level.upper(),
        stream=sys.stderr,
        format="opencode-acp: %(levelname)s %(name)s: %(message)s",
    )
    logging.getLogger("httpx").setLevel(logging.WARNING)
    settings = config.settings(start)
    try:
        sockets = passed(os.environ)
        listener = sockets.get(ACP) or listen(_path(given.socket))
        admin = sockets.get(ADMIN) or listen(_admin_path(given.admin_socket, listener.path))
    except Refusal as refusal:
        sys.stderr.write(f"opencode-acp: {refusal}\n")
        return refusal.code
    file = options.password_file or os.environ.get(FILE_VARIABLE)
    no_core_dumps()
    room = room_for_clients(settings.limits.connections)
    terms = Terms(room=room, differs=agreement(start, file))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(serve(settings, listener, admin, terms))


def _path(given: str | None) -> str:
    path = given or os.environ.get(SOCKET_VARIABLE)
    return path or default_socket(os.environ.get("XDG_RUNTIME_DIR", ""), os.getuid())


def _admin_path(given: str | None, socket: str) -> str:
    return given or os.environ.get(ADMIN_VARIABLE) or admin_socket(socket)


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
