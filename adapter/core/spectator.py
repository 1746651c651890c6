"""What one attachment was shown of work that it did not prompt.

A *run* is what one delivered item sets off; its name is the item's id, or that of the first
message heard of it. Full texts are held against what was shown of their part, whatever tools came
between; a new run begins at a user's prompt and nowhere else (requirements S2-28 to S2-36).
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from adapter.core.offsets import OffsetTable
from adapter.core.values import Chunk, Counted, OfRun, Prompted, Tool
from adapter.core.watched import Taken, Watched
from adapter.core.weights import ENTRY, MESSAGES, SLACK
from adapter.limits import Bound
from contract import events as ev
from contract.reads import AssistantRow

# Runs whose parts are remembered; the one that was heard least lately goes (S2-45).
RUNS_BOUND: Final = 100
# Messages that are not to be shown, and prompts of its own; the oldest goes first.
HIDDEN_BOUND: Final = 256
OWN_BOUND: Final = 256


class Spectator:
    """`evicted` counts the runs that went for lack of room.

    `most` bytes are remembered of all runs; messages that are over are let go of, which nobody
    notices, and what does not fit of one that goes on is not shown.
    """

    def __init__(self, owner: int, offsets: OffsetTable, most: int) -> None:
        self.owner = owner
        self._most = most
        self.evicted = 0
        self._offsets = offsets
        self._runs: OrderedDict[str, Watched] = OrderedDict()
        self._messages: OrderedDict[str, str] = OrderedDict()
        self._hidden: OrderedDict[str, None] = OrderedDict()
        self._own: OrderedDict[str, None] = OrderedDict()
        self._current: str | None = None

    def __len__(self) -> int:
        return len(self._runs)

    @property
    def weight(self) -> int:
        """Bytes that are remembered of all runs."""
        return sum(watched.weight for watched in self._runs.values())

    def prompts(self, turn_id: str) -> None:
        """A prompt of its own: the client has shown its text by itself."""
        _remember(self._own, turn_id, OWN_BOUND)

    def begin(self, run_id: str, text: str) -> list[Prompted]:
        """A user's prompt is put before the model: what comes now is its run."""
        if run_id in self._own:
            self._current = None
            return []
        self._current = run_id
        return [Prompted(self.owner, run_id, text, OfRun(run_id))] if text else []

    def carry_on(self, item_id: str) -> None:
        """Something that no user wrote is put before the model: a run that goes on goes on."""
        self._current = self._current or item_id

    def end(self) -> None:
        """The execution is over; late events of its messages still belong to their run."""
        self._current = None

    def hear(self, event: ev.MessageEvent, *, doubtful: bool) -> list[Chunk | Tool | Counted]:
        """The updates of a message that no turn of its own has; nothing new while `doubtful`."""
        message_id = event.message_id
        if message_id in self._hidden:
            return []
        if doubtful and message_id not in self._messages:
            self.hide(message_id)
            return []
        run_id = self._run_of(message_id)
        watched = self._run(run_id)
        if watched.adds(event) and self._fold(self._most - ENTRY) > 0:
            return [Counted(Bound.TURN_CONTEXT_BYTES)]
        out: list[Chunk | Tool | Counted] = [*watched.hear(self.owner, event, OfRun(run_id))]
        excess = self._fold(self._most) if isinstance(event, ev.ToolEvent) else 0
        if excess > 0:
            _, calls = watched.lighten(excess)
            out.extend([Counted(Bound.TURN_CONTEXT_BYTES, calls)] if calls else [])
        return out

    def miss(self, message_id: str) -> None:
        """An event that is not shown; nor is its message, if this is the first of it."""
        if message_id not in self._messages:
            self.hide(message_id)

    def hide(self, message_id: str) -> None:
        """Show nothing of this message from now on."""
        _remember(self._hidden, message_id, HIDDEN_BOUND)

    def hold(self) -> None:
        """Events were missed: no part takes deltas any more."""
        self._current = None
        for watched in self._runs.values():
            watched.hold()

    def take(self, message_id: str) -> Taken:
        """A turn of its own claims the message: how far it was shown."""
        run_id = self._messages.pop(message_id, None)
        self.hide(message_id)
        watched = self._runs.get(run_id) if run_id is not None else None
        return watched.take(message_id) if watched is not None else Taken({}, {})

    def seed(self, row: AssistantRow) -> None:
        """The client was shown this unfinished message: only what it lacks is news (S2-34)."""
        if row.id not in self._hidden and row.id not in self._messages:
            self._run(self._run_of(row.id)).seed(self.owner, row)

    def restart(self) -> None:
        """The client is shown everything anew, or nothing more."""
        self._current = None
        self._messages.clear()
        while self._runs:
            self._drop()

    def _run_of(self, message_id: str) -> str:
        run_id = self._messages.setdefault(message_id, self._current or message_id)
        if len(self._messages) > MESSAGES:
            # Nothing is heard of it any more; if something is, it is not shown anew.
            self.take(next(iter(self._messages)))
        return run_id

    def _fold(self, most: int) -> int:
        """Fold messages until no more is remembered, those of old runs first; bytes still over."""
        excess = self.weight - most
        if excess <= 0:
            return excess
        newest = next(reversed(self._runs), None)
        wanted, freed = excess + most // SLACK, 0
        for run_id, watched in self._runs.items():
            freed += watched.fold(wanted - freed, newest=run_id != newest) if freed < wanted else 0
        return excess - freed

    def _run(self, run_id: str) -> Watched:
        watched = self._runs.get(run_id)
        if watched is None:
            watched = self._runs[run_id] = Watched(self._offsets, f"{self.owner}/{run_id}")
            if len(self._runs) > RUNS_BOUND:
                self._evict()
        self._runs.move_to_end(run_id)
        return watched

    def _evict(self) -> None:
        """What is left of the run's messages would be shown as if it were new: it is not."""
        self.evicted += 1
        gone = self._drop()
        for message_id in [key for key, run_id in self._messages.items() if run_id == gone]:
            del self._messages[message_id]
            self.hide(message_id)

    def _drop(self) -> str:
        run_id, watched = self._runs.popitem(last=False)
        watched.forget()
        return run_id


def _remember(table: OrderedDict[str, None], key: str, bound: int) -> None:
    table[key] = None
    table.move_to_end(key)
    if len(table) > bound:
        table.popitem(last=False)
