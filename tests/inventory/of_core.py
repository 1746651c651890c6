"""What the turns of one session are remembered by, and what is shown beside them."""

from __future__ import annotations

from typing import Final

from adapter.core.ambience import TEXTS_BOUND
from adapter.core.asks import KNOWN_BOUND
from adapter.core.descendants import BOUND as DESCENDANTS
from adapter.core.errands import LINES
from adapter.core.spectator import HIDDEN_BOUND, OWN_BOUND, RUNS_BOUND
from adapter.core.state import FOREIGN_BOUND, KINDS_BOUND, LOOSE_BOUND
from adapter.core.weights import ENTRY, MESSAGES
from contract.events import PROMPT_CHARS
from tests.inventory.kept import NEVER, Kept

CONTEXT: Final = f"`turn_context_bytes`, {ENTRY} an entry"
OLDEST: Final = "the oldest goes"
FOLDED: Final = "messages that are over are folded; then nothing new is taken up, and counted"
SETTLED: Final = "the end of the turn (`settle`)"

OF_CORE: Final = (
    Kept(
        "core.state.SessionState.turns",
        "a turn, by the id of its prompt",
        "one for each attachment, `prompts` in an engine",
        "a prompt is refused with -32053",
        SETTLED,
    ),
    Kept(
        "core.state.SessionState.running",
        "the id of a turn that shares the answer in progress",
        "the turns",
        NEVER,
        SETTLED,
    ),
    Kept(
        "core.state.SessionState.messages",
        "an answer of a turn, by the message's id",
        f"{MESSAGES} of a turn, and those whose calls are open",
        "the oldest is forgotten: no reading shows it any more",
        SETTLED,
    ),
    Kept(
        "core.state.Message.tools",
        "a call of the message, by its id",
        CONTEXT,
        FOLDED,
        "the fold of its message, and the end of the turn",
    ),
    Kept(
        "core.state.Turn.rejected_in",
        "a message in which a permission was refused, by its id",
        "`turn_asks`",
        NEVER,
        "the end of each step, and of the turn",
    ),
    Kept(
        "core.state.SessionState.asks",
        "a permission or form that is open, by its id",
        f"`open_asks` that are shown or left to others, {KNOWN_BOUND} with those that are declined",
        "it is declined; past the second one it is left to the next reading",
        "the server's word that it is settled, which is asked for until it comes",
    ),
    Kept(
        "core.state.Ask.answer",
        "what the user typed into a form, by its field",
        "the form's fields, in one line of the client",
        NEVER,
        "the end of its ask",
    ),
    Kept(
        "core.state.SessionState.children",
        "a descendant that is followed, by its id: its parent",
        f"{DESCENDANTS}",
        "the one that was heard least lately and that nothing speaks of goes",
        "the end of the hub",
    ),
    Kept(
        "core.state.SessionState.makers",
        "a descendant, by its id: the owner whose turn made it",
        "the children",
        "it goes with its child",
        "the end of the hub",
    ),
    Kept(
        "core.state.SessionState.titles",
        "a descendant, by its id: what it is called",
        "the children",
        "it goes with its child",
        "the end of the hub",
    ),
    Kept(
        "core.state.SessionState.unfollowed",
        "the id of a descendant that was let go of",
        "those that one input speaks of",
        NEVER,
        "the end of the step",
    ),
    Kept(
        "core.state.SessionState.errands",
        "a running call that names its child, by (message, call)",
        f"the open calls: {CONTEXT}",
        FOLDED,
        "the end of the call, and of the turn",
    ),
    Kept(
        "core.errands.Errand.helpers",
        "a descendant that works for the call, by its id",
        f"the children, {DESCENDANTS}",
        "further ones are not followed",
        "the end of the call, and of the turn",
    ),
    Kept(
        "core.errands.Errand.lines",
        "a call of a helper, by (message, call): a line for the client",
        f"{LINES}",
        "the oldest goes, and the client is told how many are missing",
        "the end of the call, and of the turn",
    ),
    Kept(
        "core.state.SessionState.judged",
        "the verdict on a turn, in the last reading",
        "the turns",
        NEVER,
        "the next reading",
    ),
    Kept(
        "core.state.SessionState.foreign",
        "a message of no turn in flight, by its id",
        f"{FOREIGN_BOUND}",
        OLDEST,
        "a turn that claims it, and the end of the hub",
    ),
    Kept(
        "core.state.SessionState.kinds",
        "an inbox item that waits, by its id: what it is",
        f"{KINDS_BOUND}",
        OLDEST,
        "newer ones, and the end of the hub",
    ),
    Kept(
        "core.state.SessionState.loose",
        "a cancel that outlived its turn, by the turn's id",
        f"{LOOSE_BOUND}",
        OLDEST,
        "its end, which an event or a reading tells, and the deletion of the session",
    ),
    Kept(
        "core.state.SessionState.beside",
        "a part of a descendant's answer, by (session, part)",
        f"half of {CONTEXT}, for each turn",
        FOLDED,
        "the end of the call that it works for",
    ),
    Kept(
        "core.offsets.OffsetTable._sessions",
        "how far a part was sent, by (session, part)",
        "as its owner says: `Engine.offsets`, `SessionState.beside`, `Ambience.offsets`",
        "as its owner says",
        "as its owner says; a session without parts goes",
    ),
    Kept(
        "core.gate.Gate._turns",
        "what a turn has shown, by the turn's owner",
        "the turns",
        NEVER,
        SETTLED,
    ),
    Kept(
        "core.gate.Shown.calls",
        "a call that is shown and not over, by (message, call)",
        "`open_tools`",
        "a further one is not shown, and counted",
        "the end of the call, and of the turn",
    ),
    Kept(
        "core.gate.Shown.hidden",
        "an open call that is not shown, by (message, call)",
        f"the open calls: {CONTEXT}",
        FOLDED,
        "the end of the call, and of the turn",
    ),
    Kept(
        "core.gate.Shown.told",
        "a limit that the client was told of",
        "the limits that there are",
        NEVER,
        SETTLED,
    ),
    Kept(
        "core.watched.Watched.tools",
        "a call of others, by (message, call)",
        f"{CONTEXT}, as whoever watches has it",
        FOLDED,
        "the fold of its message, and the end of the call or run that is watched",
    ),
    Kept(
        "core.watched.Watched._messages",
        "an answer of others, by the message's id; whether it is folded",
        f"{MESSAGES}, and {CONTEXT} of those that are not folded",
        "the oldest that is folded is forgotten",
        "the end of the call or run that is watched",
    ),
    Kept(
        "core.watched.Watched._in_doubt",
        "an open call whose end may have been missed, by (message, call)",
        "the calls in `Watched.tools`",
        NEVER,
        "the next event of the call, and with it",
    ),
    Kept(
        "core.ambience.Ambience._spectators",
        "an attachment that is shown the work of others, by its owner",
        "the attachments",
        NEVER,
        "the end of the attachment, or its opening without that wish",
    ),
    Kept(
        "core.ambience.Ambience._texts",
        "the text of a prompt that waits, by the item's id",
        f"{TEXTS_BOUND} of {PROMPT_CHARS} characters",
        "the oldest goes, and is not shown",
        "its delivery or withdrawal, and the end of the last spectator",
    ),
    Kept(
        "core.ambience.Ambience.offsets",
        "a part of others, by (owner and run, part)",
        f"{CONTEXT}, for each spectator",
        FOLDED,
        "the end of the run's memory, or of the spectator",
    ),
    Kept(
        "core.spectator.Spectator._runs",
        "what was shown of a run, by the run's id",
        f"{RUNS_BOUND}",
        "the one heard least lately goes, and is counted",
        "a load, and the end of the spectator",
    ),
    Kept(
        "core.spectator.Spectator._messages",
        "the run of a message, by the message's id",
        f"{MESSAGES}",
        "the oldest is hidden from then on",
        "a turn that claims it, the end of its run's memory, a load, the end of the spectator",
    ),
    Kept(
        "core.spectator.Spectator._hidden",
        "a message that is not to be shown, by its id",
        f"{HIDDEN_BOUND}",
        OLDEST,
        "newer ones, and the end of the spectator",
    ),
    Kept(
        "core.spectator.Spectator._own",
        "a prompt of the attachment's own, by its id",
        f"{OWN_BOUND}",
        OLDEST,
        "newer ones, and the end of the spectator",
    ),
)
