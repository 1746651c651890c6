"""Tool calls of OpenCode in the words of ACP: kinds, titles, locations, diffs, results.

The diffs are built from what the server reports in its result (`metadata.files[].patch`) or in
its permission request, never from the arguments of the call: an edit that failed shows none.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Final

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
# Characters of a tool's texts in one update; what is more is cut with a mark.
RESULT_CHARS: Final = 64 * 1024
INPUT_CHARS: Final = 16 * 1024
DIFFS: Final = 32
DEPTH: Final = 6
ITEMS: Final = 64


def call_id(message_id: str, call: str) -> str:
    """The model's call ids repeat from turn to turn; ACP wants one that is unique in a session."""
    return f"{message_id}/{call}"


def describe(tool: Tool, directory: str) -> Json:
    """The fields of a `tool_call` or `tool_call_update` as the tool now stands."""
    fields: Json = {
        "toolCallId": call_id(tool.message_id, tool.call_id),
        "title": title(tool.name, tool.input),
        "name": tool.name,
        "kind": KINDS.get(tool.name, "other"),
        "status": tool.status.value,
    }
    if tool.input is not None:
        fields["rawInput"] = shortened(tool.input, INPUT_CHARS)
        where = locations(tool.input, directory)
        if where:
            fields["locations"] = where
    if tool.status in (ToolStatus.COMPLETED, ToolStatus.FAILED):
        fields["content"] = _content(tool, directory)
        fields["rawOutput"] = _raw_output(tool)
    return fields


def title(name: str, given: Mapping[str, object] | None) -> str:
    """What the tool does, in one short line: its subject, or its name."""
    for key in SUBJECTS.get(name, ()):
        value = (given or {}).get(key)
        if isinstance(value, str) and value.strip():
            line = " ".join(value.split())
            return line if len(line) <= TITLE_CHARS else line[: TITLE_CHARS - 1] + "…"
    return name


def locations(given: Mapping[str, object], directory: str) -> list[Json]:
    """The file that the call names, as an absolute path."""
    for key in PATHS:
        value = given.get(key)
        if isinstance(value, str) and value:
            line = given.get("offset")
            place: Json = {"path": absolute(value, directory)}
            if type(line) is int and line > 0:
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
        ident = ask.id
    given = tool.input if tool is not None else None
    fields: Json = {
        "toolCallId": ident,
        "title": title(name, given) if given else (", ".join(ask.resources) or name)[:TITLE_CHARS],
        "name": name,
        "kind": KINDS.get(name, KINDS.get(ask.action, "other")),
        "status": "pending",
    }
    if given is not None:
        fields["rawInput"] = shortened(given, INPUT_CHARS)
        where = locations(given, directory)
        if where:
            fields["locations"] = where
    content = _diffs(ask.metadata, directory)
    if content:
        fields["content"] = content
    return fields


def shortened(value: object, budget: int, depth: int = DEPTH) -> object:
    """JSON of bounded size: long texts cut with a mark, long lists and deep nests closed."""
    if isinstance(value, str):
        return cut(value, budget)
    if isinstance(value, dict):
        if depth == 0:
            return "…"
        share = max(budget // max(len(value), 1), 64)
        return {
            cut(str(key), 256): shortened(item, share, depth - 1)
            for key, item in list(value.items())[:ITEMS]
        }
    if isinstance(value, list | tuple):
        if depth == 0:
            return "…"
        share = max(budget // max(len(value), 1), 64)
        return [shortened(item, share, depth - 1) for item in list(value)[:ITEMS]]
    return value


def cut(text: str, limit: int) -> str:
    """At most `limit` characters and a mark that says how many are missing."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}… [{len(text) - limit} characters more]"


def _content(tool: Tool, directory: str) -> list[Json]:
    content = _diffs(tool.metadata, directory) if tool.status is ToolStatus.COMPLETED else []
    if tool.error is not None:
        content.append(_text(tool.error))
    for piece in tool.content or ():
        block = _block(piece)
        if block is not None:
            content.append(block)
    return content


def _raw_output(tool: Tool) -> Json:
    output: Json = {}
    text = "".join(piece.text or "" for piece in tool.content or () if piece.type == "text")
    if text:
        output["output"] = cut(text, RESULT_CHARS)
    if tool.error is not None:
        output["error"] = cut(tool.error, RESULT_CHARS)
    if tool.metadata:
        plain = {key: value for key, value in tool.metadata.items() if key != "files"}
        if plain:
            output["metadata"] = shortened(plain, INPUT_CHARS)
    return output


def _block(piece: ToolContent) -> Json | None:
    if piece.type == "text" and piece.text:
        return _text(piece.text)
    if piece.type == "file" and piece.uri and not piece.uri.startswith("data:"):
        link: Json = {"type": "resource_link", "uri": piece.uri, "name": piece.name or piece.uri}
        if piece.mime:
            link["mimeType"] = piece.mime
        return {"type": "content", "content": link}
    if piece.type == "file":
        return _text(f"[file {piece.name or 'without a name'}, {piece.mime or 'unknown type'}]")
    return None


def _text(text: str) -> Json:
    return {"type": "content", "content": {"type": "text", "text": cut(text, RESULT_CHARS)}}


def _diffs(metadata: Mapping[str, object] | None, directory: str) -> list[Json]:
    files = (metadata or {}).get("files")
    found: list[Json] = []
    for file in files if isinstance(files, list) else []:
        if not isinstance(file, dict):
            continue
        path, patch = file.get("file"), file.get("patch")
        if not isinstance(path, str) or not isinstance(patch, str):
            continue
        for hunk in hunks(patch, added=file.get("status") == "added"):
            if len(found) == DIFFS:
                return found
            found.append(_diff(absolute(path, directory), hunk))
    return found


def _diff(path: str, hunk: DiffText) -> Json:
    return {
        "type": "diff",
        "path": path,
        "oldText": None if hunk.old is None else cut(hunk.old, INPUT_CHARS),
        "newText": cut(hunk.new, INPUT_CHARS),
    }
