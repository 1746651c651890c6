"""What a daemon is at, read from it at one moment: no text, no secret, nothing that grows."""

from __future__ import annotations

import os
from collections import defaultdict
from typing import Final

from adapter.daemon.admin.shapes import (
    AttachmentState,
    ClientState,
    FeedState,
    ServerState,
    SessionState,
    State,
    TurnState,
)
from adapter.daemon.clients import Client
from adapter.daemon.daemon import Daemon
from adapter.engine.engine import Engine
from adapter.engine.hub import Hub
from contract.version import VERSION

TEXT: Final = 4096
"""Characters of a path or a name that are shown."""


def state(daemon: Daemon, since: float) -> State:
    """The state now; `since` is when the daemon began, on its engine's clock."""
    engine = daemon.engine
    now = engine.clock()
    version, pid = engine.server_seen
    left = daemon.drain_seconds
    counted = {what.value: times for what, times in engine.counters.hits.items() if times}
    return State(
        version=VERSION,
        pid=os.getpid(),
        state=daemon.state.value,
        seconds=_seconds(now - since),
        drain_seconds=None if left is None else _seconds(left),
        server=ServerState(url=engine.server.base_url, version=_short(version), pid=pid),
        feed=_feed(engine, now),
        tables=engine.tables() | daemon.tables(),
        counted=counted,
        clients=tuple(_client(one, now) for one in daemon.clients),
        sessions=_sessions(daemon),
    )


def _feed(engine: Engine, now: float) -> FeedState:
    feed, counters = engine.feed, engine.feed.counters
    last = feed.last_byte
    return FeedState(
        connected=feed.is_connected,
        generation=counters.connections,
        losses=counters.losses,
        silent_seconds=None if last is None else _seconds(now - last),
        events=counters.events,
        skipped=counters.skipped,
        heartbeats=counters.heartbeats,
        oversize=counters.oversize,
        repeated=counters.repeated,
        unknown=counters.unknown,
        malformed=counters.malformed,
    )


def _client(client: Client, now: float) -> ClientState:
    hello = client.hello
    return ClientState(
        number=client.number,
        pid=client.credentials.pid,
        parent=hello.client_pid,
        uid=client.credentials.uid,
        name=_short(client.name),
        version=_short(hello.version),
        cwd=_short(hello.cwd),
        seconds=_seconds(now - client.since),
        turns=client.turns,
        queue=client.queued,
        holds=client.holds,
        owed=client.owed,
        bytes=client.queued_bytes,
        calls=client.calls,
        sessions=len(client.open_sessions),
    )


def _sessions(daemon: Daemon) -> tuple[SessionState, ...]:
    """What any client has open, and what is not let go of yet."""
    attached: defaultdict[str, list[AttachmentState]] = defaultdict(list)
    for client in daemon.clients:
        for session_id, owner in client.owners.items():
            attached[session_id].append(AttachmentState(client=client.number, generation=owner))
    hubs = {hub.session_id: hub for hub in daemon.engine.hubs}
    return tuple(
        _session(hubs[session_id], attached[session_id])
        if session_id in hubs
        else SessionState(id=session_id, aside=True, attachments=tuple(attached[session_id]))
        for session_id in sorted({*hubs, *attached})
    )


def _session(hub: Hub, attached: list[AttachmentState]) -> SessionState:
    core = hub.core
    turns = (turn for turn in map(core.turn, core.turn_ids) if turn is not None)
    return SessionState(
        id=hub.session_id,
        directory=_short(hub.directory),
        attachments=tuple(attached),
        turns=tuple(
            TurnState(
                generation=turn.owner,
                phase=turn.phase.value,
                cancel=turn.cancel.value,
                gaps=turn.gaps,
                call=turn.call,
            )
            for turn in turns
        ),
        gap=core.in_gap,
        timers=tuple(hub.timers),
        buffered=hub.buffered,
        children=len(core.children),
        bytes_beside=core.beside_bytes,
        owes=hub.owes,
        tables=core.tables(),
    )


def _seconds(value: float) -> float:
    return round(max(value, 0.0), 3)


def _short(text: str) -> str:
    """What a client says may hold what is no Unicode, and more than anybody wants to see."""
    return text[:TEXT].encode("utf-8", "replace").decode()
