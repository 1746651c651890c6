"""Tool calls of OpenCode in the words of ACP: kinds, titles, arguments, and asks for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from adapter.acp import toolresults
from adapter.acp.bounded import Room
from adapter.acp.meta import META
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
# The key in `_meta` of what a limit kept out of an update, by the name of the limit.
OMITTED: Final = "omitted"


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
    if tool.first or tool.input is not None:
        # Without its input a call has no better title than the one that the client knows.
        fields["title"] = title(tool.name, tool.input, limits)
    if tool.input is not None:
        fields["rawInput"] = _raw_input(tool.input, limits)
    omitted: dict[str, int] = {}
    where = locations(tool.input, tool.metadata, directory, limits)
    if where:
        fields["locations"] = where
        missing = count(tool.input, tool.metadata, directory) - len(where)
        if missing:
            omitted[Bound.TOOL_LOCATIONS.value] = missing
    if tool.status in (ToolStatus.COMPLETED, ToolStatus.FAILED):
        room = toolresults.output_room(limits)
        fields["content"] = toolresults.content(tool, directory, limits)
        fields["rawOutput"] = toolresults.raw_output(tool, room)
        if room.omitted:
            omitted[Bound.TOOL_OUTPUT_BYTES.value] = room.omitted
    elif made := toolresults.progress(tool, limits):
        fields["content"] = made
    if omitted:
        fields["_meta"] = {META: {OMITTED: omitted}}
    return fields


def title(name: str, given: Mapping[str, object] | None, limits: Limits = DEFAULTS) -> str:
    """What the tool does, in one short line: its subject, or its name."""
    for key in SUBJECTS.get(name, ()):
        value = (given or {}).get(key)
        if isinstance(value, str) and value.strip():
            return _one_line(value, limits)
    return _one_line(name, limits) or "tool"


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
    what = title(name, given, limits) if given else _one_line(resources, limits)
    fields: Json = {
        "toolCallId": ident,
        "title": what if child is None else f"{_one_line(child, limits) or 'Sub-agent'}: {what}",
        "name": name[:NAME_CHARS],
        "kind": KINDS.get(name, KINDS.get(ask.action, "other")),
        "status": "pending",
    }
    if given is not None:
        fields["rawInput"] = _raw_input(given, limits)
    where = locations(given, ask.metadata, directory, limits)
    if where:
        fields["locations"] = where
    content = toolresults.diffs(ask.metadata, directory, toolresults.content_room(limits))
    if content:
        fields["content"] = content
    return fields


def _raw_input(given: Mapping[str, object], limits: Limits) -> object:
    return Room(limits.outbound_line_bytes // INPUT_SHARE).value(given, INPUT_CHARS)


def _one_line(text: str, limits: Limits) -> str:
    line = " ".join(text.split())
    most = min(TITLE_CHARS, limits.line_chars)
    return line if len(line) <= most else line[: most - 1] + "…"
