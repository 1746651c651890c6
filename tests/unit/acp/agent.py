"""An agent made of the front alone: the peer on real stdio, with a handler of a few lines.

Run as `python -m tests.unit.acp.agent`. A prompt says what it does: `ask`, `wait`, `flood N`.
"""

from __future__ import annotations

import asyncio
import sys
import time

import uvloop

from adapter.acp.descriptors import reserve_stdout
from adapter.acp.jsonrpc import JsonObject
from adapter.acp.peer import Peer, PeerError
from adapter.acp.stdio import StdioTransport
from adapter.acp.transport import Call
from contract.errors import AcpError, Code
from contract.initialize import initialize_result

OPTIONS = [
    {"optionId": "y", "name": "Allow", "kind": "allow_once"},
    {"optionId": "n", "name": "Reject", "kind": "reject_once"},
]


class Agent:
    """One session, `s1`."""

    def __init__(self, sink: int) -> None:
        self.peer = Peer(StdioTransport(0, sink), self, time.monotonic)
        self._stopped = asyncio.Event()

    async def request(self, call: Call) -> JsonObject:
        match call.method:
            case "initialize":
                return initialize_result(call.params)
            case "session/new":
                print("library noise on stdout")
                return {"sessionId": "s1"}
            case "session/prompt":
                return {"stopReason": await self._prompt(call)}
        raise AcpError(Code.METHOD_UNKNOWN, f"Unknown method: {call.method}")

    def notification(self, method: str, params: JsonObject) -> None:
        if method == "session/cancel":
            self._stopped.set()

    async def _prompt(self, call: Call) -> str:
        self._stopped.clear()
        call.on_cancel = self._stopped.set
        prompt = call.params["prompt"]
        assert isinstance(prompt, list)
        word, _, count = prompt[0]["text"].partition(" ")
        if word == "ask":
            return await self._ask()
        if word == "wait":
            await self._stopped.wait()
            return "cancelled"
        for n in range(int(count)):
            self._text(f"{n} ")
        return "end_turn"

    async def _ask(self) -> str:
        tool = {"toolCallId": "t1", "title": "shell"}
        self._update({"sessionUpdate": "tool_call", **tool, "status": "pending"})
        params: JsonObject = {"sessionId": "s1", "toolCall": tool, "options": OPTIONS}
        asking = asyncio.create_task(self.peer.request("session/request_permission", params))
        stopping = asyncio.create_task(self._stopped.wait())
        await asyncio.wait({asking, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not asking.done():
            asking.cancel()
            await asyncio.wait({asking})
        answer = "withdrawn" if asking.cancelled() else str(asking.result())
        status = "completed" if "'y'" in answer else "failed"
        self._update({"sessionUpdate": "tool_call_update", "toolCallId": "t1", "status": status})
        return "cancelled" if self._stopped.is_set() else "end_turn"

    def _text(self, text: str) -> None:
        content = {"type": "text", "text": text}
        self._update(
            {"sessionUpdate": "agent_message_chunk", "messageId": "m1", "content": content}
        )

    def _update(self, update: JsonObject) -> None:
        self.peer.notify("session/update", {"sessionId": "s1", "update": update})


async def main() -> None:
    agent = Agent(reserve_stdout())
    try:
        await agent.peer.run()
    finally:
        await agent.peer.aclose()


if __name__ == "__main__":
    try:
        uvloop.run(main()) if "--uvloop" in sys.argv else asyncio.run(main())
    except PeerError as error:
        sys.exit(str(error))
