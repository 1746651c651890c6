"""`opencode-acp serve`: the daemon, until it is told to stop.

Exit codes (O-05): 0 told to stop, 2 usage or configuration, 3 the server refuses the password,
4 the server lacks what the adapter needs, 75 another daemon serves the socket, 130 a second signal.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys

import uvloop

from adapter.daemon import ending
from adapter.daemon.activation import ACP, ADMIN, passed
from adapter.daemon.admin.service import Admin
from adapter.daemon.check import check
from adapter.daemon.daemon import Daemon
from adapter.daemon.lifecycle import Lifecycle, Signals
from adapter.daemon.listening import Listener, listen
from adapter.daemon.metrics import Metrics
from adapter.daemon.notify import Manager
from adapter.daemon.process import keep_memory, load_no_authorities
from adapter.daemon.refusal import Refusal
from adapter.daemon.reload import Configuration
from adapter.daemon.watchdog import interval
from adapter.engine.engine import Engine
from adapter.logs import set_up
from adapter.settings.arguments import add_settings, options
from adapter.settings.faults import strangers
from adapter.settings.table import SETTINGS
from adapter.start import START_ERRORS
from adapter.upstream.gasp import last_gasp
from contract.attach import INTERRUPTED, OK, TEMPORARY, USAGE

logger = logging.getLogger(__name__)


def arguments(parser: argparse.ArgumentParser) -> None:
    add_settings(parser, (one.name for one in SETTINGS if one.name != "daemon"))


def run(given: argparse.Namespace) -> int:
    """Serve; an exit code of `contract.attach`. A start that cannot work ends with a sentence."""
    # Before the password is read.
    keep_memory()
    try:
        configuration = Configuration(options(given), os.environ)
    except START_ERRORS as error:
        sys.stderr.write(f"opencode-acp: {error}\n")
        return USAGE
    if not configuration.settings.server.startswith("https:"):
        load_no_authorities()
    set_up(configuration.log_level, configuration.start.log_format, daemon=True)
    for sentence in strangers(os.environ):
        logger.warning("%s", sentence)
    manager = Manager.of(os.environ)
    listeners: list[Listener] = []
    try:
        sockets = passed(os.environ)
        listener = sockets.get(ACP) or listen(configuration.start.socket)
        listeners.append(listener)
        admin = sockets.get(ADMIN) or listen(configuration.start.admin_socket)
        listeners.append(admin)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serve(configuration, listener, admin, manager))
    except Refusal as refusal:
        sys.stderr.write(f"opencode-acp: {refusal}\n")
        return refusal.code
    finally:
        for listener in listeners:
            listener.close()
        manager.close()
    return OK


async def serve(
    configuration: Configuration, listener: Listener, admin: Listener, manager: Manager
) -> None:
    """One engine and one daemon on it, until a signal ends it. Raises Refusal before it is ready.

    A signal that comes earlier is heard once the daemon is ready.
    """

    def abandon() -> None:
        listener.close(Refusal(TEMPORARY, ending.sentence(listener.path)).line())
        admin.close()
        logging.shutdown()
        os._exit(INTERRUPTED)

    signals = Signals(abandon)
    signals.listen()
    metrics = Metrics()
    async with Engine(configuration.settings, observer=metrics) as engine:
        await check(engine)
        # The clients' socket is given up last: whoever finds it free finds the other free, too.
        async with (
            Daemon(engine, listener, configuration.terms()) as daemon,
            Admin(daemon, metrics, admin),
        ):
            logger.info("listening at %s", listener.path)
            seconds = interval(os.environ, os.getpid())
            await Lifecycle(daemon, configuration, manager, signals, seconds).run()
        settings = engine.settings
        await last_gasp(
            settings.server,
            settings.credential,
            removals=engine.mcp.unheld(),
            ca_file=settings.http.ca_file,
        )
