"""What the terminal client shows: all that an agent says, in words."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from contract.initialize import META
from stubs.client.__main__ import capabilities
from stubs.client.printer import Printer


class Terminal:
    """A printer and what it wrote."""

    def __init__(self, *, raw: bool = False) -> None:
        self.text = ""
        self.printer = Printer(self._write, raw=raw)

    def _write(self, text: str) -> None:
        self.text += text

    def update(self, kind: str, **members: Any) -> None:
        update = {"sessionUpdate": kind, **members}
        self.printer.show({"method": "session/update", "params": {"update": update}})

    def chunk(self, kind: str, text: str, **meta: Any) -> None:
        more = {"_meta": {META: meta}} if meta else {}
        self.update(kind, content={"type": "text", "text": text}, **more)


@pytest.fixture
def terminal() -> Terminal:
    return Terminal()


def test_text_flows_and_all_else_is_a_line(terminal: Terminal) -> None:
    terminal.chunk("user_message_chunk", "hello")
    terminal.chunk("agent_thought_chunk", "hm")
    terminal.chunk("agent_message_chunk", "a ")
    terminal.chunk("agent_message_chunk", "b")
    terminal.printer.line("end")
    assert terminal.text == "[user]\nhello\n[thought]\nhm\n[text]\na b\nend\n"


def test_whose_it_is(terminal: Terminal) -> None:
    terminal.chunk("agent_message_chunk", "a", child={"sessionId": "ses_c"})
    terminal.chunk("agent_message_chunk", "b", origin="ambient", run="msg_1")
    terminal.chunk("agent_message_chunk", "c")
    heads = [line for line in terminal.text.splitlines() if line.startswith("[")]
    assert heads == ["[text of ses_c]", "[text, ambient]", "[text]"]


@pytest.mark.parametrize(
    ("at", "shown"),
    [(1796100361260.0, "04:46:01"), (1796100361260, "04:46:01"), (1e300, "1e+300")],
)
def test_the_time_of_a_retry_is_one_of_the_day(
    terminal: Terminal, at: float, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    meta = {"notice": "retry", "text": "Again.", "attempt": 1, "at": at}
    try:
        terminal.update("session_info_update", _meta={META: meta})
    finally:
        monkeypatch.undo()
        time.tzset()
    assert terminal.text == f"[notice] retry: Again. (attempt 1, at {shown})\n"


DETAIL = {"notice": "resumed", "text": "It was answered.", "messageId": "m", "gaps": 1}


@pytest.mark.parametrize(
    ("kind", "members"),
    [
        ("notice", {"severity": "info", "title": "It was answered."}),
        ("session_info_update", {}),
    ],
)
def test_a_notice_in_either_form(terminal: Terminal, kind: str, members: dict[str, Any]) -> None:
    terminal.update(kind, **members, _meta={META: DETAIL})
    assert terminal.text == "[notice] resumed: It was answered. (messageId m, gaps 1)\n"


def test_a_compaction_in_either_form(terminal: Terminal) -> None:
    told = {"status": "failed", "reason": "auto", "error": "boom"}
    terminal.update("session_info_update", _meta={META: {"compaction": {"id": "m", **told}}})
    terminal.update(
        "compaction_update",
        compactionId="m",
        status="failed",
        error="boom",
        _meta={META: {"reason": "auto"}},
    )
    (line, other) = terminal.text.splitlines()
    assert line == other == "[compaction] failed (id m, reason auto, error boom)"


def test_titles_and_tools(terminal: Terminal) -> None:
    terminal.update("session_info_update", title="A title")
    terminal.update("tool_call", toolCallId="t", title="ls", status="pending")
    terminal.update("tool_call_update", toolCallId="t", status="completed")
    terminal.update(
        "tool_call_update", toolCallId="t", _meta={META: {"omitted": {"tool_chars": 3}}}
    )
    assert terminal.text.splitlines() == [
        "[title] A title",
        "[tool] ls: pending",
        "[tool] ls: completed",
        '[tool] ls: more of it (omitted {"tool_chars": 3})',
    ]


def test_what_has_no_words_of_its_own_is_shown_as_it_is(terminal: Terminal) -> None:
    terminal.update("usage_update", used=1, size=2)
    terminal.update("session_info_update", _meta={META: {"news": 1}})
    terminal.update("agent_message_chunk", content={"type": "image", "data": "x" * 999})
    terminal.printer.show({"method": "$/cancel_request", "params": {"requestId": 7}})
    usage, info, head, image, withdrawn = terminal.text.splitlines()
    assert usage == '[usage_update] {"used": 1, "size": 2}'
    assert '"news": 1' in info
    assert head == "[text]"
    assert image.startswith('{"type": "image"')
    assert len(image) < 400
    assert withdrawn == '[$/cancel_request] {"requestId": 7}'


def test_what_is_asked(terminal: Terminal) -> None:
    meta = {META: {"child": {"sessionId": "ses_c"}}}
    terminal.printer.show(
        {"method": "session/request_permission", "params": {"toolCall": {"title": "rm"}}}
    )
    terminal.printer.show(
        {"method": "elicitation/create", "params": {"message": "Which?", "_meta": meta}}
    )
    assert terminal.text.splitlines() == ["[permission] rm", "[form of ses_c] Which?"]


def test_the_end_of_a_prompt(terminal: Terminal) -> None:
    terminal.printer.result({"stopReason": "end_turn", "_meta": {META: {"gaps": 0}}})
    assert terminal.text == "[done] end_turn (gaps 0)\n"


def test_raw_is_every_message_as_it_came() -> None:
    terminal = Terminal(raw=True)
    messages: list[dict[str, Any]] = [
        {"id": 1, "result": {}},
        {"method": "session/update", "params": {"x": "ü"}},
    ]
    for message in messages:
        terminal.printer.show(message)
    terminal.printer.session("ses_a")
    terminal.printer.result({"stopReason": "end_turn"})
    assert [json.loads(line) for line in terminal.text.splitlines()] == messages


def test_what_is_advertised() -> None:
    assert capabilities([]) == {}
    assert capabilities(["notices", "compaction", "forms", "childUpdates"]) == {
        "session": {"notices": {}, "compaction": {}},
        "elicitation": {"form": {}},
        "_meta": {META: {"childUpdates": True}},
    }
