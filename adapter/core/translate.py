"""Events of the assistant's messages to updates for the client (lifecycle rules 9 and 10).

Only messages that a turn of ours owns are translated; the offsets decide what text is new.
"""

from __future__ import annotations

from dataclasses import replace

from adapter.core import children
from adapter.core.heard import OVER, advance, kept, part_of, text_of
from adapter.core.offsets import Kind, Part
from adapter.core.parts import tool_of
from adapter.core.state import Message, SessionState, Turn
from adapter.core.values import Chunk, Notice, Output, Tool, ToolStatus, Usage
from contract import events as ev
from contract.reads import AssistantRow, ReasoningPart, TextPart, ToolPart
from contract.shapes import Tokens


def translate(state: SessionState, event: ev.MessageEvent) -> list[Output]:
    """The updates that follow from one event of a message; none for a foreign message."""
    message = state.message_of(event.message_id)
    if message is None or message.folded:
        return []
    turn = state.turns[message.turn_id]
    match event:
        case ev.PartEvent():
            text = text_of(state.offsets, state.id, event)
            ended = isinstance(event, ev.TextEnded | ev.ReasoningEnded)
            recovered = ended and turn.gaps > 0
            if recovered:
                turn.recovered += len(text)
            return _chunk(state, turn, message, part_of(event), text, recovered=recovered)
        case ev.ToolEvent():
            return _tool_event(state, turn, message, event)
        case ev.StepStarted():
            if event.model is not None:
                message.model = event.model.key
            return []
        case ev.RetryScheduled():
            return [_retry(turn, event)]
        case _:
            return []


def usage(state: SessionState, turn: Turn, step: ev.StepEnded) -> list[Output]:
    """Context in use after a step, and the session's cost."""
    message = state.messages.get(step.message_id)
    return _spend(state, turn, message, step.tokens, step.cost) if message else []


def restore(state: SessionState, turn: Turn, row: AssistantRow) -> list[Output]:
    """What a read shows of a message and the client lacks: text first, then tools, in order.

    An empty text is a part still open (facts, section 7: partial text is never readable): it
    stays held until its full text is there.
    """
    message = state.messages.get(row.id)
    if message is None:
        if row.id in state.foreign:
            return []
        message = state.claim(row.id, turn)
    if message.turn_id != turn.id:
        return []
    if row.model is not None:
        message.model = row.model.key
    if row.finish is not None:
        turn.last_finish = row.finish
    out: list[Output] = []
    ordinals: dict[Kind, int] = {"text": 0, "reasoning": 0}
    for part in row.content if not message.folded else ():
        if isinstance(part, TextPart | ReasoningPart):
            key = Part(row.id, part.type, ordinals[part.type])
            ordinals[part.type] += 1
            if part.text:
                text = state.offsets.full(state.id, key, part.text)
                turn.recovered += len(text)
                out.extend(_chunk(state, turn, message, key, text, recovered=True))
        elif isinstance(part, ToolPart):
            out.extend(_restore_tool(state, turn, message, row.id, part))
    if row.finish is not None:
        out.extend(_spend(state, turn, message, row.tokens, row.cost))
    return out


def _spend(
    state: SessionState, turn: Turn, message: Message, tokens: Tokens | None, cost: float | None
) -> list[Output]:
    """Count a step's tokens and cost, once, whether an event or a read tells of them first.

    The session's cost is the server's last word plus the steps since; unknown without one.
    """
    if tokens is None or message.spent:
        return []
    message.spent = True
    turn.spend(tokens)
    if state.cost is not None:
        state.cost += cost or 0.0
    return [Usage(turn.owner, message.model, tokens.total, state.cost)]


def _chunk(
    state: SessionState,
    turn: Turn,
    message: Message,
    part: Part,
    text: str,
    *,
    recovered: bool = False,
) -> list[Output]:
    if not text:
        return []
    return [
        Chunk(
            turn.owner,
            part.message_id,
            part.kind,
            text,
            message.retry_of,
            recovered,
            part.ordinal,
            state.offsets.sent(state.id, part) - len(text),
        )
    ]


def _retry(turn: Turn, event: ev.RetryScheduled) -> Notice:
    return Notice(
        turn.owner,
        "retry",
        f"The model's provider failed and is tried again (attempt {event.attempt}): "
        f"{event.error.message}",
        {"attempt": event.attempt, "at": event.at, "error": event.error.type},
    )


def _tool_event(
    state: SessionState, turn: Turn, message: Message, event: ev.ToolEvent
) -> list[Output]:
    known = message.tools.get(event.call_id)
    tool = advance(turn.owner, known, event)
    if tool is None:
        return []
    if tool.status in (ToolStatus.IN_PROGRESS, ToolStatus.COMPLETED):
        turn.tool_ran = True
    return _put(state, turn, message, known, tool)


def _restore_tool(
    state: SessionState, turn: Turn, message: Message, message_id: str, part: ToolPart
) -> list[Output]:
    known = message.tools.get(part.id)
    if known is not None and known.status in OVER:
        return []
    tool = tool_of(turn.owner, message_id, part)
    if tool.input is None and known is not None:
        tool = replace(tool, input=known.input)
    if tool.status is not ToolStatus.PENDING:
        turn.tool_ran = True
    if known is not None and known.status is tool.status and known.input == tool.input:
        return children.of_call(state, replace(tool, owner=turn.owner))
    return _put(state, turn, message, known, tool)


def _put(
    state: SessionState, turn: Turn, message: Message, known: Tool | None, tool: Tool
) -> list[Output]:
    # A client that takes an answer over has not seen its tools yet.
    first = known is None or known.owner != turn.owner
    tool = replace(tool, owner=turn.owner, first=first)
    message.tools[tool.call_id] = kept(tool)
    return [*children.of_call(state, tool), tool]
