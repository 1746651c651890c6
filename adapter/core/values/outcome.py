"""How a turn can end, and the words that inputs and outputs share."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal

from contract.shapes import Tokens

# What a prompt calls by `/name`, if that makes another turn than a prompt does.
Call = Literal["command", "compaction"]
Decision = Literal["once", "always", "reject"]
AskReason = Literal[
    "client", "no_client", "no_answer", "limit", "unattended", "left", "cancel", "elsewhere"
]
"""Who or what decided a permission: a client's choice; nobody to ask; an answer that is none; a
bound on asks; nobody's turn for too long; a client that left; a cancel; somebody elsewhere."""
Wait = Literal[
    "cancel",
    "parked",
    "watch",
    "quiet",
    "gap",
    "reconnecting",
    "lost_first",
    "lost_last",
    "ahead",
    "patience",
    "longest",
    "unattended",
    "reply",
    "loose",
]
CancelMark = Literal["confirmed", "unconfirmed"]


class Stop(Enum):
    """ACP stop reasons."""

    END_TURN = "end_turn"
    MAX_TOKENS = "max_tokens"
    MAX_TURN_REQUESTS = "max_turn_requests"
    REFUSAL = "refusal"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a turn ended: a stop reason, or an error code with one sentence.

    `admitted` is None when that itself is not known. `message_id` is the turn's id. `omitted`
    are characters that a limit kept from the client.
    """

    message_id: str
    stop: Stop | None = None
    code: int = 0
    message: str = ""
    reason: str = ""
    admitted: bool | None = True
    retry_safe: bool = False
    gaps: int = 0
    recovered: int = 0
    shared: bool = False
    cancel: CancelMark | None = None
    tokens: Tokens | None = None
    omitted: int = 0
