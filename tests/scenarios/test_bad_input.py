"""What a hostile or broken client sends: one clear error each, and nothing else is disturbed."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest_asyncio

from stubs.real_server import PASSWORD
from stubs.server import Settings, StubServer
from tests.scenarios.raw import RawAgent, raw_agent
from tests.scenarios.stage import Json, agent_argv, agent_env

INITIALIZE = {"protocolVersion": 1, "clientCapabilities": {}}
NEST = b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":' + b"[" * 5000 + b"]" * 5000 + b"}}"


def call(ident: Any, method: str, params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": ident, "method": method, "params": params}).encode()


@pytest_asyncio.fixture(loop_scope="session")
async def agent(tmp_path: Path) -> AsyncIterator[RawAgent]:
    settings = Settings(password=PASSWORD, project=str(tmp_path))
    async with (
        StubServer(settings) as stub,
        raw_agent(agent_argv(stub.url), agent_env(PASSWORD)) as raw,
    ):
        assert "result" in await raw.request("hello", "initialize", INITIALIZE)
        yield raw
        code, out, err = await raw.finish()
        assert (code, out) == (0, b"")
        assert b"Traceback" not in err, err.decode()


async def open_session(agent: RawAgent, directory: Path) -> str:
    params = {"cwd": str(directory), "mcpServers": []}
    return str((await agent.request("new", "session/new", params))["result"]["sessionId"])


async def works(agent: RawAgent, session: str) -> None:
    """A prompt is answered, so the process lives and its session with it."""
    params = {"sessionId": session, "prompt": [{"type": "text", "text": "@@text 1@@"}]}
    assert (await agent.request("works", "session/prompt", params))["result"]["stopReason"]


async def test_lines_that_are_no_message(agent: RawAgent, tmp_path: Path) -> None:
    session = await open_session(agent, tmp_path)
    cases: list[tuple[bytes, int, Any]] = [
        (b"[]", -32600, None),
        (b"[" + call(1, "session/cancel", {}) + b"]", -32600, None),
        (b"null", -32600, None),
        (b"5", -32600, None),
        (b'"text"', -32600, None),
        (b"{", -32700, None),
        (b"no json", -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"\xff\xfe"}', -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"method":NaN}', -32700, None),
        (NEST, -32700, None),
        (b'{"id":7,"method":"initialize","params":{}}', -32600, 7),
        (b'{"jsonrpc":"1.0","id":7,"method":"initialize","params":{}}', -32600, 7),
        (call(True, "initialize", {}), -32600, None),
        (call(1.5, "initialize", {}), -32600, None),
        (call({}, "initialize", {}), -32600, None),
        (call("x" * 2**21, "no/such", {}), -32600, None),
        (b'{"jsonrpc":"2.0","id":8}', -32600, 8),
        (b'{"jsonrpc":"2.0","id":8,"method":5}', -32600, 8),
        (call(9, "initialize", []), -32602, 9),
        (call(9, "initialize", {}), -32602, 9),
        (call(10, "session/nothing", {}), -32601, 10),
        (call("", "x" * 5000, {}), -32601, ""),
        (call(-3, "session/new", {"cwd": 5, "mcpServers": []}), -32602, -3),
        (call(2**63, "no/such", {}), -32601, 2**63),
        (call("\u2028é", "no/such", {}), -32601, "\u2028é"),
    ]
    for line, code, ident in cases:
        await agent.say(line + b"\n")
        answer = await agent.reply()
        shown = line[:80]
        assert answer["error"]["code"] == code, (shown, answer)
        assert answer["id"] == ident, (shown, answer)
        assert answer["error"]["message"], shown
    await works(agent, session)


async def test_what_needs_no_answer_gets_none(agent: RawAgent, tmp_path: Path) -> None:
    session = await open_session(agent, tmp_path)
    for line in (
        b"",
        b"   ",
        b"\r",
        b'{"jsonrpc":"2.0","method":"no/such","params":{}}',
        b'{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"ses_other"}}',
        b'{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":5}}',
        b'{"jsonrpc":"2.0","method":"session/cancel","params":[]}',
        b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"nobody"}}',
        b'{"jsonrpc":"2.0","id":99,"result":{}}',
        b'{"jsonrpc":"2.0","id":99,"error":{"code":1,"message":"x"}}',
    ):
        await agent.say(line + b"\n")
    message = await agent.request("next", "no/such", {})
    assert message["error"]["code"] == -32601
    await works(agent, session)


async def test_a_line_over_the_limit(agent: RawAgent, tmp_path: Path) -> None:
    session = await open_session(agent, tmp_path)
    head = b'{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"x":"'
    await agent.say(head)
    for _ in range(33):
        await agent.say(b"x" * 2**20)
    await agent.say(b'"}}\n')
    answer = await agent.reply()
    assert (answer["id"], answer["error"]["code"]) == (None, -32600)
    assert "32" in answer["error"]["message"]
    await works(agent, session)


async def test_an_id_that_is_in_use(agent: RawAgent, tmp_path: Path) -> None:
    session = await open_session(agent, tmp_path)
    slow = {"sessionId": session, "prompt": [{"type": "text", "text": "@@text 30 20@@"}]}
    await agent.say(call("one", "session/prompt", slow) + b"\n")
    await agent.say(call("one", "no/such", {}) + b"\n")
    first = await agent.answer(None)
    assert first["error"]["code"] == -32600
    assert (await agent.answer("one"))["result"]["stopReason"] == "end_turn"
    await works(agent, session)


async def test_parameters_that_make_no_sense(agent: RawAgent, tmp_path: Path) -> None:
    session = await open_session(agent, tmp_path)
    file = tmp_path / "file"
    file.write_text("", encoding="utf-8")

    def new(cwd: object, **more: object) -> tuple[str, Json]:
        return "session/new", {"cwd": cwd, "mcpServers": [], **more}

    def prompt(*blocks: Json) -> tuple[str, Json]:
        return "session/prompt", {"sessionId": session, "prompt": list(blocks)}

    cases = [
        new("relative/path"),
        new(""),
        new(str(tmp_path / "missing")),
        new(str(file)),
        new("/\0"),
        ("session/new", {"mcpServers": []}),
        prompt(),
        prompt({"type": "text", "text": ""}),
        prompt({"type": "text", "text": " \n "}),
        prompt({"type": "audio", "data": "aaaa", "mimeType": "audio/wav"}),
        prompt({"type": "image", "data": "no base64!", "mimeType": "image/png"}),
        prompt({"type": "nothing"}),
        ("session/prompt", {"sessionId": session}),
        ("session/prompt", {"sessionId": session, "prompt": "text"}),
        ("session/set_mode", {"sessionId": session, "modeId": "nobody"}),
        (
            "session/set_config_option",
            {"sessionId": session, "configId": "model", "value": "fake/none"},
        ),
    ]
    for method, params in cases:
        answer = await agent.request("bad", method, params)
        assert answer["error"]["code"] == -32602, (params, answer)
        assert "Traceback" not in answer["error"]["message"]
    gone = await agent.request("gone", "session/prompt", prompt()[1] | {"sessionId": "ses_no"})
    assert "error" in gone
    await works(agent, session)
