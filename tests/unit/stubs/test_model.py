"""The scripted model over HTTP, as an OpenAI-compatible client sees it."""

from __future__ import annotations

import json
import time
from typing import Any

import httpx
import pytest

from stubs.model import ScriptedModel


def request(text: str, model: str = "fake-1") -> dict[str, Any]:
    messages = [{"role": "user", "content": text}]
    return {"model": model, "stream": True, "messages": messages, "tools": [{}]}


async def ask(model: ScriptedModel, text: str) -> list[dict[str, Any]]:
    """The chunks of one response; the closing mark is checked and left out."""
    async with httpx.AsyncClient() as client:
        response = await client.post(f"{model.url}/chat/completions", json=request(text))
    response.raise_for_status()
    lines = [line.removeprefix("data: ") for line in response.text.split("\n\n") if line]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


def joined(chunks: list[dict[str, Any]], field: str) -> str:
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    return "".join(delta.get(field) or "" for delta in deltas)


async def test_a_response_streams_and_ends_with_its_finish_and_usage() -> None:
    async with ScriptedModel() as model:
        chunks = await ask(model, '@@think 2 && text 2 && tool shell {"command":"true"}@@')
    assert joined(chunks, "reasoning_content") == "think0 think1 "
    assert joined(chunks, "content") == "w0 w1 "
    (call,) = chunks[-3]["choices"][0]["delta"]["tool_calls"]
    assert call["id"] == "call_0_0"
    assert call["function"] == {"name": "shell", "arguments": '{"command":"true"}'}
    assert chunks[-2]["choices"][0]["finish_reason"] == "tool_calls"
    assert chunks[-1]["usage"]["completion_tokens_details"] == {"reasoning_tokens": 7}
    assert chunks[-1]["usage"]["prompt_tokens_details"] == {"cached_tokens": 200}


async def test_an_error_answers_its_status_so_often_and_then_goes_on() -> None:
    async with ScriptedModel() as model, httpx.AsyncClient() as client:
        url, body = f"{model.url}/chat/completions", request("@@error 429 2 && text 1@@")
        statuses = [(await client.post(url, json=body)).status_code for _ in range(4)]
    assert statuses == [429, 429, 200, 200]


async def test_a_drop_keeps_what_was_streamed_and_tears_the_body() -> None:
    received = b""
    async with ScriptedModel() as model, httpx.AsyncClient() as client:
        body = request("@@text 3 && drop && text 1@@")
        async with client.stream("POST", f"{model.url}/chat/completions", json=body) as response:
            with pytest.raises(httpx.RemoteProtocolError):
                async for piece in response.aiter_bytes():
                    received += piece
        assert b"w2 " in received
        assert b"DONE" not in received
        assert joined(await ask(model, "@@text 3 && drop && text 1@@"), "content") == "w0 w1 w2 w0 "


async def test_pauses_are_kept() -> None:
    async with ScriptedModel() as model:
        began = time.monotonic()
        await ask(model, "@@text 3 20 && wait 40@@")
    assert time.monotonic() - began >= 0.1


@pytest.mark.parametrize("body", ["[]", "{}", "nonsense", '{"messages":[5]}', '{"messages":5}'])
async def test_a_body_that_is_no_chat_is_refused(body: str) -> None:
    async with ScriptedModel() as model, httpx.AsyncClient() as client:
        response = await client.post(f"{model.url}/chat/completions", content=body)
        assert response.status_code == 400
        assert len((await client.get(f"{model.url}/models")).json()["data"]) == 2


async def test_a_script_that_cannot_be_read_is_named() -> None:
    async with ScriptedModel() as model, httpx.AsyncClient() as client:
        url = f"{model.url}/chat/completions"
        response = await client.post(url, json=request("@@sing 5@@"))
    assert response.status_code == 400
    assert "sing 5" in response.json()["error"]["message"]
