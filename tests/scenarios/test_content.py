"""What a prompt may hold besides text, and what a client is told besides the answer."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Final

import pytest

from stubs.real_server import real_server
from tests.scenarios.stage import (
    Json,
    Stage,
    agent_argv,
    agent_env,
    checked_agent,
    fails,
    notices,
    words,
)
from tests.scenarios.test_mcp import listed, stdio

PIXEL: Final = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4"
    "2mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


async def test_links_images_and_embedded_text_reach_the_server(stage: Stage) -> None:
    agent = await stage.agent()
    project = stage.project()
    note = project / "note.txt"
    note.write_text("from a file", encoding="utf-8")
    session = await agent.new_session(project)
    result = await agent.prompt(
        session,
        [
            {"type": "text", "text": "look @@text 2@@"},
            {"type": "image", "data": PIXEL, "mimeType": "image/png"},
            {"type": "resource_link", "uri": note.as_uri(), "name": "note.txt"},
            {"type": "resource_link", "uri": "https://example.org/x", "name": "a page"},
            {
                "type": "resource",
                "resource": {"uri": "file:///elsewhere/open.txt", "text": "not saved yet"},
            },
        ],
    )
    assert result["stopReason"] == "end_turn"
    assert agent.transcript(session).text() == words(2)
    (row,) = await (await stage.front_end()).rows(session, "user")
    mentions = f"[note.txt]({note.as_uri()})\n[a page](https://example.org/x)"
    assert row["text"] == f"look @@text 2@@\n{mentions}"
    sent = {file["mime"]: base64.b64decode(file["data"]) for file in row["files"]}
    assert sent["image/png"] == base64.b64decode(PIXEL)
    texts = [base64.b64decode(f["data"]) for f in row["files"] if f["mime"] == "text/plain"]
    assert texts == [b"from a file", b"not saved yet"]


async def test_a_prompt_of_one_long_line_reaches_the_server(stage: Stage) -> None:
    """Readers of lines in Python take 64 KiB unless they are told otherwise."""
    agent = await stage.agent()
    session = await agent.new_session(stage.project())
    said = "x" * 200_000
    assert (await agent.prompt(session, f"{said} @@text 2@@"))["stopReason"] == "end_turn"
    (row,) = await (await stage.front_end()).rows(session, "user")
    assert row["text"] == f"{said} @@text 2@@"


PDF: Final = base64.b64encode(b"%PDF-1.4\n%%EOF\n").decode()


def blob(name: str, kind: str | None, data: str = PIXEL) -> Json:
    """An embedded resource with bytes."""
    resource: Json = {"uri": f"file:///elsewhere/{name}", "blob": data}
    return {"type": "resource", "resource": resource | ({"mimeType": kind} if kind else {})}


async def test_what_the_server_would_drop_is_named_in_the_text(stage: Stage) -> None:
    """The server shows a model neither a binary of unknown type nor sound."""
    agent = await stage.agent()
    project = stage.project()
    program = project / "program"
    program.write_bytes(bytes(range(256)))
    session = await agent.new_session(project)
    await agent.prompt(
        session,
        [
            {"type": "text", "text": "@@text 1@@"},
            {"type": "resource_link", "uri": program.as_uri(), "name": "program"},
            blob("a.zip", "application/zip"),
            blob("b", None),
            blob("c.wav", "audio/wav"),
            blob("d.pdf", "application/pdf", PDF),
            blob("e.png", "image/png"),
        ],
    )
    (row,) = await (await stage.front_end()).rows(session, "user")
    size = len(base64.b64decode(PIXEL))
    assert row["text"].split("\n")[1:] == [
        f"[program]({program.as_uri()})",
        f"[a.zip: application/zip, {size} bytes, content left out]",
        f"[b: application/octet-stream, {size} bytes, content left out]",
        f"[c.wav: audio/wav, {size} bytes, content left out]",
    ]
    kinds = [file["mime"] for file in row["files"]]
    assert kinds == ["application/octet-stream", "application/pdf", "image/png"]


@pytest.mark.real
async def test_a_model_is_told_of_what_it_cannot_take(tmp_path: Path) -> None:
    """The real server alone: images and PDFs go to any model, or it is told what it lacks."""
    async with real_server(tmp_path) as server:
        only_text = {"input": ["text"], "output": ["text"]}
        model = {"name": "T", "modalities": only_text, "limit": {"context": 9000, "output": 900}}
        options = {"baseURL": server.model.url, "apiKey": "no-secret"}
        fake = {"npm": "@ai-sdk/openai-compatible", "options": options}
        provider = {"fake": {**fake, "models": {"fake-1": model}}}
        project = server.add_project("blind", provider=provider)
        argv, env = agent_argv(server.url), agent_env(server.password)
        async with checked_agent(argv, env) as agent:
            session = await agent.new_session(project)
            image = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
            words_ = {"type": "text", "text": "@@text 1@@"}
            await agent.prompt(session, [words_, image, blob("d.pdf", "application/pdf", PDF)])
        seen = json.dumps([request.body for request in server.model.seen])
    for kind in ("image", "pdf"):
        assert f"this model does not support {kind} input" in seen


@pytest.mark.parametrize(
    ("code", "block"),
    [
        (-32602, {"type": "audio", "data": PIXEL, "mimeType": "audio/wav"}),
        (-32602, {"type": "image", "data": "no base64!", "mimeType": "image/png"}),
        (-32602, {"type": "image", "data": PIXEL, "mimeType": "text/plain"}),
        (-32053, blob("x.pdf", "application/pdf", "A" * 8_000_004)),
    ],
)
async def test_what_is_refused_was_not_sent(stage: Stage, code: int, block: Json) -> None:
    """S3-L2: a prompt is looked at before anything of it is dispatched."""
    agent = await stage.agent()
    session = await agent.new_session(stage.project())
    async with fails(code):
        await agent.prompt(session, [{"type": "text", "text": "@@text 1@@"}, block])
    assert await (await stage.front_end()).rows(session, "user") == []
    assert (await agent.prompt(session, "@@text 1@@"))["stopReason"] == "end_turn"


@pytest.mark.parametrize(
    ("script", "shown", "place", "change"),
    [
        ('tool read {"path":"a.txt"}', ("read", "a.txt"), "a.txt", None),
        ('tool write {"path":"n.txt","content":"new"}', ("edit", "n.txt"), "n.txt", (None, "new")),
        ('tool write {"path":"a.txt","content":"over"}', ("edit", "a.txt"), "a.txt", None),
        (
            'tool edit {"path":"a.txt","oldString":"one","newString":"two"}',
            ("edit", "a.txt"),
            "a.txt",
            ("one\n", "two\n"),
        ),
        ('tool shell {"command":"echo  hi"}', ("execute", "echo hi"), None, None),
    ],
)
async def test_tools_are_shown_as_what_they_did(
    stage: Stage,
    script: str,
    shown: tuple[str, str],
    place: str | None,
    change: tuple[str | None, str] | None,
) -> None:
    """Kind, title, places and changes, the changes of what the server reports alone."""
    agent = await stage.agent()
    project = stage.project({"*": "allow"})
    (project / "a.txt").write_text("one\n", encoding="utf-8")
    session = await agent.new_session(project)
    await agent.prompt(session, f"@@{script} || text 1@@")
    (tool,) = agent.transcript(session).tools.values()
    assert (tool["status"], tool["kind"], tool["title"]) == ("completed", *shown)
    places = [one["path"] for one in tool.get("locations", [])]
    assert places == ([] if place is None else [str(project / place)])
    diffs = [block for block in tool["content"] if block["type"] == "diff"]
    assert [(one["oldText"], one["newText"]) for one in diffs] == (
        [] if change is None else [change]
    )
    assert tool["rawInput"] == json.loads(script.split(" ", 2)[2])
    assert tool["rawOutput"]["output"]


async def test_mcp_servers_of_a_client_are_not_added_and_it_is_told(stage: Stage) -> None:
    """Every session of the directory would have their tools, and what was entrusted to them."""
    agent, project = await stage.agent(), stage.project()
    session = await agent.new_session(project, mcpServers=[stdio("mine", "ok")])
    await agent.prompt(session, "@@text 2@@")
    assert notices(agent.transcript(session)) == ["mcp"]
    assert await listed(stage, project) == {}


async def test_a_client_that_takes_notices_gets_them_as_such(stage: Stage) -> None:
    argv, env = agent_argv(stage.backend.url), agent_env(stage.backend.password)
    async with checked_agent(argv, env, capabilities={"session": {"notices": {}}}) as agent:
        session = await agent.new_session(stage.project())
        await agent.prompt(session, "@@error 500 && text 3@@")
        (notice,) = agent.transcript(session).notices
        assert (notice["sessionUpdate"], notice["severity"]) == ("notice", "warning")
        assert notice["title"]
