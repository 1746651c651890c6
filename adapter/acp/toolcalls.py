"""Tool calls of OpenCode in the words of ACP: kinds, titles, locations, diffs, results.

The diffs are built from what the server reports in its result (`metadata.files[].patch`) or in
its permission request, never from the arguments of the call: an edit that failed shows none.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Final

from adapter.acp.bounded import Room, cut, written
from adapter.acp.diffs import DiffText, hunks
from adapter.core.values import Tool, ToolStatus
from contract.shapes import PermissionAsk, ToolContent

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
    "subagent": ("description", "agent"),
    "skill": ("name", "id"),
}
PATHS: Final = ("path", "filePath")
TITLE_CHARS: Final = 200
NAME_CHARS: Final = 256
ID_CHARS: Final = 512
# A path or address that is longer is left out, for cut it would be another one.
PATH_CHARS: Final = 4096
# Characters of one text of a result or of a diff, and of all arguments of a call.
RESULT_CHARS: Final = 64 * 1024
INPUT_CHARS: Final = 16 * 1024
DIFFS: Final = 32
PIECES: Final = 64
# Bytes of JSON that the fields of one update may take: together they stay below one line.
INPUT_ROOM: Final = 128 * 1024
CONTENT_ROOM: Final = 512 * 1024
OUTPUT_ROOM: Final = 192 * 1024
MAX_LINE: Final = 2**32 - 1


def call_id(message_id: str, call: str) -> str:
    """The model's call ids repeat from turn to turn; ACP wants one that is unique in a session."""
    return f"{message_id}/{call}"[:ID_CHARS]


def describe(tool: Tool, directory: str) -> Json:
    """The fields of a `tool_call` or `tool_call_update` as the tool now stands."""
    fields: Json = {
        "toolCallId": call_id(tool.message_id, tool.call_id),
        "title": title(tool.name, tool.input),
        "name": tool.name[:NAME_CHARS],
        "kind": KINDS.get(tool.name, "other"),
        "status": tool.status.value,
    }
    if tool.input is not None:
        fields |= _arguments(tool.input, directory)
    if tool.status in (ToolStatus.COMPLETED, ToolStatus.FAILED):
        fields["content"] = _content(tool, directory)
        fields["rawOutput"] = _raw_output(tool)
    return fields


def title(name: str, given: Mapping[str, object] | None) -> str:
    """What the tool does, in one short line: its subject, or its name."""
    for key in SUBJECTS.get(name, ()):
        value = (given or {}).get(key)
        if isinstance(value, str) and value.strip():
            return _one_line(value)
    return _one_line(name) or "tool"


def locations(given: Mapping[str, object], directory: str) -> list[Json]:
    """The file that the call names, as an absolute path."""
    for key in PATHS:
        value = given.get(key)
        if isinstance(value, str) and 0 < len(value) <= PATH_CHARS:
            line = given.get("offset")
            place: Json = {"path": absolute(value, directory)}
            if type(line) is int and 0 < line <= MAX_LINE:
                place["line"] = line
            return [place]
    return []


def absolute(path: str, directory: str) -> str:
    return posixpath.normpath(posixpath.join(directory, path))


def permission(ask: PermissionAsk, tool: Tool | None, directory: str) -> Json:
    """The `toolCall` of a `session/request_permission`, with the change that is asked for."""
    name = tool.name if tool is not None else ask.action
    source = ask.source
    if source is not None and source.message_id and source.call_id:
        ident = call_id(source.message_id, source.call_id)
    else:
        ident = ask.id[:ID_CHARS]
    given = tool.input if tool is not None else None
    fields: Json = {
        "toolCallId": ident,
        "title": title(name, given) if given else _one_line(", ".join(ask.resources) or name),
        "name": name[:NAME_CHARS],
        "kind": KINDS.get(name, KINDS.get(ask.action, "other")),
        "status": "pending",
    }
    if given is not None:
        fields |= _arguments(given, directory)
    content = _diffs(ask.metadata, directory, Room(CONTENT_ROOM))
    if content:
        fields["content"] = content
    return fields


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= TITLE_CHARS else line[: TITLE_CHARS - 1] + "…"


def _arguments(given: Mapping[str, object], directory: str) -> Json:
    fields: Json = {"rawInput": Room(INPUT_ROOM).value(given, INPUT_CHARS)}
    where = locations(given, directory)
    if where:
        fields["locations"] = where
    return fields


def _content(tool: Tool, directory: str) -> list[Json]:
    room = Room(CONTENT_ROOM)
    done = tool.status is ToolStatus.COMPLETED
    content = _diffs(tool.metadata, directory, room) if done else []
    if tool.error is not None:
        content.append(_text(tool.error, room))
    for piece in (tool.content or ())[:PIECES]:
        block = _block(piece, room)
        if block is not None:
            content.append(block)
    return content


def _raw_output(tool: Tool) -> Json:
    room = Room(OUTPUT_ROOM)
    output: Json = {}
    text = "".join(piece.text or "" for piece in tool.content or () if piece.type == "text")
    if text:
        output["output"] = room.text(text, RESULT_CHARS)
    if tool.error is not None:
        output["error"] = room.text(tool.error, RESULT_CHARS)
    if tool.metadata:
        plain = {key: value for key, value in tool.metadata.items() if key != "files"}
        if plain:
            output["metadata"] = room.value(plain, INPUT_CHARS)
    return output


def _block(piece: ToolContent, room: Room) -> Json | None:
    if piece.type == "text":
        return _text(piece.text, room) if piece.text else None
    if piece.type != "file":
        return None
    uri, name = piece.uri or "", cut(piece.name or "", NAME_CHARS)
    mime = piece.mime if piece.mime and len(piece.mime) <= NAME_CHARS else ""
    if not uri or uri.startswith("data:") or len(uri) > PATH_CHARS or room.is_full:
        return _text(f"[file {name or 'without a name'}, {mime or 'unknown type'}]", room)
    room.take(2 * written(uri) + 2 * written(name))
    link: Json = {"type": "resource_link", "uri": uri, "name": name or uri}
    if mime:
        link["mimeType"] = mime
    return {"type": "content", "content": link}


def _text(text: str, room: Room) -> Json:
    return {"type": "content", "content": {"type": "text", "text": room.text(text, RESULT_CHARS)}}


def _diffs(metadata: Mapping[str, object] | None, directory: str, room: Room) -> list[Json]:
    files = (metadata or {}).get("files")
    found: list[Json] = []
    for file in files if isinstance(files, list) else []:
        if not isinstance(file, dict):
            continue
        path, patch = file.get("file"), file.get("patch")
        if not isinstance(path, str) or not isinstance(patch, str) or len(path) > PATH_CHARS:
            continue
        for hunk in hunks(patch, added=file.get("status") == "added"):
            if len(found) == DIFFS or room.is_full:
                return found
            found.append(_diff(absolute(path, directory), hunk, room))
    return found


def _diff(path: str, hunk: DiffText, room: Room) -> Json:
    room.take(written(path))
    return {
        "type": "diff",
        "path": path,
        "oldText": None if hunk.old is None else room.text(hunk.old, RESULT_CHARS),
        "newText": room.text(hunk.new, RESULT_CHARS),
    }
