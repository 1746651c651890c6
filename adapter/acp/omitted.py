"""What limits keep out of an update, told in its `_meta` by the names of the limits. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from adapter.acp.bounded import cut
from adapter.acp.meta import ours
from adapter.limits import Bound, Limits
from contract.errors import AcpError

# The key under ours.
OMITTED: Final = "omitted"

Json = dict[str, object]


class Omitted:
    """What is missing of one update."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def add(self, bound: Bound, count: int) -> None:
        """So many characters, or things, are missing because of the limit."""
        if count > 0:
            self._counts[bound.value] = self._counts.get(bound.value, 0) + count

    def line(self, text: str, limits: Limits) -> str:
        """A title or a sentence, cut at `line_chars` with a mark."""
        self.add(Bound.LINE_CHARS, len(text) - limits.line_chars)
        return cut(text, limits.line_chars)

    def told(self) -> Json:
        """The member of ours that says so; none if nothing is missing."""
        return {OMITTED: self._counts} if self._counts else {}


def omitted(update: Mapping[str, object]) -> Mapping[str, int]:
    """What a limit kept out of an update, by the name of the limit."""
    return _counts(ours(update))


def omitted_of_error(error: AcpError) -> Mapping[str, int]:
    """The same of an error, whose `data` says so."""
    return _counts(error.data or {})


def _counts(told: Json) -> Mapping[str, int]:
    counts = told.get(OMITTED)
    return counts if isinstance(counts, dict) else {}
