"""One engine for one client on stdio, from the first answer to the exit."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import os
import signal
import time
from typing import NoReturn

import uvloop

from adapter import config
from adapter.acp.peer import Ending, Peer, PeerLimits
from adapter.acp.stdio import StdioTransport
from adapter.engine.connection import Connection
from adapter.engine.engine import Engine
from adapter.logs import set_up
from adapter.options import Opening
from adapter.settings.faults import strangers
from adapter.start import Start
from adapter.upstream.gasp import last_gasp

logger = logging.getLogger(__name__)


def run_stdio(start: Start, opening: Opening) -> NoReturn:
    """Serve the client until it leaves, and end the process with 0."""
    set_up(start.log_level or "warning", start.log_format, daemon=False)
    for sentence in strangers(os.environ):
        logger.warning("%s", sentence)
    uvloop.run(serve(config.settings(start), opening))
    # Whoever waits for the exit waits for nothing of value: everything is written.
    logging.shutdown()
    os._exit(0)


async def serve(settings: config.Settings, opening: Opening) -> None:
    """Serve the client of `opening` until it leaves, its turns stopped and everything written."""
    async with Engine(settings) as engine:
        connection = Connection(engine, opening.client)
        transport = StdioTransport(opening.source, opening.sink, opening.pending)
        limits = PeerLimits.of(connection.limits)
        peer = Peer(
            transport,
            connection,
            time.monotonic,
            limits,
            count=engine.counters.hit,
            inbound=engine.inbound,
        )
        connection.bind(peer)
        end_on_signals(peer)
        await peer.run()
        await peer.stop()
        interrupts, withdrawals = await connection.leave()
        feed = dataclasses.asdict(engine.feed.counters)
        engine.counters.log({f"feed.{name}": count for name, count in feed.items()})
        await last_gasp(
            settings.server,
            settings.credential,
            interrupts=interrupts,
            withdrawals=withdrawals,
            removals=engine.mcp.unheld(),
            ca_file=settings.http.ca_file,
        )
        await peer.aclose()


def end_on_signals(peer: Peer) -> None:
    """SIGTERM, SIGINT and SIGHUP end the connection as its client's EOF does.

    acpx sends SIGTERM 100 ms after the EOF, when a POST may still be on its way, and SIGKILL when
    that takes too long (acpx facts, section 5).
    """
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, peer.give_up, Ending.CLOSED)
