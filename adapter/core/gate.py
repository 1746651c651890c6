"""The last look at what goes to a turn's client: how much it may be shown (S3-L6, S3-L9).

What is over is left out, once told and always counted; the turn itself goes on to its end. Its
sub-agents together may show as much again: not every client is shown them, so that only the count
tells of what is left out there. Work that the client did not prompt belongs to no turn and passes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from adapter.core.values import (
    Chunk,
    Counted,
    Input,
    Notice,
    OfChild,
    Output,
    Progress,
    Settled,
    Submit,
    Tool,
    ToolStatus,
)
from adapter.limits import Bound, Limits
from contract.words import counted

NOTICE = "limit"
_OPEN = (ToolStatus.PENDING, ToolStatus.IN_PROGRESS)


@dataclass(slots=True)
class Shown:
    """What was shown: bytes of texts and results, and the calls that are not over.

    `full` once something was left out, so that no later piece follows a hole; `omitted` counts
    characters.
    """

    size: int = 0
    omitted: int = 0
    full: bool = False
    calls: set[tuple[str, str]] = field(default_factory=set)
    hidden: set[tuple[str, str]] = field(default_factory=set)
    told: set[Bound] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class OfTurn:
    """What one turn has shown: itself, and its sub-agents."""

    own: Shown = field(default_factory=Shown)
    beside: Shown = field(default_factory=Shown)


class Gate:
    """One session's. A turn has an entry from its submission until it settles."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._turns: dict[int, OfTurn] = {}

    def __len__(self) -> int:
        return len(self._turns)

    def passed(self, given: Input, outputs: Iterable[Output]) -> list[Output]:
        """What of `outputs` is within the limits, with what has to be said about the rest."""
        if isinstance(given, Submit):
            self._turns[given.owner] = OfTurn()
        return [passed for output in outputs for passed in self._look(output)]

    def _look(self, output: Output) -> Iterable[Output]:
        match output:
            case Settled():
                return self._settled(output)
            case Chunk() | Tool() | Progress():
                of_turn = self._turns.get(output.owner)
            case _:
                return (output,)
        if of_turn is None:
            return (output,)
        match output:
            case Chunk(origin=None):
                return self._chunk(of_turn.own, output)
            case Tool(origin=None):
                return self._tool(of_turn.own, output)
            case Chunk(origin=OfChild()):
                return _untold(self._chunk(of_turn.beside, output))
            case Tool(origin=OfChild()):
                return _untold(self._tool(of_turn.beside, output))
            case Progress(_, message_id, call_id) if (message_id, call_id) in of_turn.own.hidden:
                return ()
            case _:
                return (output,)

    def _settled(self, output: Settled) -> Iterator[Output]:
        outcome = output.outcome
        of_turn = self._turns.pop(output.owner, None)
        if of_turn is not None and of_turn.own.omitted:
            outcome = replace(outcome, omitted=of_turn.own.omitted)
        yield replace(output, outcome=outcome)

    def _chunk(self, shown: Shown, chunk: Chunk) -> Iterator[Output]:
        if self._fits(shown, _bytes(chunk.text)):
            yield chunk
        else:
            yield from self._full(shown, chunk.owner, len(chunk.text))

    def _tool(self, shown: Shown, tool: Tool) -> Iterator[Output]:
        call = (tool.message_id, tool.call_id)
        is_open = tool.status in _OPEN
        if call in shown.hidden:
            if not is_open:
                shown.hidden.discard(call)
        elif not is_open:
            shown.calls.discard(call)
            yield from self._result(shown, tool)
        elif tool.first and len(shown.calls) >= self._limits.open_tools:
            shown.hidden.add(call)
            yield Counted(Bound.OPEN_TOOLS)
            most = self._limits.open_tools
            words = f"More than {most} tool calls run at once; further ones are not shown."
            yield from _once(shown, tool.owner, Bound.OPEN_TOOLS, words)
        else:
            shown.calls.add(call)
            yield tool

    def _result(self, shown: Shown, tool: Tool) -> Iterator[Output]:
        texts = [piece.text or "" for piece in tool.content or ()] + [tool.error or ""]
        if self._fits(shown, sum(map(_bytes, texts))):
            yield tool
            return
        yield replace(tool, content=None, metadata=None, error=None)
        yield from self._full(shown, tool.owner, sum(map(len, texts)))

    def _fits(self, shown: Shown, size: int) -> bool:
        if not size:
            return True
        if shown.full or shown.size + size > self._limits.turn_output_bytes:
            return False
        shown.size += size
        return True

    def _full(self, shown: Shown, owner: int, characters: int) -> Iterator[Output]:
        shown.full = True
        shown.omitted += characters
        if Bound.TURN_OUTPUT_BYTES not in shown.told:
            yield Counted(Bound.TURN_OUTPUT_BYTES)
        yield from _once(
            shown,
            owner,
            Bound.TURN_OUTPUT_BYTES,
            f"This turn has written {counted(self._limits.turn_output_bytes, 'byte')}, all that is "
            "passed on; what follows is left out, and the turn goes on.",
        )


def _untold(outputs: Iterable[Output]) -> Iterator[Output]:
    return (output for output in outputs if not isinstance(output, Notice))


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _once(shown: Shown, owner: int, bound: Bound, words: str) -> Iterator[Notice]:
    if bound not in shown.told:
        shown.told.add(bound)
        yield Notice(owner, NOTICE, words, {"limit": bound.value})
