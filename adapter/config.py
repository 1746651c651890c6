"""Settings of the process: flags over environment over the file over defaults.

Every deadline is a setting, in seconds. Nothing here holds the password itself outside of the
`Credential`, whose text form hides it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from adapter.limits import DEFAULTS, Limits
from adapter.options import Options
from adapter.settings.table import DEFAULT_SERVER
from adapter.start import Start, read_start
from adapter.upstream.catalogue import CatalogueSettings
from adapter.upstream.credentials import Credential
from adapter.upstream.feed import FeedSettings
from adapter.upstream.transport import ServerSettings
from contract.policy import McpPolicy


@dataclass(frozen=True, slots=True)
class Waits:
    """Seconds of the timers that the core asks for by name (lifecycle.md)."""

    cancel: float = 2.0
    """Rule 13: `cancelled` is answered after this long at most."""
    parked: float = 0.25
    """Rule 5: between an execution's end and the reading, and between two readings."""
    watch: float = 30.0
    """Rule 5: between two readings for a turn that waits."""
    quiet: float = 15.0
    """Rule 7: two such periods without an event bring a check."""
    gap: float = 60.0
    """Rule 20: from the detection of a gap to the verdict."""
    reconnecting: float = 5.0
    """S3-28: a gap that lasts so long is told to the clients whose turns are in flight."""
    lost_first: float = 0.25
    lost_last: float = 1.5
    """Rule 19: before the second and the third reading of a turn that no row proves."""
    ahead: float = 2.0
    """Rule 4: before the first word on what a turn waits for."""
    unattended: float = 120.0
    """Rule 16: how long an ask without a turn of ours is left to other front ends."""
    patience: float | None = None
    """Rule 4, `queue_patience`: a prompt that waits so long joins the running turn; None: never."""
    longest: float | None = None
    """Rule 7, `prompt.max_seconds`: a turn that runs so long is stopped; None: never."""
    reply: float = 2.0
    """Before the answer to an ask is sent again that did not reach the server."""
    loose: float = 2.0
    """Rule 13: between two looks at a cancel that the server has not confirmed."""


@dataclass(frozen=True, slots=True)
class McpSettings:
    """What becomes of the MCP servers that clients bring; times in seconds."""

    policy: McpPolicy = "notice"
    seconds: float = 20.0
    """For all servers of one opening, which waits for them so long."""
    settle: float = 0.2
    """From the last status to the answer: the server offers tools only about 100 ms later."""
    patience: float = 5.0
    """For the reading of their states, and a close waits for their removal so long."""
    removal: float = 60.0
    """One removal; the server makes it wait while another server of the directory starts."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What one engine needs to know."""

    server: str = DEFAULT_SERVER
    credential: Credential | None = None
    password_fix: str = "correct it there, then start the agent again"
    """How a process of this kind comes by another password: it reads it at its start."""
    waits: Waits = field(default_factory=Waits)
    feed: FeedSettings = field(default_factory=FeedSettings)
    http: ServerSettings = field(default_factory=ServerSettings)
    catalogue: CatalogueSettings = field(default_factory=CatalogueSettings)
    feed_ready: float = 5.0
    """A prompt waits this long for the feed; nothing is posted before it is up (rule 1)."""
    admission_reachable: float = 5.0
    admission_unreachable: float = 60.0
    """Rule 2: for a definite answer once the server answers at all, and while it does not."""
    exit_post: float = 1.2
    """A POST in flight holds the exit at most this long."""
    exit_event: float = 0.06
    exit_reads: float = 1.2
    """An event that is due holds it at most so long, and reads in its place at most so long."""
    interrupt_on_exit: bool = True
    """`on_client_exit = interrupt`: a client that leaves stops its own turns."""
    replay_messages: int = 1000
    """Newest messages that `session/load` shows."""
    list_page: int = 100
    """Sessions on one page of `session/list`."""
    allow_always: bool = False
    """Offer `allow_always`; on a shared server it stores a rule for every client (X-12)."""
    mcp: McpSettings = field(default_factory=McpSettings)
    limits: Limits = DEFAULTS


def load(options: Options, environ: Mapping[str, str]) -> Settings:
    """The settings of this process. Raises one of `adapter.start.START_ERRORS`."""
    return settings(read_start(options, environ))


def settings(start: Start) -> Settings:
    """The settings of a start that can work."""
    return Settings(
        server=start.server,
        credential=start.credential,
        http=ServerSettings(ca_file=start.ca_file),
        waits=Waits(
            cancel=start.limits.cancel_seconds,
            patience=start.queue_patience,
            longest=start.prompt_seconds,
        ),
        interrupt_on_exit=start.interrupt_on_exit,
        allow_always=start.allow_always,
        mcp=McpSettings(start.mcp, start.mcp_seconds or McpSettings().seconds),
        limits=start.limits,
    )
