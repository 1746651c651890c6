"""Rows of a session as the updates of a replay."""

from __future__ import annotations

from typing import Any

from adapter.acp.capabilities import Capabilities
from adapter.engine.replay import IMAGE_CHARS, Replay
from contract.reads import parse_row

Json = dict[str, Any]
TEXT = {"type": "text", "text": "Hello"}


def replay(*rows: Json, active: bool = False, **can: bool) -> list[Json]:
    """The updates of these rows, in order."""
    playing = Replay("/srv/project", Capabilities(**can))
    playing.active = active
    return [update for row in rows for update in playing.updates(parse_row(row))]


def user(**more: Any) -> Json:
    return {"id": "msg_u", "type": "user", "text": "Ask", **more}


def assistant(*content: Json, ident: str = "msg_a", **more: Any) -> Json:
    return {"id": ident, "type": "assistant", "content": list(content), **more}


def tool(status: str, **state: Any) -> Json:
    return {
        "type": "tool",
        "id": "call_1",
        "name": "shell",
        "state": {"status": status, "input": {"command": "ls"}, **state},
    }


def ours(update: Json) -> Json:
    told: Json = update["_meta"]["opencode-acp"]
    return told


def test_every_update_says_that_it_is_a_replay() -> None:
    updates = replay(user(), assistant({"type": "reasoning", "text": "Hm"}, TEXT, finish="stop"))
    assert [update["sessionUpdate"] for update in updates] == [
        "user_message_chunk",
        "agent_thought_chunk",
        "agent_message_chunk",
    ]
    assert [update["messageId"] for update in updates] == ["msg_u", "msg_a", "msg_a"]
    assert {ours(update)["origin"] for update in updates} == {"replay"}


def test_every_update_says_when_it_was() -> None:
    asked = user(time={"created": 1000})
    answer = assistant(TEXT, tool("completed"), time={"created": 2000})
    assert [ours(update)["time"] for update in replay(asked, answer)] == [1000, 2000, 2000]
    assert "time" not in ours(replay(user())[0])


def test_a_tool_is_one_update_with_all_that_is_known() -> None:
    (update,) = replay(assistant(tool("completed", content=[{"type": "text", "text": "a\nb"}])))
    assert (update["sessionUpdate"], update["status"]) == ("tool_call", "completed")
    assert update["toolCallId"] == "msg_a/call_1"
    assert update["rawInput"] == {"command": "ls"}
    (block,) = update["content"]
    assert block["content"] == {"type": "text", "text": "a\nb"}


def test_two_calls_of_one_name_are_one_call_with_an_update() -> None:
    updates = replay(assistant(tool("completed"), tool("completed")))
    assert [u["sessionUpdate"] for u in updates] == ["tool_call", "tool_call_update"]


def test_a_call_without_an_end_is_open_only_while_the_session_runs() -> None:
    (running,) = replay(assistant(tool("running")), active=True)
    (dead,) = replay(assistant(tool("running")))
    (unborn,) = replay(assistant(tool("streaming")))
    assert [update["status"] for update in (running, dead, unborn)] == [
        "in_progress",
        "failed",
        "failed",
    ]


def test_an_answer_that_was_tried_again_says_so() -> None:
    error = {"type": "provider.internal", "message": "overloaded"}
    updates = replay(
        user(),
        assistant(TEXT, finish="error", error=error),
        {"id": "msg_s", "type": "synthetic", "text": "Continue"},
        assistant(TEXT, ident="msg_b", finish="stop"),
        user(),
        assistant(TEXT, ident="msg_c", finish="stop"),
    )
    texts = [u for u in updates if u["sessionUpdate"] == "agent_message_chunk"]
    assert [ours(update).get("retryOf") for update in texts] == [None, "msg_a", None]
    (failed,) = [ours(update) for update in updates if "notice" in ours(update)]
    assert (failed["notice"], failed["text"], failed["messageId"]) == (
        "failed",
        "overloaded",
        "msg_a",
    )


def test_a_turn_that_was_stopped_shows_no_error() -> None:
    error = {"type": "aborted", "message": "Step interrupted"}
    (update,) = replay(assistant(TEXT, finish="error", error=error))
    assert update["sessionUpdate"] == "agent_message_chunk"


def test_a_compaction_is_marked_for_whoever_takes_it() -> None:
    row = {"id": "msg_x", "type": "compaction", "status": "completed", "reason": "manual"}
    (plain,) = replay(row)
    (shown,) = replay(row, compaction=True)
    assert ours(plain)["compaction"] == {"id": "msg_x", "status": "completed", "reason": "manual"}
    assert (shown["sessionUpdate"], shown["compactionId"]) == ("compaction_update", "msg_x")
    assert replay({**row, "status": "failed"}) == []


def test_a_command_that_a_user_ran_is_a_call() -> None:
    row = {
        "id": "msg_x",
        "type": "shell",
        "command": "make",
        "status": "exited",
        "exit": 2,
        "output": {"output": "failed\n"},
    }
    (update,) = replay(row)
    assert (update["title"], update["kind"], update["status"]) == ("make", "execute", "completed")
    assert "failed" in str(update["content"])


def test_attachments_are_shown_as_they_were_sent_or_named() -> None:
    image = {"data": "AAAA", "mime": "image/png", "name": "p.png"}
    large = {**image, "data": "A" * (IMAGE_CHARS + 4)}
    file = {"data": "AAAA", "mime": "text/plain", "source": {"type": "uri", "uri": "file:///x/a"}}
    other = {"data": "AAAA", "mime": "application/pdf", "name": "d.pdf"}
    updates = replay(user(text="", files=[image, large, file, other]))
    blocks = [update["content"] for update in updates]
    assert blocks[0] == {"type": "image", "data": "AAAA", "mimeType": "image/png"}
    assert blocks[1] == {"type": "text", "text": "[p.png: image/png, 196611 bytes]"}
    assert blocks[2] == {
        "type": "resource_link",
        "uri": "file:///x/a",
        "name": "file:///x/a",
        "mimeType": "text/plain",
    }
    assert blocks[3] == {"type": "text", "text": "[d.pdf: application/pdf, 3 bytes]"}


def test_what_is_no_conversation_is_left_out() -> None:
    rows = [
        {"id": "msg_1", "type": "agent-switched", "agent": "plan"},
        {"id": "msg_2", "type": "synthetic", "text": "<system-reminder>"},
        {"id": "msg_3", "type": "idle", "outcome": "succeeded"},
        {"id": "msg_4", "type": "never-heard-of"},
        assistant({"type": "text", "text": ""}),
    ]
    assert replay(*rows) == []
