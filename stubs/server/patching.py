"""The tool `patch`, which models of the gpt family have in place of `edit` and `write`.

Only files to add are understood here.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

from stubs.server import workspace
from stubs.server.wire import Json

FAMILY: Final = "gpt-"
BEGIN: Final = "*** Begin Patch"
END: Final = "*** End Patch"
ADD: Final = "*** Add File: "
_TOOLS: Final = {"patch": True, "edit": False, "write": False}


class PatchError(ValueError):
    """The text is not a patch, or one that is not understood here."""


@dataclass(frozen=True, slots=True)
class Patch:
    """Files to add, path to content, and what permissions and results say of them."""

    files: dict[str, str]
    changes: list[Json]

    @property
    def metadata(self) -> Json:
        """What the ask shows."""
        return {
            "filepath": ", ".join(self.files),
            "diff": "".join(f"{change['patch']}\n" for change in self.changes),
            "files": self.changes,
        }


def is_withheld(tool: str, model: str) -> bool:
    """Whether a model is not offered this tool because of its family."""
    return tool in _TOOLS and _TOOLS[tool] != (FAMILY in model)


def read(directory: str, text: str) -> Patch:
    """A patch for files below the directory. Raises PatchError."""
    lines = text.strip().splitlines()
    if not lines or lines[0] != BEGIN:
        raise PatchError(f"The first line of the patch must be '{BEGIN}'")
    added: dict[str, list[str]] = {}
    path = ""
    for line in lines[1:]:
        if line == END:
            break
        if line.startswith(ADD):
            path = workspace.relative(directory, line.removeprefix(ADD))
            added[path] = []
        elif path and line.startswith("+"):
            added[path].append(f"{line[1:]}\n")
        else:
            raise PatchError(f"This stub only adds files: {line}")
    files = {path: "".join(content) for path, content in added.items()}
    changes = [
        # The patch names the whole path here, though the change does not.
        workspace.change(os.path.join(directory, path), None, content) | {"file": path}
        for path, content in files.items()
    ]
    return Patch(files, changes)
