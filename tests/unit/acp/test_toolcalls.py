"""Tool calls in the words of ACP: what is shown, and that it always fits and is valid."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapter.acp import jsonrpc
from adapter.acp.framing import encode
from adapter.acp.toolcalls import absolute, describe, locations, permission, title
from adapter.acp.updates import tool as tool_update
from adapter.core.values import Tool, ToolStatus
from contract.shapes import AskSource, PermissionAsk, ToolContent
from tests.support.oracle import Oracle

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
    fields = describe(made(status=ToolStatus.PENDING), HOME)
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


@pytest.mark.parametrize(
    ("path", "full"),
    [("a.txt", "/srv/project/a.txt"), ("/etc/x", "/etc/x"), ("../b", "/srv/b"),
     ("./c/../d", "/srv/project/d"), ("../../../..", "/"), (".", "/srv/project")],
)  # fmt: skip
def test_paths_become_absolute(path: str, full: str) -> None:
    assert absolute(path, HOME) == full


@pytest.mark.parametrize(
    ("given_", "places"),
    [
        ({"path": "a"}, [{"path": "/srv/project/a"}]),
        ({"filePath": "/b", "offset": 7}, [{"path": "/b", "line": 7}]),
        ({"path": "a", "offset": 0}, [{"path": "/srv/project/a"}]),
        ({"path": "a", "offset": True}, [{"path": "/srv/project/a"}]),
        ({"path": "a", "offset": 2**32}, [{"path": "/srv/project/a"}]),
        ({"path": ""}, []),
        ({"path": 5}, []),
        ({"path": "x" * 5000}, []),
        ({}, []),
    ],
)
def test_locations(given_: dict[str, object], places: list[dict[str, object]]) -> None:
    assert locations(given_, HOME) == places


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
        {"type": "text", "text": "[file shot, image/png]"},
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


# That it fits

DEEP: dict[str, Any] = {}
for _ in range(400):
    DEEP = {"a": DEEP, "b": [DEEP]}
WIDE = {f"{number}" * 300: ["\x00" * 5000] * 100 for number in range(100)}
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
    "links": made(content=(ToolContent(type="file", uri="\x01" * 4000, name="\x01" * 900),) * 99),
    "many files": made(
        "edit", metadata={"files": [{"file": "\x01" * 4000, "patch": "@@ -1 +1 @@\n-a\n"}] * 999}
    ),
}


@pytest.mark.parametrize("tool", HUGE.values(), ids=HUGE)
def test_whatever_the_server_says_fits_in_a_line(tool: Tool, oracle: Oracle) -> None:
    message = notified(tool_update(tool, HOME))
    encode(message)
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
            "toolCall": permission(ask, given_, HOME),
            "options": [],
        }
        encode(jsonrpc.request(1, "session/request_permission", asked))
    assert held(oracle, message) == []


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
