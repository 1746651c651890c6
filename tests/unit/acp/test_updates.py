"""Builders of updates: the shape of each, their bounds, and what goes where."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from adapter.acp import jsonrpc, toolcalls, updates
from adapter.acp.framing import encode
from adapter.acp.meta import META
from adapter.acp.omitted import omitted, omitted_of_error
from adapter.core.errands import LINES
from adapter.core.values import (
    Chunk,
    Compaction,
    Line,
    Notice,
    OfChild,
    OfRun,
    Outcome,
    Progress,
    Prompted,
    Stop,
    Tool,
    ToolStatus,
    Usage,
)
from adapter.limits import DEFAULTS, FLOORS, Limits
from contract.shapes import CacheTokens, PermissionAsk, Tokens
from tests.support.oracle import Oracle


@pytest.fixture(scope="module")
def oracle() -> Oracle:
    return Oracle()


def faults(oracle: Oracle, update: dict[str, object]) -> list[str]:
    """What ACP says against an update, which must fit in a line."""
    message = jsonrpc.notification("session/update", {"sessionId": "ses_1", "update": update})
    encode(message)
    before = len(oracle.faults)
    oracle.received(message)
    return oracle.faults[before:]


def result_faults(oracle: Oracle, result: dict[str, object]) -> list[str]:
    before = len(oracle.faults)
    oracle.sent({"jsonrpc": "2.0", "id": 1, "method": "session/prompt", "params": {}})
    oracle.received(jsonrpc.success(1, result))
    return oracle.faults[before:]


@pytest.mark.parametrize(
    ("kind", "name"), [("text", "agent_message_chunk"), ("reasoning", "agent_thought_chunk")]
)
def test_text_goes_out_under_its_message(kind: Any, name: str, oracle: Oracle) -> None:
    (update,) = updates.chunks(Chunk(1, "msg_1", kind, "hello"))
    assert update == {
        "sessionUpdate": name,
        "messageId": "msg_1",
        "content": {"type": "text", "text": "hello"},
    }
    assert faults(oracle, update) == []


@pytest.mark.parametrize("chars", [1, 1000, DEFAULTS.text_chunk_chars])
def test_lower_limits_make_shorter_chunks_and_lose_nothing(chars: int) -> None:
    least = FLOORS["outbound_line_bytes"]
    limits = Limits(text_chunk_chars=chars, outbound_line_bytes=least)
    for text in ("\x01" * 3 * min(chars, 40_000), "x" * (2 * chars + 1)):
        made: list[Any] = list(updates.chunks(Chunk(1, "msg_1", "text", text), limits))
        pieces = [update["content"]["text"] for update in made]
        assert "".join(pieces) == text
        assert max(map(len, pieces)) <= chars
        for update in made:
            encode(jsonrpc.notification("session/update", {"update": update}), least)


def test_a_sentence_over_the_limit_is_cut_with_a_mark() -> None:
    limits = Limits(line_chars=10)
    told = updates.notice(Notice(1, "retry", "x" * 15), limits, advertised=True)
    assert told["title"] == "x" * 10 + "… [5 characters more]"
    assert updates.title("y" * 15, limits)["title"] == "y" * 10 + "… [5 characters more]"


SHORT = Limits(line_chars=10)
SHELL = Tool(1, "msg_1", "call_1", "shell", ToolStatus.IN_PROGRESS, input={"command": "x" * 15})


@pytest.mark.parametrize(
    ("update", "missing"),
    [
        (updates.notice(Notice(1, "retry", "x" * 15), SHORT, advertised=True), 5),
        (updates.notice(Notice(1, "retry", "x" * 15), SHORT, advertised=False), 5),
        (updates.notice(Notice(1, "retry", "x", {"a": "y" * 17}), SHORT, advertised=True), 7),
        (updates.title("x" * 15, SHORT), 5),
        *(
            (updates.compaction(Compaction(1, "c", "failed", error="x" * 15), SHORT,
                                advertised=advertised), 5)
            for advertised in (True, False)
        ),
        # The mark of a title of a call takes the place of a character.
        (updates.tool(SHELL, "/srv", SHORT), 6),
        (updates.progress(Progress(1, "m", "c", (Line("shell", None, SHELL.input or {}),)), SHORT),
         6),
        (toolcalls.permission(
            PermissionAsk(id="per_1", session_id="ses_1", action="shell"), SHELL, "/srv", None,
            SHORT), 6),
    ],
)  # fmt: skip
def test_what_is_cut_of_a_sentence_is_told(update: dict[str, Any], missing: int) -> None:
    assert omitted(update) == {"line_chars": missing}


def test_what_is_cut_of_an_error_is_told_in_its_data() -> None:
    error = updates.prompt_error(Outcome("msg_1", None, -32603, "x" * 15, "failed"), SHORT)
    assert omitted_of_error(error) == {"line_chars": 5}
    whole = updates.prompt_error(Outcome("msg_1", None, -32603, "x" * 10, "failed"), SHORT)
    assert omitted_of_error(whole) == {}


def test_a_sentence_that_is_whole_says_nothing_of_it() -> None:
    told = updates.notice(Notice(1, "retry", "x" * 10), SHORT, advertised=True)
    assert told["_meta"] == {META: {"notice": "retry", "text": "x" * 10}}
    assert updates.title("x", SHORT) == {"sessionUpdate": "session_info_update", "title": "x"}
    # A title of a call is shorter than a line may be.
    long = replace(SHELL, input={"command": "x" * 500})
    assert omitted(updates.tool(long, "/srv")) == {}


def test_no_text_makes_no_chunk() -> None:
    assert list(updates.chunks(Chunk(1, "msg_1", "text", ""))) == []


def test_where_text_came_from_is_said_beside_it(oracle: Oracle) -> None:
    chunk = Chunk(1, "msg_2", "text", "x", retry_of="msg_1", recovered=True)
    (update,) = updates.chunks(chunk)
    assert update["_meta"] == {META: {"retryOf": "msg_1", "origin": "recovered"}}
    assert faults(oracle, update) == []


@pytest.mark.parametrize("letter", ["x", "\x00", "é", "😀", '"'])
def test_a_long_text_is_split_and_none_of_it_lost(letter: str, oracle: Oracle) -> None:
    text = letter * (2 * DEFAULTS.text_chunk_chars + 1)
    parts = list(updates.chunks(Chunk(1, "msg_1", "text", text)))
    assert [faults(oracle, part) for part in parts] == [[]] * 3
    contents: list[Any] = [part["content"] for part in parts]
    assert "".join(content["text"] for content in contents) == text


@pytest.mark.parametrize(("first", "kind"), [(True, "tool_call"), (False, "tool_call_update")])
def test_a_tool_is_announced_once(first: bool, kind: str, oracle: Oracle) -> None:
    update = updates.tool(Tool(1, "m", "c", "shell", ToolStatus.PENDING, first=first), "/srv")
    assert update["sessionUpdate"] == kind
    assert faults(oracle, update) == []


@pytest.mark.parametrize("cost", [None, 0.0, 0.25])
def test_usage(cost: float | None, oracle: Oracle) -> None:
    update = updates.usage(Usage(1, "fake/fake-1", 1200, cost), 100_000)
    assert (update["used"], update["size"]) == (1200, 100_000)
    assert update.get("cost") == (None if cost is None else {"amount": cost, "currency": "USD"})
    assert faults(oracle, update) == []


def test_a_notice_is_one_where_the_client_advertised_it(oracle: Oracle) -> None:
    told = Notice(1, "retry", "Tried again.", {"attempt": 2})
    detail = {"notice": "retry", "text": "Tried again.", "attempt": 2}
    shown = updates.notice(told, advertised=True)
    assert (shown["sessionUpdate"], shown["severity"], shown["title"]) == (
        "notice",
        "warning",
        "Tried again.",
    )
    plain = updates.notice(told, advertised=False)
    assert plain == {"sessionUpdate": "session_info_update", "_meta": {META: detail}}
    assert shown["_meta"] == {META: detail}
    assert faults(oracle, shown) + faults(oracle, plain) == []


def test_to_wait_is_no_warning() -> None:
    assert updates.notice(Notice(1, "waiting", "Waits."), advertised=True)["severity"] == "info"


@pytest.mark.parametrize("advertised", [True, False])
def test_a_huge_error_text_of_a_provider_fits_in_a_notice(advertised: bool, oracle: Oracle) -> None:
    told = Notice(1, "retry", "\x00" * 4_000_000, {"error": ["\x00" * 4_000_000] * 9, "attempt": 1})
    update = updates.notice(told, advertised=advertised)
    assert faults(oracle, update) == []
    meta: Any = update["_meta"]
    assert meta[META]["attempt"] == 1


@pytest.mark.parametrize("stop", Stop)
def test_the_result_of_a_prompt_carries_its_audit(stop: Stop, oracle: Oracle) -> None:
    tokens = Tokens(input=1, output=2, reasoning=3, cache=CacheTokens(read=4, write=5))
    outcome = Outcome(
        "msg_1", stop, gaps=2, recovered=7, shared=True, cancel="unconfirmed", tokens=tokens
    )
    result = updates.prompt_result(outcome)
    assert result == {
        "stopReason": stop.value,
        "_meta": {
            META: {
                "messageId": "msg_1",
                "gaps": 2,
                "recoveredChars": 7,
                "shared": True,
                "cancel": "unconfirmed",
            }
        },
        "usage": {
            "inputTokens": 1,
            "outputTokens": 2,
            "thoughtTokens": 3,
            "cachedReadTokens": 4,
            "cachedWriteTokens": 5,
            "totalTokens": 15,
        },
    }
    assert result_faults(oracle, result) == []


def test_tokens_that_are_not_known_are_not_told() -> None:
    assert "usage" not in updates.prompt_result(Outcome("msg_1", Stop.END_TURN))


@pytest.mark.parametrize("admitted", [True, False, None])
def test_an_error_says_what_a_program_needs(admitted: bool | None) -> None:
    outcome = Outcome(
        "msg_1", None, -32050, "It is not known.", "unknown", admitted, retry_safe=False, gaps=1
    )
    assert updates.prompt_error(outcome).to_json() == {
        "code": -32050,
        "message": "It is not known.",
        "data": {
            "code": "unknown",
            "admitted": admitted,
            "messageId": "msg_1",
            "retrySafe": False,
            "gaps": 1,
            "shared": False,
        },
    }


def test_a_huge_error_keeps_its_data() -> None:
    outcome = Outcome("msg_1", None, -32603, "\x00" * 4_000_000, "failed")
    error = updates.prompt_error(outcome)
    encode(jsonrpc.failure(1, error.to_json()))
    assert len(error.message) < DEFAULTS.line_chars + 100
    assert error.data is not None
    assert error.data["code"] == "failed"


def test_the_calls_of_a_sub_agent_are_lines_of_the_call_that_made_it(oracle: Oracle) -> None:
    lines = (
        Line("shell", ToolStatus.COMPLETED, {"command": "ls -l"}),
        Line("subagent", ToolStatus.IN_PROGRESS, {"description": "look"}),
        Line("read", ToolStatus.FAILED, {"path": "a"}, depth=1),
        Line("custom", None, {}),
    )
    update = updates.progress(Progress(1, "msg_1", "call_1", lines, left_out=2))
    text = "\n".join(
        [
            "… 2 earlier tool calls",
            "- shell: ls -l (done)",
            "- subagent: look (running)",
            "  - read: a (failed)",
            "- custom (no news)",
        ]
    )
    assert update == {
        "sessionUpdate": "tool_call_update",
        "toolCallId": "msg_1/call_1",
        "content": [{"type": "content", "content": {"type": "text", "text": text}}],
    }
    assert faults(oracle, update) == []


def test_the_longest_lines_fit(oracle: Oracle) -> None:
    line = Line("\x01" * 1000, ToolStatus.IN_PROGRESS, {"command": "\x01" * 1000}, depth=9)
    update = updates.progress(Progress(1, "msg_1", "call_1", (line,) * LINES, left_out=10**9))
    assert faults(oracle, update) == []


def test_an_update_of_a_child_says_whose_it_is(oracle: Oracle) -> None:
    origin = OfChild("ses_child", "ses_1", "msg_1", "call_1")
    child = {"sessionId": "ses_child", "parentSessionId": "ses_1", "toolCallId": "msg_1/call_1"}
    (text,) = updates.chunks(Chunk(1, "msg_c", "text", "x", origin=origin))
    call = Tool(1, "msg_c", "call_c", "shell", ToolStatus.PENDING, first=True, origin=origin)
    for update in (text, updates.tool(call, "/p")):
        assert update["_meta"] == {META: {"child": child}}
        assert faults(oracle, update) == []


def test_what_the_client_did_not_prompt_is_marked(oracle: Oracle) -> None:
    origin = OfRun("msg_u")
    (text,) = updates.chunks(Chunk(1, "msg_1", "text", "x", recovered=True, origin=origin))
    (asked,) = updates.prompted(Prompted(1, "msg_u", "do it", origin))
    call = Tool(1, "msg_1", "call_1", "shell", ToolStatus.PENDING, first=True, origin=origin)
    for update in (text, asked, updates.tool(call, "/p")):
        assert update["_meta"] == {META: {"origin": "ambient", "run": "msg_u"}}
        assert faults(oracle, update) == []
    assert asked["sessionUpdate"] == "user_message_chunk"


@pytest.mark.parametrize("error", [None, "no summary"])
def test_a_compaction_is_an_update_for_who_takes_it_and_meta_for_others(
    oracle: Oracle, error: str | None
) -> None:
    told = Compaction(1, "msg_c", "failed" if error else "completed", "auto", error)
    update = updates.compaction(told, advertised=True)
    assert faults(oracle, update) == []
    assert update["sessionUpdate"] == "compaction_update"
    assert (update["compactionId"], update["status"]) == ("msg_c", told.status)
    assert update.get("error") == error
    assert update["_meta"] == {META: {"reason": "auto"}}
    hidden = updates.compaction(told, advertised=False)
    assert faults(oracle, hidden) == []
    assert set(hidden) == {"sessionUpdate", "_meta"}
    meta = hidden["_meta"]
    assert isinstance(meta, dict)
    assert meta[META]["compaction"]["status"] == told.status
