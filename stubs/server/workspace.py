"""Files of the project: paths, contents, patches, and the snapshots that steps refer to."""

from __future__ import annotations

import difflib
import os
import re
from pathlib import Path

from stubs.server.wire import Json, digest


class Workspaces:
    """Counts the writes of the tools per directory, so that a snapshot id changes with them."""

    def __init__(self) -> None:
        self._writes: dict[str, list[str]] = {}

    def snapshot(self, directory: str) -> str:
        """The id of the directory's present state."""
        return digest(f"{directory}#{len(self._writes.get(directory, ()))}")

    def mark(self, directory: str) -> int:
        """A point in time, to be given to `since`."""
        return len(self._writes.get(directory, ()))

    def since(self, directory: str, mark: int) -> list[str]:
        """The files that were written after the mark, each once."""
        return sorted(set(self._writes.get(directory, [])[mark:]))

    def write(self, directory: str, path: str, content: str) -> None:
        """Write a file and make its folders. Raises OSError."""
        full = os.path.join(directory, path)
        os.makedirs(os.path.dirname(full) or ".", exist_ok=True)
        with open(full, "w", encoding="utf-8", newline="") as file:
            file.write(content)
        self._writes.setdefault(directory, []).append(path)


def read(directory: str, path: str) -> str | None:
    """The text of a file, or None when it cannot be read."""
    try:
        with open(os.path.join(directory, path), encoding="utf-8", newline="") as file:
            return file.read()
    except (OSError, UnicodeDecodeError):
        return None


def find(directory: str, pattern: str) -> list[str]:
    """The paths in the directory that a glob pattern finds."""
    root = Path(directory)
    return sorted(str(path.relative_to(root)) for path in root.glob(pattern))


def relative(directory: str, path: str) -> str:
    """The path from the directory where it lies inside, else the absolute path."""
    full = os.path.normpath(os.path.join(directory, path))
    inside = full == directory or full.startswith(directory.rstrip("/") + "/")
    return os.path.relpath(full, directory) if inside else full


def change(path: str, before: str | None, after: str) -> Json:
    """A file's change as permissions and edit results show it, with a unified patch."""
    old = (before or "").splitlines(keepends=True)
    new = after.splitlines(keepends=True)
    lines = list(difflib.unified_diff(old, new, path, path, n=4))[2:]
    body = ""
    for line in lines:
        if line.startswith("@@"):
            body += _full_header(line)
        else:
            body += line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
    return {
        "file": path,
        "patch": f"Index: {path}\n{'=' * 67}\n--- {path}\n+++ {path}\n{body}",
        "status": "added" if before is None else "modified",
        "additions": sum(line.startswith("+") for line in lines),
        "deletions": sum(line.startswith("-") for line in lines),
    }


def _full_header(header: str) -> str:
    """A hunk header with both counts written out: "@@ -1 +1 @@" is "@@ -1,1 +1,1 @@"."""
    return re.sub(r"([-+]\d+)(?=[ ])(?!,)", r"\1,1", header)
