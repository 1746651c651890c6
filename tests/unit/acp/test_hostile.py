"""Whatever a client sends: one answer at most for each line, and the next request is served."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from adapter.acp.jsonrpc import JsonObject, is_id
from adapter.acp.jsontext import NotJson, parse
from adapter.acp.peer import PeerLimits
from adapter.acp.prompts import content
from adapter.acp.transport import Call
from contract import acp
from contract.errors import AcpError, Code
from contract.limits import ID_CHARS
from tests.unit.acp.pair import connected, req

LIMITS: Final = PeerLimits(inbound_line=32 * 1024, outbound_line=16 * 1024)
LAST: Final = "the last one"
# Longer than a line out, and than a line in.
LONG: Final = st.sampled_from((ID_CHARS, ID_CHARS + 1, 20_000, 40_000)).map(lambda n: "x" * n)
SCALARS: Final = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | LONG
)
KEYS: Final = st.sampled_from(("jsonrpc", "id", "method", "params", "result", "error", "_meta"))
VALUES: Final = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(KEYS | st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=8,
)
IDS: Final = st.integers(0, 5) | st.text(max_size=3) | LONG | SCALARS
METHODS: Final = st.sampled_from(("echo", "$/cancel_request", "none")) | SCALARS


def _nested(levels: int, value: bytes) -> bytes:
    return b'{"a":[' * levels + value + b"]}" * levels


def _twice(message: dict[str, Any], key: str) -> bytes:
    """The message with one of its keys a second time."""
    text = json.dumps(message)
    return f'{{"{key}":{json.dumps(message.get(key))},{text.removeprefix("{")}'.encode()


MESSAGES: Final = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0") | SCALARS},
    optional={
        "id": IDS,
        "method": METHODS,
        "params": st.dictionaries(st.text(max_size=5), VALUES, max_size=3) | VALUES,
        "result": VALUES,
        "error": VALUES,
    },
)
# NaN and infinities are written as Python writes them, which is no JSON.
WRITTEN: Final = MESSAGES.map(lambda message: json.dumps(message).encode())
LINES: Final = (
    WRITTEN
    | st.builds(lambda message: json.dumps(message, ensure_ascii=False).encode(), MESSAGES)
    | st.builds(_twice, MESSAGES, KEYS)
    | st.builds(_nested, st.integers(0, 2000), WRITTEN)
    | st.builds(lambda line, at: line[:at], WRITTEN, st.integers(0, 200))
    | st.builds(lambda a, b, at: a[:at] + b + a[at:], WRITTEN, st.binary(), st.integers(0, 200))
    | st.lists(WRITTEN, max_size=3).map(lambda lines: b"[" + b",".join(lines) + b"]")
    | st.binary(max_size=60)
)


async def told(lines: Sequence[bytes]) -> list[JsonObject]:
    """What a client is told that sends these lines, and then a request that makes sense."""

    async def serve(call: Call) -> JsonObject:
        if call.method in ("echo", LAST):
            return {"echo": call.params}
        raise AcpError(Code.METHOD_UNKNOWN, "No such method.")

    async with connected(LIMITS) as connection:
        connection.handler.methods = defaultdict(lambda: serve)
        said = [*lines, json.dumps(req(LAST, LAST)).encode()]
        connection.wire.say(b"".join(line + b"\n" for line in said))
        async with asyncio.timeout(5):
            while not any(answer.get("id") == LAST for answer in connection.wire.lines):
                assert connection.peer.ending is None
                assert not connection.running.done()
                await asyncio.sleep(0)
        for line in b"".join(connection.wire.writes).splitlines():
            assert len(line) <= LIMITS.outbound_line
        return connection.wire.lines


@settings(max_examples=150)
@given(st.lists(LINES, max_size=5))
@example([json.dumps({"jsonrpc": "1.0", "id": "x" * 20_000, "method": "echo"}).encode()])
def test_hostile_lines_are_refused_one_by_one(lines: list[bytes]) -> None:
    answers = asyncio.run(told(lines))
    assert len(answers) <= sum(line.count(b"\n") + 1 for line in lines) + 1
    for answer in answers:
        assert answer["jsonrpc"] == "2.0"
        assert is_id(answer["id"])
        assert ("result" in answer) != ("error" in answer)
        error = answer.get("error")
        if isinstance(error, dict):
            assert error["code"] in set(Code)
            assert error["message"]


@pytest.mark.parametrize("name", ["echo", "none"])
async def test_an_id_that_no_answer_could_carry_is_refused(name: str) -> None:
    message = req("x" * 20_000, name)
    answers = await told([json.dumps(message).encode(), json.dumps({**message, "id": 1}).encode()])
    codes = [answer.get("error", {}) for answer in answers if answer["id"] is None]
    assert [code["code"] for code in codes if isinstance(code, dict)] == [Code.INVALID_REQUEST]
    assert {answer["id"] for answer in answers} == {None, 1, LAST}


@given(MESSAGES, st.sampled_from(("jsonrpc", "id", "method", "params", "result", "error")))
def test_a_key_that_occurs_twice_is_no_json(message: dict[str, Any], key: str) -> None:
    message.setdefault(key, 1)
    with pytest.raises(NotJson):
        parse(_twice(message, key))


FIELDS: Final = st.sampled_from(
    (
        *("cwd", "mcpServers", "additionalDirectories", "sessionId", "cursor", "modeId"),
        *("configId", "value", "prompt", "type", "text", "data", "mimeType", "uri", "name"),
        *("resource", "blob"),
    )
)
URIS: Final = st.sampled_from(("file:///a", "http://[", "data:,", "", 5)) | LONG
DATA: Final = st.sampled_from(("QUFB", "QUF", "QUFB====", "!", "\u00e9", "", 5))
MEDIA: Final = st.sampled_from(("image/png", "text/plain;x=y", "application/zip", "none", None))
WORDS: Final = st.sampled_from(("words", " ", "", "\ufffd", 5)) | LONG
BLOCKS: Final = st.fixed_dictionaries(
    {
        "type": st.sampled_from(("text", "image", "resource_link", "resource", "audio")) | LONG,
        "text": WORDS,
        "data": DATA,
        "mimeType": MEDIA,
        "uri": URIS,
        "resource": st.fixed_dictionaries(
            {"uri": URIS}, optional={"text": WORDS, "blob": DATA, "mimeType": MEDIA}
        ),
    },
    optional={"name": WORDS},
)
PARAMS: Final = st.builds(
    lambda fields, blocks: fields | blocks,
    st.dictionaries(FIELDS, VALUES),
    st.fixed_dictionaries(
        {"sessionId": st.just("ses_a")}, optional={"prompt": st.lists(BLOCKS, max_size=3)}
    ),
)


@pytest.mark.parametrize(
    "model",
    [
        *(acp.NewSession, acp.ResumeSession, acp.OfSession, acp.ListSessions),
        *(acp.SetMode, acp.SetConfigOption, acp.Prompt),
    ],
)
@given(params=PARAMS)
def test_parameters_are_read_or_refused(model: type[acp.Params], params: dict[str, object]) -> None:
    try:
        read = acp.read_params(model, params)
    except AcpError as error:
        assert error.code == Code.INVALID_PARAMS
        assert 0 < len(error.message) <= acp.SENTENCE_CHARS
    else:
        assert isinstance(read, model)


@given(st.lists(BLOCKS, max_size=4) | st.lists(BLOCKS, min_size=1).map(lambda some: some * 300))
def test_blocks_are_taken_or_refused(blocks: list[dict[str, Any]]) -> None:
    try:
        prompt = acp.read_params(acp.Prompt, {"sessionId": "ses_a", "prompt": blocks})
        taken = content(prompt.prompt)
    except AcpError as error:
        assert error.code in (Code.INVALID_PARAMS, Code.LIMIT)
        assert error.data is not None
        assert error.data["admitted"] is False
    else:
        assert taken.text.strip() or taken.files
