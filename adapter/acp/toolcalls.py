"""Tool calls of OpenCode in the words of ACP: kinds, titles, arguments, and asks for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from adapter.acp import toolresults
from adapter.acp.bounded import Room
from adapter.acp.meta import META
from adapter.acp.omitted import Omitted
from adapter.acp.places import count, locations
from adapter.acp.toolresults import NAME_CHARS
from adapter.core.values import Tool, ToolStatus
from adapter.limits import DEFAULTS, Bound, Limits
from contract.shapes import PermissionAsk

Json = dict[str, object]

KINDS: Final[Mapping[str, str]] = {
    "read": "read",
    "edit": "edit",
    "write": "edit",
    "glob": "search",
    "grep": "search",
    "websearch": "search",
    "webfetch": "fetch",
    "shell": "execute",
    "execute": "execute",
    "subagent": "think",
}
# The argument that names what a tool works on, for its title.
SUBJECTS: Final[Mapping[str, tuple[str, ...]]] = {
    "shell": ("command",),
    "read": ("path",),
    "edit": ("path",),
    "write": ("path",),
    "glob": ("pattern",),
    "grep": ("pattern",),
    "webfetch": ("url",),
    "websearch": ("query",),
    "execute": ("code",),
    "subagent": ("description", "agent"),
    "skill": ("name", "id"),
}
TITLE_CHARS: Final = 200
ID_CHARS: Final = 512
# Characters of all arguments of a call.
INPUT_CHARS: Final = 16 * 1024
# Part of a line that they may take, in bytes of JSON: with a result they stay below one line.
INPUT_SHARE: Final = 8


def call_id(message_id: str, call: str) -> str:
    """The model's call ids repeat from turn to turn; ACP wants one that is unique in a session."""
    return f"{message_id}/{call}"[:ID_CHARS]


def describe(tool: Tool, directory: str, limits: Limits = DEFAULTS) -> Json:
    """The fields of a `tool_call` or `tool_call_update` as the tool now stands."""
    fields: Json = {
        "toolCallId": call_id(tool.message_id, tool.call_id),
        "name": tool.name[:NAME_CHARS],
        "kind": KINDS.get(tool.name, "other"),
        "status": tool.status.value,
    }
    missing = Omitted()
    if tool.first or tool.input is not None:
        # Without its input a call has no better title than the one that the client knows.
        fields["title"] = title(tool.name, tool.input, limits, missing)
    if tool.input is not None:
        fields["rawInput"] = _raw_input(tool.input, limits)
    fields |= _locations(tool.input, tool.metadata, directory, limits, missing)
    if tool.status in (ToolStatus.COMPLETED, ToolStatus.FAILED):
        room = toolresults.output_room(limits)
        fields["content"] = toolresults.content(tool, directory, limits)
        fields["rawOutput"] = toolresults.raw_output(tool, room)
        missing.add(Bound.TOOL_OUTPUT_BYTES, room.omitted)
    elif made := toolresults.progress(tool, limits):
        fields["content"] = made
    return fields | _meta(missing)


def title(
    name: str,
    given: Mapping[str, object] | None,
    limits: Limits = DEFAULTS,
    missing: Omitted | None = None,
) -> str:
    """What the tool does, in one short line: its subject, or its name."""
    missing = missing or Omitted()
    for key in SUBJECTS.get(name, ()):
        value = (given or {}).get(key)
        if isinstance(value, str) and value.strip():
            return _one_line(value, limits, missing)
    return _one_line(name, limits, missing) or "tool"


def permission(
    ask: PermissionAsk,
    tool: Tool | None,
    directory: str,
    child: str | None = None,
    limits: Limits = DEFAULTS,
) -> Json:
    """The `toolCall` of a `session/request_permission`, with the change that is asked for.

    The title of the ask of a sub-agent begins with what the sub-agent is called, `child`.
    """
    name = tool.name if tool is not None else ask.action
    source = ask.source
    if source is not None and source.message_id and source.call_id:
        ident = call_id(source.message_id, source.call_id)
    else:
        ident = ask.id[:ID_CHARS]
    given = tool.input if tool is not None else None
    resources = ", ".join(ask.resources) or name
    missing = Omitted()
    what = _one_line(resources, limits, missing)
    if given:
        missing = Omitted()
        what = title(name, given, limits, missing)
    if child is not None:
        what = f"{_one_line(child, limits, missing) or 'Sub-agent'}: {what}"
    fields: Json = {
        "toolCallId": ident,
        "title": what,
        "name": name[:NAME_CHARS],
        "kind": KINDS.get(name, KINDS.get(ask.action, "other")),
        "status": "pending",
    }
    if given is not None:
        fields["rawInput"] = _raw_input(given, limits)
    fields |= _locations(given, ask.metadata, directory, limits, missing)
    content = toolresults.diffs(ask.metadata, directory, toolresults.content_room(limits))
    if content:
        fields["content"] = content
    return fields | _meta(missing)


def _meta(missing: Omitted) -> Json:
    told = missing.told()
    return {"_meta": {META: told}} if told else {}


def _locations(
    given: Mapping[str, object] | None,
    metadata: Mapping[str, object] | None,
    directory: str,
    limits: Limits,
    missing: Omitted,
) -> Json:
    where = locations(given, metadata, directory, limits)
    if not where:
        return {}
    missing.add(Bound.TOOL_LOCATIONS, count(given, metadata, directory) - len(where))
    return {"locations": where}


def _raw_input(given: Mapping[str, object], limits: Limits) -> object:
    return Room(limits.outbound_line_bytes // INPUT_SHARE).value(given, INPUT_CHARS)


def _one_line(text: str, limits: Limits, missing: Omitted) -> str:
    """Shorter than a line may be; what is missing counts only where the limit is shorter still."""
    line = " ".join(text.split())
    most = min(TITLE_CHARS, limits.line_chars)
    if len(line) <= most:
        return line
    if most < TITLE_CHARS:
        missing.add(Bound.LINE_CHARS, len(line) - most + 1)
    return line[: most - 1] + "…"
