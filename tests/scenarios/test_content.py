"""What a prompt may hold besides text, and what a client is told besides the answer."""

from __future__ import annotations

import base64
from typing import Final

from tests.scenarios.stage import Stage, agent_argv, agent_env, checked_agent, notices, words

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
    assert row["text"] == "look @@text 2@@\n[a page](https://example.org/x)"
    sent = {file["mime"]: base64.b64decode(file["data"]) for file in row["files"]}
    assert sent["image/png"] == base64.b64decode(PIXEL)
    texts = [base64.b64decode(f["data"]) for f in row["files"] if f["mime"] == "text/plain"]
    assert texts == [b"from a file", b"not saved yet"]


async def test_mcp_servers_of_a_client_are_not_added_and_it_is_told(stage: Stage) -> None:
    agent = await stage.agent()
    server = {"name": "mine", "command": "true", "args": [], "env": []}
    session = await agent.new_session(stage.project(), mcpServers=[server])
    await agent.prompt(session, "@@text 2@@")
    assert notices(agent.transcript(session)) == ["mcp"]


async def test_a_client_that_takes_notices_gets_them_as_such(stage: Stage) -> None:
    argv, env = agent_argv(stage.backend.url), agent_env(stage.backend.password)
    async with checked_agent(argv, env, capabilities={"session": {"notices": {}}}) as agent:
        session = await agent.new_session(stage.project())
        await agent.prompt(session, "@@error 500 && text 3@@")
        (notice,) = agent.transcript(session).notices
        assert (notice["sessionUpdate"], notice["severity"]) == ("notice", "warning")
        assert notice["title"]
