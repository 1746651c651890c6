"""What an engine keeps for its clients and sessions."""

from __future__ import annotations

from typing import Final

from adapter.core.asks import KNOWN_BOUND
from adapter.core.state import LOOSE_BOUND
from adapter.engine.backlog import CHARACTERS as OWED
from adapter.engine.backlog import ENTRIES
from adapter.engine.mcp import LEFT
from adapter.engine.past import PROMPTS, READINGS
from adapter.engine.recorder import BYTES, PINNED
from adapter.engine.repeats import CALLS
from adapter.engine.window import CHARACTERS, EVENTS
from contract.limits import MCP_SERVERS
from tests.inventory.kept import NEVER, Kept

OLDEST: Final = "the oldest goes"
OPEN: Final = "`sessions_per_connection`, with those put aside and those that end"
REFUSED: Final = "a session is refused with -32053"
SETTLED: Final = "the end of the turn"
DONE: Final = "the end of the task"

OF_ENGINE: Final = (
    Kept(
        "engine.engine.Engine._hubs",
        "an open session, by its id",
        "`sessions`",
        "one that is idle is put aside, or a session is refused with -32053",
        "the last close, the idle time, and the end of a client, once the server is owed nothing",
    ),
    Kept(
        "engine.engine.Engine._releases",
        "the wait of a session that nobody has open and that owes something, by its id",
        "the hubs",
        "a later wait takes the place of the earlier one",
        "the end of the hub",
    ),
    Kept(
        "engine.engine.Engine._tasks",
        "the feed, a look at the server, a wait or the end of a session",
        "one, one for each connection of the feed and each reload, and two for each hub",
        "a look and a wait have deadlines of their own",
        DONE,
    ),
    Kept(
        "engine.engine.Engine.offsets",
        "a part of an answer of a turn, by (session, part)",
        "the parts of the turns: `turn_context_bytes` each",
        "messages that are over are folded",
        SETTLED,
    ),
    Kept(
        "engine.routecheck.RouteCheck._running",
        "a reading of the routes that the server has",
        "one for each process of the server that was seen within its deadline",
        "those who want to know share the newest",
        DONE,
    ),
    Kept(
        "engine.following.Following._roots",
        "a session whose events are heard, by its id: its root",
        "the hubs and their children, and what the feed's filter takes",
        "a descendant is not followed; a session is refused with -32053",
        "the end of the hub, and the child's when it is let go of",
    ),
    Kept(
        "engine.idle.Places._places",
        "an attachment, by its owner, the one used last at the end",
        "the attachments that are not put aside",
        NEVER,
        "the close of its session, the idle time, and the end of its client",
    ),
    Kept(
        "engine.counters.Counters._hits",
        "a limit or an oddity: how often",
        "those that there are",
        NEVER,
        "never: it counts",
    ),
    Kept(
        "engine.counters.Counters._omitted",
        "a limit: what it kept from clients",
        "those that there are",
        NEVER,
        "never: it counts",
    ),
    Kept(
        "engine.pace.Pace._taken",
        "a moment at which something happened",
        "the times that are allowed: `session_creates` of a connection, the flights of an engine",
        "it may not happen now",
        "the end of its seconds, looked at with the next one",
    ),
    Kept(
        "engine.tasks.Tasks._running",
        "a task of one owner",
        "as its owner says: each attribute of this kind has a row",
        "as its owner says",
        DONE,
    ),
    # A connection.
    Kept(
        "engine.sessions.OpenSessions._open",
        "an opening, by the session's id",
        OPEN,
        REFUSED,
        "a close or a deletion, the idle time, and the end of the client",
    ),
    Kept(
        "engine.sessions.OpenSessions._aside",
        "a session that is put aside, by its id",
        OPEN,
        REFUSED,
        "its next request, a close or a deletion, and the end of the client",
    ),
    Kept(
        "engine.sessions.OpenSessions._ending",
        "what is being closed or deleted, by its owner",
        OPEN,
        REFUSED,
        "the end of that request",
    ),
    Kept(
        "engine.backlog.Backlog._queues",
        "what a session is owed, by its id",
        "the sessions of the connection",
        NEVER,
        "its last entry is paid, and the end of the client",
    ),
    Kept(
        "engine.backlog.Backlog._drains",
        "the task that pays a session, by its id",
        "the queues",
        NEVER,
        DONE,
    ),
    Kept(
        "engine.backlog.Backlog._holds",
        "the last load of a session, by its id",
        "the sessions of the connection",
        NEVER,
        "the end of the load, however it ends",
    ),
    Kept(
        "engine.owed.Queue.entries",
        "an update or the place of a text, by what replaces it",
        f"{ENTRIES} and {OWED} characters of one connection",
        "the client counts as one that left",
        "the client takes it, a load shows it, and the end of the client",
    ),
    # A session.
    Kept(
        "engine.hub.Hub._attachments",
        "an attachment, by its owner",
        "one for each connection of the daemon, `connections`",
        "a client is sent away",
        "the close of the session there, the idle time, and the end of the client",
    ),
    Kept(
        "engine.hub.Hub._tasks",
        "a request that the core asked for, or a reading of the choices",
        f"those of the turns, of {LOOSE_BOUND} cancels, of {KNOWN_BOUND} asks, and one reading "
        "for each connection of the feed",
        "each has the deadline of its request",
        DONE,
    ),
    Kept(
        "engine.flights.Flights._answers",
        "the answer of a turn, by the turn's id",
        "the turns",
        NEVER,
        SETTLED,
    ),
    Kept(
        "engine.flights.Flights._submitting",
        "the task that sends a prompt, by the turn's id",
        "the turns",
        NEVER,
        "the definite answer, or the end of the turn",
    ),
    Kept(
        "engine.flights.Flights.tasks",
        "the task that sends a prompt",
        "the turns, and those that were settled and have not noticed yet",
        NEVER,
        DONE,
    ),
    Kept(
        "engine.asking.Asking._open",
        "the task that asks the client, by the ask's id",
        "`open_asks`",
        "an ask is declined by the core",
        "the client's answer, the withdrawal, and the end of the session",
    ),
    Kept(
        "engine.asking.Asking.tasks",
        "the task that asks a client",
        "`open_asks`, and those that were withdrawn and have not noticed yet",
        "an ask is declined by the core",
        DONE,
    ),
    Kept(
        "engine.timers.Timers._handles",
        "a timer, by its name and what it is of",
        f"eight of the session, four for each turn, two for each of {KNOWN_BOUND} asks",
        NEVER,
        "it fires or is disarmed, and the end of the hub",
    ),
    Kept(
        "engine.window.Window._buffer",
        "an event that came while a snapshot is read",
        f"{EVENTS} events, {CHARACTERS} characters",
        "it is a gap, and the reading begins anew",
        "the end of the reading, or of the feed",
    ),
    Kept(
        "engine.window.Window._needed",
        "the turn that a snapshot looks for, by its key",
        "the turns that were in flight since the reading began",
        NEVER,
        "the end of the reading, or of the feed",
    ),
    Kept(
        "engine.past.Past._readings",
        "the reading of the session's last prompt, for one opening",
        f"{READINGS}",
        "the oldest is cancelled, and its notice is not told",
        DONE,
    ),
    Kept(
        "engine.past.Past._later",
        "a prompt that was sent since a reading began, by the turn's id",
        f"{PROMPTS}",
        OLDEST,
        "the end of the last reading",
    ),
    Kept(
        "engine.offers.Offers._told",
        "what an attachment knows of the choices, by its owner",
        "the attachments of the session",
        NEVER,
        "the close of the session there, the idle time, and the end of the client",
    ),
    Kept(
        "engine.repeats.Repeats._last",
        "a digest of the last update of a running call, by (owner, message, call)",
        f"{CALLS}",
        "the oldest goes, and its next progress is sent, new or not",
        "the end of the call, of the turn, or of the attachment",
    ),
    Kept(
        "engine.settlements.Settlements._times",
        "when a turn began and first showed something, by its owner",
        "the turns",
        NEVER,
        SETTLED,
    ),
    Kept(
        "engine.recorder.Recorder._newest",
        "the head of an input, in the order of coming",
        f"{BYTES} bytes of JSON, with those that are pinned",
        "the oldest goes, or is pinned if it names a turn in flight",
        "the end of the last turn",
    ),
    Kept(
        "engine.recorder.Recorder._pinned",
        "the head of an input that names a turn in flight",
        f"{PINNED}, in the same bytes",
        "those of turns that are over go; then the new one does",
        "the end of the last turn",
    ),
    Kept(
        "engine.recorder.Recorder._last",
        "the head of the input that was given last, by its fields",
        "one input",
        "the next one takes its place",
        "the end of the last turn",
    ),
    Kept(
        "engine.entries.Run.head",
        "the head of the events of a run that goes on, by its fields",
        "one event",
        NEVER,
        "the next input of another kind, and the end of the last turn",
    ),
    # MCP servers of clients.
    Kept(
        "engine.mcp.Registrations._sessions",
        "a session with registrations, by its id",
        f"the attachments with any, and {LEFT} registrations whose removal failed",
        "one more of these is left at the server, and said so in the log",
        "its last registration is removed",
    ),
    Kept(
        "engine.mcp._Session.entries",
        "a registration, by its name at the server",
        f"{MCP_SERVERS} for each attachment, and those whose removal is tried",
        "an opening is refused with -32053",
        "its removal, which is tried again while it fails",
    ),
    Kept(
        "engine.mcp._Entry.holders",
        "an attachment that brought it, by its owner",
        "the attachments of the session",
        NEVER,
        "the close of the session there, and the end of the client",
    ),
    Kept(
        "engine.mcp.Registrations._tasks",
        "a check, a removal or the wait before another one",
        "three for each session with registrations",
        NEVER,
        DONE,
    ),
)
