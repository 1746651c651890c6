"""Builders of `session/update` parameters: pure functions from the core's outputs to ACP v1.

Only fields of the stable schema stand at the root of an update; everything of ours goes into
`_meta` under one key (ACP: implementations must not add fields to spec types). Every line stays
far below the outbound limit: text is split, tool results are cut with a mark.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from adapter.acp import toolcalls
from adapter.acp.bounded import Room
from adapter.acp.meta import META
from adapter.acp.omitted import Omitted
from adapter.acp.origins import told_of
from adapter.core.values import (
    Chunk,
    Compaction,
    Line,
    Notice,
    Outcome,
    Progress,
    Prompted,
    Tool,
    ToolStatus,
    Usage,
)
from adapter.limits import DEFAULTS, Bound, Limits
from contract.errors import AcpError

# JSON may need six bytes for a character, and the line holds more than the text.
LINE_SHARE: Final = 8
DETAIL_ROOM: Final = 64 * 1024
# Kinds of notices that tell of nothing that went wrong.
INFORMING: Final = frozenset(
    {"waiting", "resumed", "carried_out", "nothing_to_compact", "compaction_goes_on"}
)

Json = dict[str, object]


def chunks(chunk: Chunk, limits: Limits = DEFAULTS) -> Iterator[Json]:
    """`agent_message_chunk` or `agent_thought_chunk`, never empty, split when very long."""
    kind = "agent_message_chunk" if chunk.kind == "text" else "agent_thought_chunk"
    meta: Json = {}
    if chunk.retry_of is not None:
        meta["retryOf"] = chunk.retry_of
    if chunk.recovered:
        meta["origin"] = "recovered"
    meta |= told_of(chunk.origin)
    for text in _pieces(chunk.text, limits):
        update: Json = {
            "sessionUpdate": kind,
            "messageId": chunk.message_id,
            "content": {"type": "text", "text": text},
        }
        if meta:
            update["_meta"] = {META: meta}
        yield update


def user_text(message_id: str, text: str, limits: Limits = DEFAULTS) -> Iterator[Json]:
    """`user_message_chunk`s of a prompt's text, split when very long."""
    for piece in _pieces(text, limits):
        yield user_block(message_id, {"type": "text", "text": piece})


