"""Tool calls in the words of ACP: what is shown, and that it always fits and is valid."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapter.acp import jsonrpc
from adapter.acp.framing import encode
from adapter.acp.omitted import omitted
from adapter.acp.toolcalls import describe, permission, title
from adapter.acp.updates import tool as tool_update
from adapter.core.values import Tool, ToolStatus
from adapter.limits import DEFAULTS, FLOORS, Limits
from contract.shapes import AskSource, PermissionAsk, ToolContent
from tests.support.oracle import Oracle

SHORT = Limits(outbound_line_bytes=FLOORS["outbound_line_bytes"])

HOME = "/srv/project"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
OBJECT = st.dictionaries(st.sampled_from(("path", "offset", "command", "files")) | st.text(), JSON)
FILE = st.fixed_dictionaries(
    {},
    optional={
        "file": st.text() | JSON,
        "patch": st.text("@+- \\\n123,", max_size=80) | JSON,
        "status": st.sampled_from(("added", "modified", "deleted")) | JSON,
    },
)
METADATA = OBJECT | st.fixed_dictionaries({"files": st.lists(FILE) | JSON})
PIECE = st.builds(
    ToolContent,
    type=st.sampled_from(("text", "file", "other")),
    text=st.none() | st.text(),
    uri=st.none() | st.text(),
    mime=st.none() | st.text(),
    name=st.none() | st.text(),
)
TOOLS = st.builds(
    Tool,
    owner=st.just(1),
    message_id=st.text(min_size=1),
    call_id=st.text(),
    name=st.sampled_from(("read", "edit", "shell")) | st.text(),
    status=st.sampled_from(ToolStatus),
    first=st.booleans(),
    input=st.none() | OBJECT,
    content=st.none() | st.lists(PIECE, max_size=4).map(tuple),
    metadata=st.none() | METADATA,
    error=st.none() | st.text(),
)


@pytest.fixture(scope="module")
def oracle() -> Oracle:
    return Oracle()


def made(name: str = "shell", status: ToolStatus = ToolStatus.COMPLETED, **more: Any) -> Tool:
    return Tool(1, "msg_1", "call_1", name, status, **more)


def change(file: object, patch: object, status: object = "modified") -> dict[str, Any]:
    return {"files": [{"file": file, "patch": patch, "status": status}]}


def text(words: str) -> ToolContent:
    return ToolContent(type="text", text=words)


def notified(update: dict[str, object]) -> dict[str, Any]:
    return jsonrpc.notification("session/update", {"sessionId": "ses_1", "update": update})


def held(oracle: Oracle, message: dict[str, Any]) -> list[str]:
    """The faults of one more message."""
    before = len(oracle.faults)
    oracle.received(message)
    return oracle.faults[before:]


# What is shown


def test_a_call_names_its_tool_kind_and_state() -> None:
    fields = describe(replace(made(status=ToolStatus.PENDING), first=True), HOME)
    assert fields == {
        "toolCallId": "msg_1/call_1",
        "title": "shell",
        "name": "shell",
        "kind": "execute",
        "status": "pending",
    }


@pytest.mark.parametrize(
    ("name", "kind"),
    [("read", "read"), ("write", "edit"), ("grep", "search"), ("webfetch", "fetch"),
     ("subagent", "think"), ("mcp_any", "other"), ("", "other")],
)  # fmt: skip
def test_kinds(name: str, kind: str) -> None:
    assert describe(made(name), HOME)["kind"] == kind


@pytest.mark.parametrize(
    ("name", "given_", "shown"),
    [
        ("shell", {"command": "ls  -l\n\twc"}, "ls -l wc"),
        ("shell", {"command": "x" * 500}, "x" * 199 + "…"),
        ("shell", {"command": ["ls"]}, "shell"),
        ("shell", {"command": " \n"}, "shell"),
        ("shell", None, "shell"),
        ("subagent", {"agent": "general"}, "general"),
        ("subagent", {"agent": "general", "description": "look"}, "look"),
        ("unknown", {"command": "ls"}, "unknown"),
        ("n" * 500, {}, "n" * 199 + "…"),
        ("", {}, "tool"),
    ],
)
def test_titles(name: str, given_: dict[str, object] | None, shown: str) -> None:
    assert title(name, given_) == shown


def test_a_diff_comes_from_the_result_and_never_from_the_arguments() -> None:
    arguments = {"path": "a.txt", "oldString": "hello", "newString": "hullo"}
    metadata = change("a.txt", "--- a\n+++ a\n@@ -1 +1 @@\n-hello\n+hullo\n")
    done = describe(made("edit", input=arguments, metadata=metadata, content=()), HOME)
    assert done["content"] == [
        {
            "type": "diff",
            "path": "/srv/project/a.txt",
            "oldText": "hello\n",
            "newText": "hullo\n",
        }
    ]
    failed = made("edit", ToolStatus.FAILED, input=arguments, metadata=metadata, error="no")
    assert describe(failed, HOME)["content"] == [
        {"type": "content", "content": {"type": "text", "text": "no"}}
    ]


@pytest.mark.parametrize(
    "metadata",
    [None, {}, {"files": None}, {"files": "x"}, {"files": [1, None]}, change(1, "@@ -1 +1 @@\n"),
     change("a", None), change("a", ""), change("x" * 5000, "@@ -1 +1 @@\n-a\n+b\n")],
)  # fmt: skip
def test_what_is_no_change_shows_no_diff(metadata: dict[str, Any] | None) -> None:
    assert describe(made("edit", metadata=metadata), HOME)["content"] == []


def test_results_are_shown_and_kept_raw() -> None:
    pieces = (
        text("one"),
        text(""),
        ToolContent(type="file", uri="file:///x", name="x", mime="text/plain"),
        ToolContent(type="file", uri="data:image/png;base64,AAAA", name="shot", mime="image/png"),
        ToolContent(type="file"),
        ToolContent(type="surprise", text="?"),
    )
    fields = describe(made(content=pieces, metadata={"exit": 0, "files": []}), HOME)
    assert [block["content"] for block in as_list(fields["content"])] == [
        {"type": "text", "text": "one"},
        {"type": "resource_link", "uri": "file:///x", "name": "x", "mimeType": "text/plain"},
        {"type": "image", "data": "AAAA", "mimeType": "image/png"},
        {"type": "text", "text": "[file without a name, unknown type]"},
    ]
    assert fields["rawOutput"] == {"output": "one", "metadata": {"exit": 0}}


def as_list(value: object) -> list[Any]:
    assert isinstance(value, list)
    return value


def test_a_permission_shows_the_change_under_the_id_of_its_call() -> None:
    ask = PermissionAsk(
        id="per_1",
        session_id="ses_1",
        action="edit",
        resources=("a.txt",),
        metadata=change("a.txt", "@@ -0,0 +1 @@\n+new\n", "added"),
        source=AskSource(message_id="msg_1", call_id="call_1"),
    )
    fields = permission(ask, made("write", ToolStatus.IN_PROGRESS, input={"path": "a.txt"}), HOME)
    assert (fields["toolCallId"], fields["title"], fields["status"]) == (
        "msg_1/call_1",
        "a.txt",
        "pending",
    )
    assert [diff["oldText"] for diff in as_list(fields["content"])] == [None]


def test_a_permission_without_a_known_call_says_what_it_is_for() -> None:
    ask = PermissionAsk(id="per_1", session_id="ses_1", action="shell", resources=("ls *", "wc *"))
    assert permission(ask, None, HOME) == {
        "toolCallId": "per_1",
        "title": "ls *, wc *",
        "name": "shell",
        "kind": "execute",
        "status": "pending",
    }


@pytest.mark.parametrize(
    ("child", "title"), [("fix  it", "fix it: ls *"), ("", "Sub-agent: ls *"), (None, "ls *")]
)
def test_the_ask_of_a_sub_agent_begins_with_its_name(child: str | None, title: str) -> None:
    ask = PermissionAsk(id="per_1", session_id="ses_c", action="shell", resources=("ls *",))
    assert permission(ask, None, HOME, child)["title"] == title


# That it fits

DEEP: dict[str, Any] = {}
for _ in range(400):
    DEEP = {"a": DEEP, "b": [DEEP]}
WIDE = {f"{number}" * 300: ["\x00" * 5000] * 100 for number in range(100)}
PICTURE = "data:image/png;base64," + "A" * 256 * 1024
HUNKS = ("@@ -1 +1 @@\n-" + "\x01" * 60_000 + "\n+" + "é" * 60_000 + "\n") * 40
HUGE = {
    "control characters": made(content=(text("\x00" * 300_000),) * 100),
    "an error": made(status=ToolStatus.FAILED, error="\x00" * 4_000_000),
    "diffs": made("edit", metadata=change("a", HUNKS), content=(text("\x00" * 90_000),)),
    "deep input": made(input=DEEP),
    "wide input": made(input=WIDE, metadata=WIDE, content=(text("\x00" * 90_000),) * 9),
    "paths": made("read", input={"path": "\x00" * 4_000_000}),
    "long paths": made("read", input={"path": "\x01" * 4000}, metadata=WIDE, content=(text("x"),)),
    "a name": made("\x00" * 1_000_000),
    "images": made(content=(ToolContent(type="file", uri=PICTURE, mime="image/png"),) * 9),
    "many places": made(
        "edit", metadata={"files": [{"file": "\x01" * 4000 + str(n)} for n in range(99)]}
    ),
    "calls": made(
        "execute", metadata={"toolCalls": [{"tool": "\x00" * 9000, "status": "x"}] * 999}
    ),
    "links": made(content=(ToolContent(type="file", uri="\x01" * 4000, name="\x01" * 900),) * 99),
    "many files": made(
        "edit", metadata={"files": [{"file": "\x01" * 4000, "patch": "@@ -1 +1 @@\n-a\n"}] * 999}
    ),
}


@pytest.mark.parametrize("limits", [DEFAULTS, SHORT], ids=["default", "lowest"])
@pytest.mark.parametrize("tool", HUGE.values(), ids=HUGE)
def test_whatever_the_server_says_fits_in_a_line(
    tool: Tool, limits: Limits, oracle: Oracle
) -> None:
    line = limits.outbound_line_bytes
    message = notified(tool_update(tool, HOME, limits))
    encode(message, line)
    ask = PermissionAsk(
        id="per_" + "x" * 2_000_000,
        session_id="ses_1",
        action="\x00" * 1_000_000,
        resources=("\x00" * 1_000_000,),
        metadata=tool.metadata,
    )
    for given_ in (tool, None):
        asked: dict[str, Any] = {
            "sessionId": "ses_1",
            "toolCall": permission(ask, given_, HOME, limits=limits),
            "options": [],
        }
        encode(jsonrpc.request(1, "session/request_permission", asked), line)
    assert held(oracle, message) == []


def test_the_raw_output_has_a_limit_of_its_own_and_says_what_it_lacks() -> None:
    small = Limits(tool_output_bytes=100)
    fits = tool_update(made(content=(text("x" * 100),)), HOME, small)
    assert fits["rawOutput"] == {"output": "x" * 100}
    assert omitted(fits) == {}
    cut = tool_update(made(content=(text("é" * 100),)), HOME, small)
    assert cut["rawOutput"] == {"output": "é" * 50 + "… [50 characters more]"}
    assert omitted(cut) == {"tool_output_bytes": 50}
    assert cut["_meta"] == {"opencode-acp": {"omitted": {"tool_output_bytes": 50}}}


def test_a_result_of_256_kib_is_whole() -> None:
    whole = tool_update(made(content=(text("x" * DEFAULTS.tool_output_bytes),)), HOME)
    assert omitted(whole) == {}
    assert whole["rawOutput"] == {"output": "x" * DEFAULTS.tool_output_bytes}


def test_places_over_the_limit_are_counted() -> None:
    files = [{"file": f"f{number}"} for number in range(20)]
    few = tool_update(made("edit", metadata={"files": files}), HOME)
    assert [place["path"] for place in cast("list[Any]", few["locations"])] == [
        f"{HOME}/f{number}" for number in range(DEFAULTS.tool_locations)
    ]
    assert omitted(few) == {"tool_locations": 4}


def test_a_title_is_not_forgotten_with_the_input() -> None:
    known = made(status=ToolStatus.IN_PROGRESS, input={"command": "make"})
    assert describe(known, HOME)["title"] == "make"
    assert "title" not in describe(replace(known, input=None), HOME)


def test_a_call_with_a_huge_id_keeps_it_through_its_updates() -> None:
    ids = {
        describe(Tool(1, "msg_1", "c" * 5_000_000, "shell", status), HOME)["toolCallId"]
        for status in ToolStatus
    }
    assert len(ids) == 1


@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(tool=TOOLS)
def test_any_tool_is_valid_acp(tool: Tool, oracle: Oracle) -> None:
    line = encode(notified(tool_update(tool, HOME)))
    message = json_of(line)
    assert held(oracle, message) == []


def json_of(line: bytes) -> dict[str, Any]:
    parsed = jsonrpc.decode(line)
    assert isinstance(parsed, jsonrpc.Notification)
    return jsonrpc.notification(parsed.method, parsed.params)
