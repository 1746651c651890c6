"""A scripted OpenAI-compatible model, so that a real OpenCode server can be driven offline.

`python -m stubs.model --port 0` prints its base URL as the first line and serves until a signal.
What it answers stands in the prompt: see stubs/script.py and stubs/choice.py.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
from collections import OrderedDict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from aiohttp import web

from stubs.choice import Choice, choose
from stubs.script import Drop, ScriptError, Stream, Tool, Wait

MODELS: Final = ("fake-1", "fake-2")
MAX_BODY_BYTES: Final = 256 * 1024 * 1024
MAX_COUNTERS: Final = 4096
MAX_SEEN: Final = 64
CHUNKS_PER_WRITE: Final = 128
COMPLETION_TOKENS: Final = 50
USAGE: Final = {
    "prompt_tokens": 1000,
    "completion_tokens": COMPLETION_TOKENS,
    "total_tokens": 1050,
    "prompt_tokens_details": {"cached_tokens": 200},
    "completion_tokens_details": {"reasoning_tokens": 7},
}


@dataclass(frozen=True, slots=True)
class Seen:
    """A request as it came: header names in lower case, the body's JSON object."""

    headers: Mapping[str, str]
    body: Mapping[str, Any]


class ScriptedModel:
    """The model as an in-process server on loopback: `async with ScriptedModel() as model`.

    `url` is the base URL ("http://127.0.0.1:PORT/v1"); `seen` holds the last MAX_SEEN requests.
    Port 0 takes a free one. Raises OSError when the port is taken.
    """

    def __init__(self, port: int = 0) -> None:
        self.url = ""
        self.seen: deque[Seen] = deque(maxlen=MAX_SEEN)
        self._port = port
        # How often each step was asked for, for its faults; at MAX_COUNTERS the oldest goes.
        self._asked: OrderedDict[str, int] = OrderedDict()
        app = web.Application(client_max_size=MAX_BODY_BYTES)
        app.router.add_get("/v1/models", self._models)
        app.router.add_post("/v1/chat/completions", self._complete)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/v1"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _models(self, _: web.Request) -> web.Response:
        data = [{"id": name, "object": "model", "owned_by": "stubs"} for name in MODELS]
        return web.json_response({"object": "list", "data": data})

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        try:
            body = await request.json()
            messages = _messages(body)
            session = request.headers.get("x-opencode-session", "")
            choice = choose(session, messages, bool(body.get("tools")))
        except ScriptError as error:
            return _refusal(400, str(error))
        except ValueError:
            return _refusal(400, "a JSON object with chat messages is expected")
        self.seen.append(Seen({k.lower(): v for k, v in request.headers.items()}, body))
        asked = self._count(choice.key)
        error_action = choice.step.error
        if error_action is not None and _holds(error_action.times, asked):
            return _refusal(error_action.status, f"scripted error {error_action.status}")
        answer = _Answer(request, str(body.get("model", MODELS[0])))
        try:
            return await answer.stream(choice, asked)
        except ConnectionResetError:
            # OpenCode hangs up on the model when a turn is interrupted.
            return answer.response

    def _count(self, key: str) -> int:
        """How often this step was asked for before."""
        asked = self._asked.pop(key, 0)
        self._asked[key] = asked + 1
        if len(self._asked) > MAX_COUNTERS:
            self._asked.popitem(last=False)
        return asked


def _messages(body: object) -> Sequence[Mapping[str, Any]]:
    messages = body.get("messages") if isinstance(body, dict) else None
    if not isinstance(messages, list) or not all(isinstance(m, dict) for m in messages):
        raise ValueError("no chat messages")
    return messages


def _holds(times: int | None, asked: int) -> bool:
    return times is None or asked < times


def _refusal(status: int, message: str) -> web.Response:
    return web.json_response({"error": {"message": message, "type": "scripted"}}, status=status)


class _Answer:
    """One streamed response."""

    def __init__(self, request: web.Request, model: str) -> None:
        self._request = request
        self._model = model
        self.response = web.StreamResponse(headers={"content-type": "text/event-stream"})

    async def stream(self, choice: Choice, asked: int) -> web.StreamResponse:
        await self.response.prepare(self._request)
        await self._send(self._chunk({"role": "assistant", "content": ""}))
        calls = 0
        for action in choice.step.actions:
            if isinstance(action, Stream):
                await self._stream_pieces(action)
            elif isinstance(action, Tool):
                await self._send(self._chunk(_tool_delta(action, choice.index, calls)))
                calls += 1
            elif isinstance(action, Wait):
                await asyncio.sleep(action.ms / 1000)
            elif isinstance(action, Drop) and _holds(action.times, asked):
                return self._drop()
        end = self._chunk({}, choice.step.finish)
        usage = self._event({"choices": [], "usage": _usage(choice.step.usage)})
        await self._send(end + usage + b"data: [DONE]\n\n")
        return self.response

    async def _stream_pieces(self, action: Stream) -> None:
        field = "content" if action.kind == "text" else "reasoning_content"
        together = 1 if action.pause_ms else CHUNKS_PER_WRITE
        for at in range(0, len(action.pieces), together):
            pieces = action.pieces[at : at + together]
            await self._send(b"".join(self._chunk({field: piece}) for piece in pieces))
            if action.pause_ms:
                await asyncio.sleep(action.pause_ms / 1000)

    def _drop(self) -> web.StreamResponse:
        # Closing keeps what was written so far and ends the body in mid-chunk; abort would lose it.
        if self._request.transport is not None:
            self._request.transport.close()
        return self.response

    async def _send(self, data: bytes) -> None:
        await self.response.write(data)

    def _chunk(self, delta: Mapping[str, object], finish: str | None = None) -> bytes:
        return self._event({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    def _event(self, fields: Mapping[str, object]) -> bytes:
        envelope = {
            "id": "chatcmpl-scripted",
            "object": "chat.completion.chunk",
            "created": 0,
            "model": self._model,
            **fields,
        }
        return b"data: " + json.dumps(envelope).encode() + b"\n\n"


def _usage(prompt: int | None) -> Mapping[str, object]:
    if prompt is None:
        return USAGE
    return {**USAGE, "prompt_tokens": prompt, "total_tokens": prompt + COMPLETION_TOKENS}


def _tool_delta(tool: Tool, step: int, position: int) -> Mapping[str, object]:
    function = {"name": tool.name, "arguments": tool.arguments}
    call = {"index": position, "id": f"call_{step}_{position}", "type": "function"}
    return {"tool_calls": [call | {"function": function}]}


async def serve(port: int) -> None:
    """Serve until SIGTERM or SIGINT."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    async with ScriptedModel(port) as model:
        print(model.url, flush=True)
        await stopped.wait()


def main() -> None:
    """Read the command line and serve."""
    parser = argparse.ArgumentParser(prog="python -m stubs.model", description=serve.__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    asyncio.run(serve(parser.parse_args().port))


if __name__ == "__main__":
    main()