def _pieces(text: str, limits: Limits) -> Iterator[str]:
    size = min(limits.text_chunk_chars, limits.outbound_line_bytes // LINE_SHARE)
    for start in range(0, len(text), size):
        yield text[start : start + size]


def user_block(message_id: str, block: Json) -> Json:
    """`user_message_chunk` of one content block."""
    return {"sessionUpdate": "user_message_chunk", "messageId": message_id, "content": block}


def with_meta(update: Json, **told: object) -> Json:
    """The update with more of ours in its `_meta`."""
    meta = update.get("_meta")
    known = meta.get(META) if isinstance(meta, dict) else None
    mine = known if isinstance(known, dict) else {}
    return {**update, "_meta": {META: {**mine, **told}}}


def tool(tool_call: Tool, directory: str, limits: Limits = DEFAULTS) -> Json:
    """`tool_call` at first sight, `tool_call_update` afterwards.

    What a limit kept out of it stands in `_meta` (`omitted`).
    """
    kind = "tool_call" if tool_call.first else "tool_call_update"
    update: Json = {"sessionUpdate": kind, **toolcalls.describe(tool_call, directory, limits)}
    return _with(update, told_of(tool_call.origin))


def progress(made: Progress, limits: Limits = DEFAULTS) -> Json:
    """`tool_call_update` of a running call: one line of text for each call of its sub-agents."""
    missing = Omitted()
    lines = [f"… {made.left_out} earlier tool calls"] if made.left_out else []
    lines.extend(_line(line, limits, missing) for line in made.lines)
    text: Json = {"type": "text", "text": "\n".join(lines)}
    update: Json = {
        "sessionUpdate": "tool_call_update",
        "toolCallId": toolcalls.call_id(made.message_id, made.call_id),
        "content": [{"type": "content", "content": text}],
    }
    return _with(update, missing.told())


def prompted(told: Prompted, limits: Limits = DEFAULTS) -> Iterator[Json]:
    """`user_message_chunk` of a prompt that another client sent."""
    for update in user_text(told.message_id, told.text, limits):
        yield with_meta(update, **told_of(told.origin))


def usage(spent: Usage, size: int) -> Json:
    """`usage_update`: tokens in context of `size`, and the session's cost in US dollars."""
    update: Json = {"sessionUpdate": "usage_update", "used": spent.used, "size": size}
    if spent.cost is not None:
        update["cost"] = {"amount": spent.cost, "currency": "USD"}
    return update


def notice(told: Notice, limits: Limits = DEFAULTS, *, advertised: bool) -> Json:
    """`notice` for a client that advertised it, else a `session_info_update` with `_meta`."""
    missing = Omitted()
    title = missing.line(told.title, limits)
    room = Room(DETAIL_ROOM)
    data = {key: room.value(value, limits.line_chars) for key, value in told.data.items()}
    missing.add(Bound.LINE_CHARS, room.omitted)
    detail: Json = {"notice": told.kind, "text": title, **data, **missing.told()}
    if advertised:
        return {
            "sessionUpdate": "notice",
            "severity": "info" if told.kind in INFORMING else "warning",
            "title": title,
            "_meta": {META: detail},
        }
    return {"sessionUpdate": "session_info_update", "_meta": {META: detail}}


def compaction(told: Compaction, limits: Limits = DEFAULTS, *, advertised: bool) -> Json:
    """`compaction_update` for a client that advertised it, else what it says in `_meta` alone."""
    missing = Omitted()
    error = None if told.error is None else missing.line(told.error, limits)
    reason: Json = {"reason": told.reason} if told.reason else {}
    if advertised:
        update: Json = {
            "sessionUpdate": "compaction_update",
            "compactionId": told.compaction_id,
            "status": told.status,
        }
        if error is not None:
            update["error"] = error
        return _with(update, reason | missing.told())
    detail: Json = {"id": told.compaction_id, "status": told.status, **reason}
    if error is not None:
        detail["error"] = error
    return _with({"sessionUpdate": "session_info_update"}, {"compaction": detail} | missing.told())


def config_options(options: list[Json]) -> Json:
    """`config_option_update`: always the whole list."""
    return {"sessionUpdate": "config_option_update", "configOptions": options}


def current_mode(mode: str) -> Json:
    """`current_mode_update`."""
    return {"sessionUpdate": "current_mode_update", "currentModeId": mode}


def available_commands(commands: list[Json]) -> Json:
    """`available_commands_update`: always the whole list."""
    return {"sessionUpdate": "available_commands_update", "availableCommands": commands}


def title(text: str, limits: Limits = DEFAULTS) -> Json:
    """`session_info_update` with the title that the session now has."""
    missing = Omitted()
    update: Json = {"sessionUpdate": "session_info_update", "title": missing.line(text, limits)}
    return _with(update, missing.told())


def prompt_error(outcome: Outcome, limits: Limits = DEFAULTS) -> AcpError:
    """The error of `session/prompt`, for an outcome without a stop reason."""
    missing = Omitted()
    message = missing.line(outcome.message, limits)
    return AcpError(outcome.code, message, error_data(outcome) | missing.told())


def prompt_result(outcome: Outcome) -> Json:
    """The result of `session/prompt`, with the audit of lifecycle.md in `_meta`.

    `usage` is of the unstable ACP v1: the field in which clients look for the tokens of a turn
    (acpx and the SDKs). It is left out when they are not known.
    """
    stop = outcome.stop.value if outcome.stop else "end_turn"
    result: Json = {"stopReason": stop, "_meta": {META: audit(outcome)}}
    if outcome.tokens is not None:
        tokens = outcome.tokens
        result["usage"] = {
            "inputTokens": tokens.input,
            "outputTokens": tokens.output,
            "thoughtTokens": tokens.reasoning,
            "cachedReadTokens": tokens.cache.read,
            "cachedWriteTokens": tokens.cache.write,
            "totalTokens": tokens.total,
        }
    return result


def audit(outcome: Outcome) -> Json:
    """`{messageId, gaps, recoveredChars, shared, cancel}`, `omittedChars` if a limit cut it."""
    told: Json = {
        "messageId": outcome.message_id,
        "gaps": outcome.gaps,
        "recoveredChars": outcome.recovered,
        "shared": outcome.shared,
        "cancel": outcome.cancel,
    }
    if outcome.omitted:
        told["omittedChars"] = outcome.omitted
    return told


def error_data(outcome: Outcome) -> Json:
    """`data` of the error of a turn: what a program needs to decide what to do next."""
    return {
        "code": outcome.reason,
        "admitted": outcome.admitted,
        "messageId": outcome.message_id,
        "retrySafe": outcome.retry_safe,
        "gaps": outcome.gaps,
        "shared": outcome.shared,
    }


def _with(update: Json, told: Json) -> Json:
    return with_meta(update, **told) if told else update


def _line(line: Line, limits: Limits, missing: Omitted) -> str:
    what = toolcalls.title(line.name, line.input, limits, missing)
    name = "" if what == line.name else f"{line.name}: "
    return f"{'  ' * line.depth}- {name}{what} ({_state(line.status)})"


def _state(status: ToolStatus | None) -> str:
    match status:
        case ToolStatus.COMPLETED:
            return "done"
        case ToolStatus.FAILED:
            return "failed"
        case None:
            return "no news"
        case _:
            return "running"
