"""The spectators of a session, and what they share."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Final

from adapter.core.offsets import OffsetTable
from adapter.core.spectator import Spectator

# Prompts whose text is kept until they are delivered; the oldest goes first, and is then not
# shown. The texts themselves are bounded where they are read (contract/events.py).
TEXTS_BOUND: Final = 64


class Ambience:
    """`replaying`: what is heard was buffered while events were missed."""

    def __init__(self) -> None:
        self.offsets = OffsetTable()
        self.replaying = False
        self._spectators: dict[int, Spectator] = {}
        self._texts: OrderedDict[str, str] = OrderedDict()
        self._evicted = 0

    def __len__(self) -> int:
        return len(self._spectators)

    def __iter__(self) -> Iterator[Spectator]:
        return iter(self._spectators.values())

    @property
    def evicted(self) -> int:
        """Runs that went for lack of room, of spectators that left as well."""
        return self._evicted + sum(one.evicted for one in self)

    def of(self, owner: int) -> Spectator | None:
        return self._spectators.get(owner)

    def join(self, owner: int, most: int) -> None:
        """The attachment is shown what happens from now on; one that was goes on.

        At most `most` bytes are remembered of what it was shown.
        """
        if owner not in self._spectators:
            self._spectators[owner] = Spectator(owner, self.offsets, most)

    def leave(self, owner: int) -> None:
        """The attachment is gone, or does not want it any more."""
        gone = self._spectators.pop(owner, None)
        if gone is not None:
            self._evicted += gone.evicted
            gone.restart()
        if not self._spectators:
            self._texts.clear()

    def wrote(self, inbox_id: str, text: str) -> None:
        """The text of a user's prompt that waits."""
        self._texts[inbox_id] = text
        if len(self._texts) > TEXTS_BOUND:
            self._texts.popitem(last=False)

    def text_of(self, inbox_id: str) -> str:
        """The text of a prompt that waits no more; "" for one that is not known."""
        return self._texts.pop(inbox_id, "")
