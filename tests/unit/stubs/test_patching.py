"""The tool `patch` of the stub, word for word as the real server's was measured."""

from __future__ import annotations

import pytest

from stubs.server.patching import PatchError, is_withheld, read

HOME = "/srv/project"


def patched(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


def test_added_files_are_one_ask_and_name_their_whole_paths() -> None:
    patch = read(HOME, patched("*** Add File: x.txt", "+hi", "*** Add File: d/y.txt", "+a", "+b"))
    assert patch.files == {"x.txt": "hi\n", "d/y.txt": "a\nb\n"}
    path = f"{HOME}/x.txt"
    body = f"Index: {path}\n{'=' * 67}\n--- {path}\n+++ {path}\n@@ -0,0 +1,1 @@\n+hi\n"
    counts = {"status": "added", "additions": 1, "deletions": 0}
    assert patch.changes[0] == {"file": "x.txt", "patch": body, **counts}
    assert patch.metadata["filepath"] == "x.txt, d/y.txt"
    assert patch.metadata["diff"].startswith(f"{body}\nIndex: {HOME}/d/y.txt\n")


@pytest.mark.parametrize("text", ["", "nonsense", patched("*** Delete File: x"), patched("+x")])
def test_anything_else_is_no_patch(text: str) -> None:
    with pytest.raises(PatchError):
        read(HOME, text)


@pytest.mark.parametrize("model", ["gpt-5", "fake-1"])
def test_a_model_has_this_tool_or_the_two_others(model: str) -> None:
    withheld = {tool for tool in ("patch", "edit", "write", "shell") if is_withheld(tool, model)}
    assert withheld == ({"edit", "write"} if model == "gpt-5" else {"patch"})
