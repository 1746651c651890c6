"""What stands at the two edges: lines of clients and of the feed, requests, and the daemon."""

from __future__ import annotations

from typing import Final

from adapter.acp.framing import INBOUND_LIMIT
from adapter.acp.outbox import COALESCE, HARD_FACTOR
from adapter.acp.peer import PeerLimits
from adapter.daemon.admin.service import CONNECTIONS
from adapter.daemon.process import ARRIVING
from adapter.limits import DEFAULTS
from adapter.upstream.catalogue import MAX_DIRECTORIES
from adapter.upstream.lines import LINE_LIMIT
from adapter.upstream.recent import KEPT
from adapter.upstream.watch import LIMIT
from contract.attach import HELLO_BYTES
from tests.inventory.kept import NEVER, Kept

PEER: Final = PeerLimits()
CLOSE: Final = "the end of the connection"
DONE: Final = "the end of the task"
WRITTEN: Final = f"what is written at once, {COALESCE} bytes or one line"

OF_EDGES: Final = (
    Kept(
        "acp.framing.LineBuffer._head",
        "the bytes of a line that has no end yet",
        f"`inbound_line_bytes`, {INBOUND_LIMIT}",
        "the line is dropped and answered with -32600",
        "the end of the line",
    ),
    Kept(
        "acp.inbound.Inbound._lines",
        "a line of a client that has no end yet",
        f"one for each connection; together `inbound_bytes`, {DEFAULTS.inbound_bytes} bytes",
        "the longest is dropped and answered with -32600",
        "the end of the line, and that of the connection",
    ),
    Kept(
        "acp.transport.Call.params",
        "a parameter of one request, by its name",
        f"the line that it came in; those of all clients `inbound_bytes`, {DEFAULTS.inbound_bytes}",
        "the request is answered with -32053",
        "the handler has read them, and the answer",
    ),
    Kept(
        "acp.outbox.Outbox._lines",
        "a line that the client has not taken, in the order of the wire",
        f"{PEER.outbox} bytes, {HARD_FACTOR} times that for writers that do not look",
        "updates wait in the backlog; past the second one the client counts as one that left",
        "the client takes it, and the end of the connection",
    ),
    Kept(
        "acp.peer.Peer._running",
        "a request of the client, by its id",
        f"{PEER.calls}",
        "one more is answered with -32053",
        "its answer",
    ),
    Kept(
        "acp.peer.Peer._asks",
        "a request to the client, by its id",
        f"{PEER.asks}",
        "one more counts as not answered",
        "the answer, the withdrawal, and the end of the connection",
    ),
    Kept(
        "acp.stdio.StdioTransport._unwritten",
        "bytes that the descriptor has not taken",
        WRITTEN,
        "the writer waits",
        "the client takes them, and the end of the connection",
    ),
    Kept(
        "upstream.watch.Watch._ids",
        "a session whose events are wanted, by its id",
        f"{LIMIT}",
        "a descendant is not followed; a session is refused with -32053",
        "the end of the hub, and the child's when it is let go of",
    ),
    Kept(
        "upstream.recent.Recent._ids",
        "an event that went by, by its id",
        f"{KEPT}",
        "the oldest goes",
        "newer ones",
    ),
    Kept(
        "upstream.lines.Splitter._pending",
        "the bytes of a line of the feed that has no end yet",
        f"{LINE_LIMIT} bytes and one chunk",
        "the line is dropped, and is a gap if it may be of a session of ours",
        "the end of the line, and of the feed's connection",
    ),
    Kept(
        "upstream.catalogue.Catalogues._kept",
        "the catalogue of a directory, by its path",
        f"{MAX_DIRECTORIES}",
        "the one used least lately goes, and is read again when it is needed",
        "a change that the server tells of, and each connection of the feed",
    ),
    Kept(
        "upstream.catalogue.Catalogues._last",
        "what was last known of a directory, by its path",
        f"{MAX_DIRECTORIES}",
        "the one read least lately goes",
        "newer ones",
    ),
    Kept(
        "upstream.catalogue.Catalogues._loads",
        "the reading of a catalogue, by its directory",
        "the directories that requests and sessions of clients wait for",
        "they share one",
        "its end, and a change that the server tells of",
    ),
    Kept(
        "upstream.catalogue.Catalogues._running",
        "the reading of a catalogue",
        "the loads, and those that a change came after",
        "each has a deadline",
        DONE,
    ),
    Kept(
        "daemon.daemon.Daemon._served",
        "a client, by its number",
        "`connections`, and what there are descriptors for",
        "one more is sent away with exit code 75",
        "the end of its connection",
    ),
    Kept(
        "daemon.daemon.Daemon._serving",
        "the task that serves a client",
        "the clients",
        "one more is sent away with exit code 75",
        DONE,
    ),
    Kept(
        "daemon.daemon.Daemon._leaving",
        "the task that puts in order what a client has left",
        "`connections`",
        "a client that comes is sent away with exit code 75",
        DONE,
    ),
    Kept(
        "daemon.daemon.Daemon._arriving",
        "the task that hears a client's hello",
        f"{ARRIVING}, less where there are not descriptors enough",
        "as those who say nothing",
        "the hello, or the end of its seconds",
    ),
    Kept(
        "daemon.arrivals.Arrivals._waiting",
        "a client that has said nothing so far, by its connection: who it is",
        f"{ARRIVING}, less where there are not descriptors enough",
        "the first of the process that has most, of the user who has most, is sent away",
        "the hello, or the end of its seconds",
    ),
    Kept(
        "daemon.daemon.Daemon._closing",
        "the end of the daemon",
        "one",
        "whoever closes it again waits for that",
        DONE,
    ),
    Kept(
        "daemon.link.Link._unwritten",
        "bytes that the socket has not taken",
        WRITTEN,
        "the writer waits",
        "the client takes them, and the end of the connection",
    ),
    Kept(
        "daemon.link.Link._pending",
        "bytes behind a hello, which are read next",
        f"{HELLO_BYTES} and one chunk",
        NEVER,
        "the first reading of the client's lines",
    ),
    Kept(
        "daemon.door.Door._looks",
        "the task that looks after the socket's place",
        "one",
        NEVER,
        "the end of the door",
    ),
    Kept(
        "daemon.lifecycle.Lifecycle._tasks",
        "the task that tells the service manager, and the watchdog's",
        "two",
        NEVER,
        "the end of the daemon",
    ),
    Kept(
        "daemon.metrics.Metrics.events",
        "a type of events: how many were heard",
        "the types that the adapter knows",
        "others are counted together",
        "never: it counts",
    ),
    Kept(
        "daemon.metrics.Metrics.registry",
        "a metric, by its name and the values of its labels",
        "values that are known beforehand",
        "another value is counted as `other`",
        "never: it counts",
    ),
    Kept(
        "daemon.admin.service.Admin._open",
        "a connection of the admin socket",
        f"{CONNECTIONS}",
        "the oldest is closed",
        "its end, noticed when the next one comes",
    ),
    Kept(
        "daemon.admin.service.Admin._arriving",
        "the task that hands a connection to the HTTP server",
        f"{CONNECTIONS}",
        "one more is closed",
        DONE,
    ),
    Kept(
        "daemon.admin.service.Admin._tasks",
        "the lag of the loop, and the load of the HTTP server",
        "two",
        NEVER,
        "the end of the daemon",
    ),
    Kept(
        "daemon.admin.readiness.Look._tasks",
        "a look at the server",
        "one",
        "those who ask meanwhile share it",
        DONE,
    ),
)
