"""Everything that can happen to a session, as the core takes it in."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Literal

from adapter.core.values.outcome import AskReason, Call, Decision
from contract.events import Event
from contract.reads import AnyRow, AssistantRow
from contract.shapes import Form, JsonObject, PermissionAsk


@dataclass(frozen=True, slots=True)
class Submit:
    """A client prompts: `turn_id` is the message id, made before the POST (rule 1)."""

    turn_id: str
    owner: int


@dataclass(frozen=True, slots=True)
class Recognised:
    """A prompt that was submitted calls something by `/name`; a skill makes an ordinary turn."""

    turn_id: str
    call: Call


class Admission(Enum):
    """What is known after the POST of a prompt (rule 2)."""

    ADMITTED = "admitted"
    NOT_ADMITTED = "not_admitted"
    UNREACHED = "unreached"
    UNCLEAR = "unclear"
    GONE = "gone"
    UNAUTHORISED = "unauthorised"


@dataclass(frozen=True, slots=True)
class Posted:
    """The definite answer of a submission; `probed` when it took a second POST to get it.

    `item_id` is the item that stands for it, where that is not `turn_id`.
    """

    turn_id: str
    admission: Admission
    message: str = ""
    probed: bool = False
    item_id: str = ""


@dataclass(frozen=True, slots=True)
class Heard:
    """An event of the feed, of this session or of a descendant."""

    event: Event


@dataclass(frozen=True, slots=True)
class FeedLost:
    """Continuity of the feed is lost (rule 17)."""


@dataclass(frozen=True, slots=True)
class FeedBack:
    """The feed is connected again; events are heard from here on."""


@dataclass(frozen=True, slots=True)
class ServerSeen:
    """The process id of the server that the feed is connected to."""

    pid: int


@dataclass(frozen=True, slots=True)
class Cancel:
    """`session/cancel` or `$/cancel_request` from the owner of a turn."""

    owner: int


@dataclass(frozen=True, slots=True)
class Left:
    """The owner's connection is gone; `interrupt` is the setting `on_client_exit`."""

    owner: int
    interrupt: bool


@dataclass(frozen=True, slots=True)
class Answered:
    """The client's answer to an ask. Anything that is no clear approval is "reject"."""

    ask_id: str
    decision: Decision
    why: AskReason = "client"


FormFate = Literal["answered", "declined", "unable", "credential"]
"""What became of a form: the client's answer, none of it, or that it could not be shown at all."""


@dataclass(frozen=True, slots=True)
class FormAnswered:
    """The client's answer to a form, {} for none; its values fit the fields of the form."""

    form_id: str
    answer: JsonObject = field(default_factory=dict, repr=False)
    fate: FormFate = "answered"


@dataclass(frozen=True, slots=True)
class Replied:
    """The reply of an ask reached the server (`settled`), or could not be delivered.

    `refused`: this reply will never be taken, or cannot be written; the ask is open as before.
    """

    ask_id: str
    settled: bool
    found: bool = True
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Fired:
    """A timer that the core had asked for."""

    timer: str


@dataclass(frozen=True, slots=True)
class Woken:
    """The answer of a wake: False when the item was no longer pending (409)."""

    turn_id: str
    pending: bool


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the reads of one session said, in lifecycle order (rule 18).

    `rows` ascend and hold the rows of all judged turns; `judged` are the turns that were
    admitted before the inbox was read. `complete` is False when the bound cut the rows.
    `children` are (child, parent), `titles` (child, title).
    `asks` and `forms` are None when they could not be read: the turns are judged all the same.
    `named` pairs the turn of a command, or the child that carries one out, with its item; `workers`
    such a turn with its child. `busy` are all sessions that run.
    """

    inbox: frozenset[str] = frozenset()
    active: bool = False
    rows: tuple[AnyRow, ...] = ()
    complete: bool = True
    asks: tuple[PermissionAsk, ...] | None = ()
    forms: tuple[Form, ...] | None = ()
    children: tuple[tuple[str, str], ...] = ()
    titles: tuple[tuple[str, str], ...] = ()
    pid: int = 0
    judged: frozenset[str] = frozenset()
    named: tuple[tuple[str, str], ...] = ()
    workers: tuple[tuple[str, str], ...] = ()
    busy: frozenset[str] = frozenset()
    state: Literal["ok", "gone", "unauthorised"] = "ok"


@dataclass(frozen=True, slots=True)
class Reconcile:
    """A snapshot, and the events of this session heard since it was asked for."""

    snapshot: Snapshot
    buffer: tuple[Event, ...] = ()


@dataclass(frozen=True, slots=True)
class InboxRead:
    """`/inbox`, then `/active` (rule 5)."""

    inbox: tuple[str, ...]
    active: bool


@dataclass(frozen=True, slots=True)
class Reloading:
    """The owner loads the session anew: what it has of its running turn counts for nothing."""

    owner: int


@dataclass(frozen=True, slots=True)
class Replayed:
    """The owner was shown these rows of a page, oldest first, behind that of its running turn.

    Those of each page for themselves, in their order (`OwnRows`).
    """

    owner: int
    rows: tuple[AnyRow, ...]


@dataclass(frozen=True, slots=True)
class Reloaded:
    """The owner was shown every row; `unfinished` is the last one, if its end is still to come."""

    owner: int
    unfinished: AssistantRow | None = None


@dataclass(frozen=True, slots=True)
class Watch:
    """The owner wants to be shown what it did not prompt, or does not (any more)."""

    owner: int
    wanted: bool = True


@dataclass(frozen=True, slots=True)
class LetGo:
    """The session is not followed here any more, whoever may have a turn in flight."""


@dataclass(frozen=True, slots=True)
class Parting:
    """The process ends: what is still open to others has to be settled now."""


Input = (
    Submit
    | Recognised
    | Posted
    | Heard
    | FeedLost
    | FeedBack
    | ServerSeen
    | Cancel
    | Left
    | Answered
    | FormAnswered
    | Replied
    | Fired
    | Reloading
    | Replayed
    | Reloaded
    | LetGo
    | Parting
    | Watch
    | Woken
    | Reconcile
    | InboxRead
)
