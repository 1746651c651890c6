"""What one client, one turn and the whole engine may take up, and how an operator lowers it. Pure.

The defaults are the highest values: a configuration file may lower a limit and not raise it
(requirements S3-L1 to S3-L14). Bounds that only guard the adapter's own tables are constants where
those tables stand.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

KIB: Final = 1024
MIB: Final = 1024 * 1024


class LimitError(ValueError):
    """A limit that cannot be taken from a file. `str()` is one sentence that names the key."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Every limit with its default; the names are those of the configuration file."""

    connections: int = 256
    """Clients of one daemon; one more is sent away with exit code 75."""
    sessions_per_connection: int = 64
    """Sessions open on one connection; one more is refused with -32053."""
    sessions: int = 512
    """Sessions open in one engine. At it, one that is idle makes room; without one -32053."""
    session_creates: int = 120
    """Sessions made on one connection within 10 seconds; one more is refused with -32053 and may be
    retried (X-21)."""
    prompt_chars: int = 2 * MIB
    """Characters of a prompt's texts; more is refused with -32053 before anything is sent."""
    attachment_bytes: int = 20 * MIB
    """Bytes of a prompt's decoded attachments; refused likewise."""
    prompts_per_connection: int = 8
    """Prompts in flight on one connection; one more is refused with -32053 and may be retried."""
    prompts: int = 32
    """Prompts in flight in one engine; refused likewise."""
    idle_seconds: float = 1800.0
    """Without a request, a turn or an ask for so long, a session is put aside until it is used."""
    setup_seconds: float = 60.0
    """The opening of a session; it fails with -32603 after that."""
    inbound_line_bytes: int = 32 * MIB
    """Bytes of one line of the client; a longer one is dropped and answered with -32600."""
    inbound_bytes: int = 128 * MIB
    """What all clients have sent without the end of its line: at it the longest line is dropped and
    answered with -32600. So much also of requests that are not answered, as they are kept; one that
    does not fit is refused with -32053 and may be sent again."""
    outbound_line_bytes: int = MIB
    """Bytes of one line to the client: texts are split and results are cut to fit in it."""
    turn_output_bytes: int = 64 * MIB
    """UTF-8 bytes of a turn's texts and tool results; what is over is left out, and counted."""
    tool_output_bytes: int = 256 * KIB
    """JSON bytes of one tool call's `rawOutput`; it is cut, with a mark that counts the rest."""
    text_chunk_chars: int = 64 * KIB
    """Characters of one chunk of text; longer texts are split and none of them is lost."""
    turn_context_bytes: int = 512 * KIB
    """What is remembered of a turn and of its sub-agents, as `adapter.core.weights` has it; then no
    more is added. So much also of what one client is shown of the work of others."""
    open_tools: int = 256
    """Tool calls of a turn that are shown and not over; further ones are not shown."""
    tool_locations: int = 16
    """Locations of one tool call; further ones are left out."""
    line_chars: int = 4096
    """Characters of a title or a sentence; it is cut, with a mark."""
    open_asks: int = 32
    """Asks of one session that are open; further ones are declined in their turn."""
    turn_asks: int = 256
    """Asks of one turn in all; further ones are declined at once."""
    cancel_seconds: float = 2.0
    """A cancel is answered after so long, whether the server has confirmed it or not."""


DEFAULTS: Final = Limits()

# Below these nothing that clients need fits into a line any more.
FLOORS: Final[Mapping[str, int]] = {
    "inbound_line_bytes": 64 * KIB,
    "inbound_bytes": MIB,
    "outbound_line_bytes": 256 * KIB,
}


class Bound(Enum):
    """A limit that can be hit, by the name of its setting. Splitting a text hits nothing."""

    CONNECTIONS = "connections"
    SESSIONS_PER_CONNECTION = "sessions_per_connection"
    SESSIONS = "sessions"
    SESSION_CREATES = "session_creates"
    PROMPT_CHARS = "prompt_chars"
    ATTACHMENT_BYTES = "attachment_bytes"
    PROMPTS_PER_CONNECTION = "prompts_per_connection"
    PROMPTS = "prompts"
    IDLE_SECONDS = "idle_seconds"
    SETUP_SECONDS = "setup_seconds"
    INBOUND_LINE_BYTES = "inbound_line_bytes"
    INBOUND_BYTES = "inbound_bytes"
    OUTBOUND_LINE_BYTES = "outbound_line_bytes"
    TURN_OUTPUT_BYTES = "turn_output_bytes"
    TOOL_OUTPUT_BYTES = "tool_output_bytes"
    TURN_CONTEXT_BYTES = "turn_context_bytes"
    OPEN_TOOLS = "open_tools"
    TOOL_LOCATIONS = "tool_locations"
    LINE_CHARS = "line_chars"
    OPEN_ASKS = "open_asks"
    TURN_ASKS = "turn_asks"
    CANCEL_SECONDS = "cancel_seconds"


def lowered(given: Mapping[str, object], limits: Limits = DEFAULTS) -> Limits:
    """`limits` with the lower values that are given.

    Raises LimitError for an unknown name, a value of another type, and one that is out of range.
    """
    highest = {one.name: getattr(limits, one.name) for one in dataclasses.fields(limits)}
    for name, value in given.items():
        if name not in highest:
            raise LimitError(f"There is no limit of the name {name[:100]!r}.")
        _check(name, value, highest[name])
    return dataclasses.replace(limits, **given)  # type: ignore[arg-type]


def _check(name: str, value: object, highest: int | float) -> None:
    if isinstance(highest, int):
        least = FLOORS.get(name, 1)
        fits = type(value) is int and least <= value <= highest
        what = f"a whole number from {least} to {highest}"
    else:
        # Compared as it is: a whole number may be too large for a float.
        fits = type(value) in (int, float) and 0 < value <= highest  # type: ignore[operator]
        what = f"a number of seconds above 0 and up to {highest:g}"
    if not fits:
        raise LimitError(f"The limit {name} takes {what}: a file may lower it and not raise it.")
