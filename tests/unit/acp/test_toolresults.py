"""What tools gave back, as the real server says it and as ACP shows it."""

from __future__ import annotations

from typing import Any

import pytest

from adapter.acp.toolresults import FILE_CHARS, content, progress
from adapter.core.values import Tool, ToolStatus
from contract.shapes import ToolContent

HOME = "/srv/project"
MIB = 1024 * 1024


def made(name: str, status: ToolStatus = ToolStatus.COMPLETED, **more: Any) -> Tool:
    return Tool(1, "msg_1", "call_1", name, status, **more)


def said(words: str) -> ToolContent:
    return ToolContent(type="text", text=words)


def file(uri: str, mime: str | None = None, name: str | None = None) -> ToolContent:
    return ToolContent(type="file", uri=uri, mime=mime, name=name)


def shown(*pieces: ToolContent) -> list[Any]:
    return [block["content"] for block in content(made("read", content=pieces), HOME)]


def test_files_that_came_with_the_result_are_shown() -> None:
    assert shown(
        file("data:image/png;base64,AAAA", "image/png", "p.png"),
        file("data:audio/wav;base64,AAAA", "audio/wav"),
        file("data:application/pdf;base64,AAAA", "application/pdf", "a b.pdf"),
        file("data:image/png;name=x;base64,AAAA", "image/png"),
    ) == [
        {"type": "image", "data": "AAAA", "mimeType": "image/png"},
        {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
        {
            "type": "resource",
            "resource": {
                "uri": "attachment:a%20b.pdf",
                "mimeType": "application/pdf",
                "blob": "AAAA",
            },
        },
        {"type": "image", "data": "AAAA", "mimeType": "image/png"},
    ]


@pytest.mark.parametrize(
    "piece",
    [
        file("data:image/png;base64," + "A" * (FILE_CHARS + 4), "image/png", "p.png"),
        file("data:image/svg+xml,<svg/>", "image/png", "p.png"),
        file("data:", "image/png", "p.png"),
    ],
)
def test_a_file_that_is_too_large_or_not_to_be_read_is_named(piece: ToolContent) -> None:
    assert shown(piece) == [{"type": "text", "text": "[file p.png, image/png]"}]


def test_images_that_do_not_fit_together_are_named() -> None:
    picture = file("data:image/png;base64," + "A" * FILE_CHARS, "image/png", "p.png")
    kinds = [block["type"] for block in shown(picture, picture, picture)]
    assert kinds == ["image", "text", "text"]


def test_a_file_that_write_made_is_a_diff_and_one_that_it_overwrote_is_none() -> None:
    """The result of `write` holds no patch; its words say whether there was a file before."""
    given = {"path": "n.txt", "content": "new\n"}
    created = made("write", input=given, content=(said("Created file successfully: n.txt"),))
    assert content(created, HOME)[0] == {
        "type": "diff",
        "path": "/srv/project/n.txt",
        "oldText": None,
        "newText": "new\n",
    }
    wrote = made("write", input=given, content=(said("Wrote file successfully: n.txt"),))
    failed = made("write", ToolStatus.FAILED, input=given, content=created.content, error="no")
    other = made("shell", input=given, content=created.content)
    for tool in (wrote, failed, other):
        assert all(block["type"] == "content" for block in content(tool, HOME))


CALLS = [
    {"tool": "a.echo", "status": "completed", "input": {"t": "1"}},
    {"tool": "a.echo", "status": "running"},
    {"tool": 5, "status": "running"},
    None,
]


def test_the_calls_of_a_program_are_lines() -> None:
    """`execute` names them in its metadata, while it runs and at its end."""
    lines = [{"type": "content", "content": {"type": "text", "text": LINES}}]
    runs = made("execute", ToolStatus.IN_PROGRESS, metadata={"toolCalls": CALLS})
    assert progress(runs) == lines
    done = made("execute", metadata={"toolCalls": CALLS}, content=(said("2"),))
    assert content(done, HOME) == [
        *lines,
        {"type": "content", "content": {"type": "text", "text": "2"}},
    ]


LINES = "- a.echo (completed)\n- a.echo (running)"


@pytest.mark.parametrize("calls", [None, [], "x", [None], [{"tool": "a"}]])
def test_what_lists_no_calls_shows_none(calls: object) -> None:
    runs = made("execute", ToolStatus.IN_PROGRESS, metadata={"toolCalls": calls})
    assert progress(runs) == []


def test_of_many_calls_the_newest_are_shown() -> None:
    calls = [{"tool": f"t{number}", "status": "completed"} for number in range(100)]
    (block,) = progress(made("execute", ToolStatus.IN_PROGRESS, metadata={"toolCalls": calls}))
    text = str(block["content"])
    assert "36 earlier calls" in text and "t99" in text and "t35 " not in text
