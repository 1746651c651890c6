"""The files that a tool call touches, as ACP locations."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from typing import Final, TypeGuard

from adapter.acp.bounded import Room, written
from adapter.limits import DEFAULTS, Limits

Json = dict[str, object]

# A path that is longer is left out, for cut it would be another one.
PATH_CHARS: Final = 4096
MAX_LINE: Final = 2**32 - 1
# Part of a line that the paths may take, in bytes of JSON.
SHARE: Final = 32
_PATHS: Final = ("path", "filePath")


def locations(
    given: Mapping[str, object] | None,
    metadata: Mapping[str, object] | None,
    directory: str,
    limits: Limits = DEFAULTS,
) -> list[Json]:
    """The file that the call names, and those that its result or its ask names, up to the limit."""
    room = Room(limits.outbound_line_bytes // SHARE)
    found: dict[str, Json] = {}
    for path, line in (*_named(given or {}), *_reported(metadata or {})):
        full = absolute(path, directory)
        if full in found:
            continue
        if len(found) == limits.tool_locations or not room.fits(written(full)):
            break
        room.take(written(full))
        found[full] = {"path": full} if line is None else {"path": full, "line": line}
    return list(found.values())


def count(
    given: Mapping[str, object] | None, metadata: Mapping[str, object] | None, directory: str
) -> int:
    """How many there are without a limit."""
    named = (*_named(given or {}), *_reported(metadata or {}))
    return len({absolute(path, directory) for path, _ in named})


def absolute(path: str, directory: str) -> str:
    return posixpath.normpath(posixpath.join(directory, path))


def _named(given: Mapping[str, object]) -> list[tuple[str, int | None]]:
    for key in _PATHS:
        path, line = given.get(key), given.get("offset")
        if _is_path(path):
            return [(path, line if type(line) is int and 0 < line <= MAX_LINE else None)]
    return []


def _reported(metadata: Mapping[str, object]) -> list[tuple[str, int | None]]:
    files = metadata.get("files")
    objects = [file for file in files if isinstance(file, dict)] if isinstance(files, list) else []
    return [(path, None) for file in objects if _is_path(path := file.get("file"))]


def _is_path(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and 0 < len(value) <= PATH_CHARS
