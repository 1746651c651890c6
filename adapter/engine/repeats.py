"""What clients have of running calls, so that progress that shows nothing new is not sent."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from adapter.core.values import Tool, ToolStatus

# Calls of one session, of every client. The oldest goes first: its next progress is sent, new or
# not. An end that fell into a gap leaves a call here.
CALLS: Final = 1024
OVER: Final = (ToolStatus.COMPLETED, ToolStatus.FAILED)


class Repeats:
    """One session's: a digest of the last update of each running call."""

    def __init__(self) -> None:
        self._last: OrderedDict[tuple[int, str, str], int] = OrderedDict()

    def __len__(self) -> int:
        return len(self._last)

    def repeats(self, tool: Tool, update: dict[str, object]) -> bool:
        """Whether its client has exactly this of the call already; the end is always told."""
        call = (tool.owner, tool.message_id, tool.call_id)
        before = self._last.pop(call, None)
        if tool.status in OVER:
            return False
        now = self._last[call] = hash(repr(update))
        if len(self._last) > CALLS:
            self._last.popitem(last=False)
        return now == before

    def forget(self, owner: int) -> None:
        """The owner's turn is over, or it is gone."""
        for call in [call for call in self._last if call[0] == owner]:
            del self._last[call]
