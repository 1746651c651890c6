"""What became of one POST that makes a turn (lifecycle.md, rule 2)."""

from __future__ import annotations

from dataclasses import dataclass

from contract.reads import InboxItem


@dataclass(frozen=True)
class Admitted:
    """200: the item is durable.

    `same_text` is False when the stored item holds another text than the one posted: the server
    answers a duplicate id with the original item (OpenCode facts, section 1).
    """

    item: InboxItem
    same_text: bool = True


@dataclass(frozen=True)
class Taken:
    """The server has it, and its answer shows no item."""


@dataclass(frozen=True)
class NotAdmitted:
    """A 4xx to this id: it is proven that nothing was admitted by this request."""

    status: int
    message: str


@dataclass(frozen=True)
class Unsent:
    """No connection was made, so that nothing can have been admitted by this request."""

    why: str


@dataclass(frozen=True)
class Unclear:
    """Sent without a definite answer; `why` is one phrase. Only `resume:false` may follow.

    `failed`: the server itself answered, with a 5xx, so that its work on this request is over.
    """

    why: str
    failed: bool = False


Posted = Admitted | Taken | NotAdmitted | Unsent | Unclear
