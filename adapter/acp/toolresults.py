"""What a tool call gave back, as the content and the raw output of ACP.

Diffs are built from what the server reports: in its result (`metadata.files[].patch`), in its
permission request, or in the words by which it says that a file was created. An edit that failed
shows none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import quote

from adapter.acp.bounded import Room, cut, written
from adapter.acp.diffs import DiffText, hunks
from adapter.acp.places import PATH_CHARS, absolute
from adapter.core.values import Tool, ToolStatus
from adapter.limits import DEFAULTS, Limits
from contract.shapes import ToolContent

Json = dict[str, object]

NAME_CHARS: Final = 256
# Characters of one text of a result or of a diff as it is shown, and of the metadata of a result.
RESULT_CHARS: Final = 64 * 1024
METADATA_CHARS: Final = 16 * 1024
# Characters of base64 of one file in a result; a larger one is named and left out.
FILE_CHARS: Final = 256 * 1024
DIFFS: Final = 32
PIECES: Final = 64
CALLS: Final = 64
# Parts of a line that the content and the raw output of one update may take, in bytes of JSON.
CONTENT_SHARE: Final = 2
OUTPUT_SHARE: Final = 4
_DATA: Final = re.compile(r"data:[^;,]*(?:;[^;,]*)*;base64,", re.I)
# How OpenCode 2.0.15 says that `write` made a new file; its result holds no patch.
_CREATED: Final = "Created file successfully"


def content_room(limits: Limits) -> Room:
    """What the content of one update may take."""
    return Room(limits.outbound_line_bytes // CONTENT_SHARE)


def output_room(limits: Limits) -> Room:
    """What the raw output of one call may take."""
    return Room(min(limits.tool_output_bytes, limits.outbound_line_bytes // OUTPUT_SHARE))


def content(tool: Tool, directory: str, limits: Limits = DEFAULTS) -> list[Json]:
    """The content of a call that is over."""
    room, chars = content_room(limits), min(RESULT_CHARS, limits.tool_output_bytes)
    done = tool.status is ToolStatus.COMPLETED
    blocks = diffs(tool.metadata, directory, room) if done else []
    if done and not blocks:
        blocks.extend(_created(tool, directory, room))
    blocks.extend(_calls(tool, room))
    if tool.error is not None:
        blocks.append(_text(tool.error, room, chars))
    for piece in (tool.content or ())[:PIECES]:
        block = _block(piece, room, chars)
        if block is not None:
            blocks.append(block)
    return blocks


def progress(tool: Tool, limits: Limits = DEFAULTS) -> list[Json]:
    """The content of a call that runs: what a program of `execute` has called so far."""
    return list(_calls(tool, content_room(limits)))


def raw_output(tool: Tool, room: Room) -> Json:
    """Texts, error and metadata of a call that is over; its patches are shown as diffs."""
    output: Json = {}
    text = "".join(piece.text or "" for piece in tool.content or () if piece.type == "text")
    if text:
        output["output"] = room.text(text, room.left)
    if tool.error is not None:
        output["error"] = room.text(tool.error, room.left)
    if tool.metadata:
        plain = {key: value for key, value in tool.metadata.items() if key != "files"}
        if plain:
            output["metadata"] = room.value(plain, METADATA_CHARS)
    return output


def diffs(metadata: Mapping[str, object] | None, directory: str, room: Room) -> list[Json]:
    """The changes that the server reports in the metadata of a result or of an ask."""
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


def _created(tool: Tool, directory: str, room: Room) -> Iterator[Json]:
    """A file that `write` made; what it overwrites is not said, so that shows no diff."""
    if tool.name != "write" or not (tool.content and tool.input):
        return
    path, text = tool.input.get("path"), tool.input.get("content")
    if not (tool.content[0].text or "").startswith(_CREATED):
        return
    if isinstance(path, str) and 0 < len(path) <= PATH_CHARS and isinstance(text, str):
        yield _diff(absolute(path, directory), DiffText(None, text), room)


def _calls(tool: Tool, room: Room) -> Iterator[Json]:
    """One line for each call of a program (`metadata.toolCalls` of `execute`), the newest last."""
    calls = (tool.metadata or {}).get("toolCalls")
    if not isinstance(calls, list) or not calls:
        return
    lines = [f"… {len(calls) - CALLS} earlier calls"] if len(calls) > CALLS else []
    for call in calls[-CALLS:]:
        if isinstance(call, dict):
            name, state = call.get("tool"), call.get("status")
            if isinstance(name, str) and isinstance(state, str):
                lines.append(f"- {cut(name, NAME_CHARS)} ({cut(state, NAME_CHARS)})")
    if lines:
        yield _text("\n".join(lines), room, RESULT_CHARS)


def _block(piece: ToolContent, room: Room, chars: int) -> Json | None:
    if piece.type == "text":
        return _text(piece.text, room, chars) if piece.text else None
    if piece.type != "file":
        return None
    uri, name = piece.uri or "", cut(piece.name or "", NAME_CHARS)
    mime = piece.mime if piece.mime and len(piece.mime) <= NAME_CHARS else ""
    head = _DATA.match(uri)
    if head is not None and mime:
        held = _held(uri[head.end() :], mime, name, room)
        if held is not None:
            return {"type": "content", "content": held}
    if not uri or uri[:5].lower() == "data:" or len(uri) > PATH_CHARS or room.is_full:
        return _text(
            f"[file {name or 'without a name'}, {mime or 'unknown type'}]", room, RESULT_CHARS
        )
    room.take(2 * written(uri) + 2 * written(name))
    link: Json = {"type": "resource_link", "uri": uri, "name": name or uri}
    if mime:
        link["mimeType"] = mime
    return {"type": "content", "content": link}


def _held(data: str, mime: str, name: str, room: Room) -> Json | None:
    """A file whose bytes are in the result, if they are few enough and fit."""
    if len(data) > FILE_CHARS or not room.fits(written(data) + 2 * written(name)):
        return None
    room.take(written(data) + 2 * written(name))
    if mime.startswith(("image/", "audio/")):
        return {"type": mime.partition("/")[0], "data": data, "mimeType": mime}
    # It has no address: its bytes came with the result.
    uri = f"attachment:{quote(name or 'file', errors='replace')}"
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime, "blob": data}}


def _text(text: str, room: Room, chars: int) -> Json:
    return {"type": "content", "content": {"type": "text", "text": room.text(text, chars)}}
