"""The client itself: one agent process, its stdin and stdout, and the requests in flight."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from stubs.client.observer import Observer
from stubs.client.transcript import Json, Transcript

Policy = Callable[[Json], Awaitable[str | None]]
"""Takes the params of session/request_permission; an optionId, or None for `cancelled`."""

FormPolicy = Callable[[Json], Awaitable[Json]]
"""Takes the params of elicitation/create; its whole result."""

PERMISSION = "session/request_permission"
FORM = "elicitation/create"

PATIENCE = 60.0
"""Seconds that a request waits for its answer unless told otherwise."""

EXIT_SECONDS = 5.0
STDERR_KEPT = 256 * 1024


class AcpClientError(Exception):
    """The error answer of the agent."""

    def __init__(self, error: Json) -> None:
        super().__init__(f"{error.get('code')}: {error.get('message')}")
        self.code: int = error.get("code", 0)
        self.message: str = str(error.get("message"))
        self.data: Any = error.get("data")


class AgentGone(ConnectionError):
    """The agent closed its stdout while an answer was awaited."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the agent: its message and when it came (time.monotonic seconds)."""

    at: float
    message: Json


@dataclass(slots=True, eq=False)
class _Ask:
    method: str
    session: str
    task: asyncio.Task[None]
    ending: Json = field(default_factory=dict)
    """What is answered if the task is cancelled."""


def choose(kind: str) -> Policy:
    """A policy that always takes the first option of `kind` (allow_once, reject_once...)."""

    async def policy(params: Json) -> str | None:
        for option in params.get("options", ()):
            if option.get("kind") == kind:
                return str(option["optionId"])
        return None

    return policy


async def decline(_: Json) -> Json:
    """A user who fills in no form."""
    return {"action": "decline"}


class AcpClient:
    """Use `async with AcpClient.spawn(argv) as client`. Not safe for use from several loops."""

    def __init__(self, process: asyncio.subprocess.Process, policy: Policy) -> None:
        self.policy = policy
        self.form_policy: FormPolicy = decline
        self.process = process
        self.updates: list[Line] = []
        """Every message of the agent, in the order of arrival."""
        self.on_message: Callable[[Json], None] | None = None
        """Called with each message as it comes."""
        self.sessions: dict[str, Json] = {}
        """The last answer to session/new or session/resume, by session id."""
        self.stderr = b""
        """The last 256 KiB of the agent's stderr."""
        self._observer = Observer()
        self._waiting: dict[object, asyncio.Future[Json]] = {}
        self._asks: dict[str, _Ask] = {}
        self._last_id = -1
        self._news = asyncio.Event()
        self._reads = asyncio.Event()
        self._reads.set()
        self._gone = False

    @classmethod
    @asynccontextmanager
    async def spawn(
        cls,
        argv: Sequence[str],
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        policy: Policy | None = None,
    ) -> AsyncIterator[AcpClient]:
        """Start the agent; on leaving it gets EOF, then 5 s, then SIGKILL."""
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *argv, cwd=cwd, env=env, stdin=pipe, stdout=pipe, stderr=pipe
        )
        client = cls(process, policy or choose("allow_once"))
        readers = [asyncio.create_task(client._read()), asyncio.create_task(client._read_stderr())]
        try:
            yield client
        finally:
            try:
                await client.hang_up()
            finally:
                tasks = [*readers, *(ask.task for ask in client._asks.values())]
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)

    @property
    def violations(self) -> list[str]:
        """One sentence for each breach of the protocol by the agent."""
        return self._observer.violations

    def transcript(self, session: str) -> Transcript:
        """What came for a session until now."""
        return self._observer.transcript(session)

    async def initialize(self, **capabilities: Any) -> Json:
        """initialize with these `clientCapabilities`."""
        params = {
            "protocolVersion": 1,
            "clientCapabilities": capabilities,
            "clientInfo": {"name": "stub-client", "version": "1"},
        }
        return await self.request("initialize", params)

    async def new_session(self, cwd: str | os.PathLike[str], **more: Any) -> str:
        """The id of a new session; the whole answer is in `sessions`."""
        result = await self.request(
            "session/new", {"cwd": os.fspath(cwd), "mcpServers": [], **more}
        )
        session = str(result["sessionId"])
        self.sessions[session] = result
        return session

    async def resume(self, session: str, cwd: str | os.PathLike[str], **more: Any) -> Json:
        """session/resume."""
        params = {"sessionId": session, "cwd": os.fspath(cwd), "mcpServers": [], **more}
        self.sessions[session] = await self.request("session/resume", params)
        return self.sessions[session]

    async def load(self, session: str, cwd: str | os.PathLike[str], **more: Any) -> Json:
        """session/load."""
        params = {"sessionId": session, "cwd": os.fspath(cwd), "mcpServers": [], **more}
        self.sessions[session] = await self.request("session/load", params)
        return self.sessions[session]

    async def prompt(
        self, session: str, prompt: str | list[Json], timeout: float = PATIENCE
    ) -> Json:
        """session/prompt with a text or content blocks; the result, or AcpClientError."""
        blocks = [{"type": "text", "text": prompt}] if isinstance(prompt, str) else prompt
        return await self.request(
            "session/prompt", {"sessionId": session, "prompt": blocks}, timeout
        )

    async def cancel(self, session: str) -> None:
        """session/cancel; our open asks of it answer that they are cancelled, as ACP demands."""
        await self.notify("session/cancel", {"sessionId": session})
        for ask in tuple(self._asks.values()):
            if ask.session == session:
                outcome: Json = {"outcome": {"outcome": "cancelled"}}
                ask.ending = {"result": {"action": "cancel"} if ask.method == FORM else outcome}
                ask.task.cancel()

    async def set_config_option(self, session: str, config: str, value: str) -> Json:
        """session/set_config_option."""
        params = {"sessionId": session, "configId": config, "value": value}
        return await self.request("session/set_config_option", params)

    async def set_mode(self, session: str, mode: str) -> Json:
        """session/set_mode."""
        return await self.request("session/set_mode", {"sessionId": session, "modeId": mode})

    async def close_session(self, session: str) -> Json:
        """session/close."""
        return await self.request("session/close", {"sessionId": session})

    async def request(self, method: str, params: Json, timeout: float = PATIENCE) -> Json:
        """Any request. Raises AcpClientError, AgentGone or TimeoutError.

        Cancelling the caller forgets the answer but sends nothing; `cancel_request` does that.
        """
        if self._gone:
            raise AgentGone(self._last_words())
        self._last_id += 1
        ident = self._last_id
        future: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._waiting[ident] = future
        self._observer.sent_request(ident, method, params)
        message = {"jsonrpc": "2.0", "id": ident, "method": method, "params": params}
        try:
            async with asyncio.timeout(timeout):
                await self.send_raw(json.dumps(message).encode() + b"\n")
                answer = await future
        finally:
            del self._waiting[ident]
        if "error" in answer:
            raise AcpClientError(answer["error"])
        return answer.get("result") or {}

    @property
    def last_request_id(self) -> int:
        """The id of the newest request, for `cancel_request`; ids count from 0."""
        return self._last_id

    async def cancel_request(self, ident: object) -> None:
        """`$/cancel_request`."""
        await self.notify("$/cancel_request", {"requestId": ident})

    async def notify(self, method: str, params: Json) -> None:
        """Any notification."""
        await self._send({"jsonrpc": "2.0", "method": method, "params": params})

    async def send_raw(self, data: bytes) -> None:
        """Bytes as they are. An agent that has left takes nothing, which is no error here."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(data)
            await self.process.stdin.drain()
        except ConnectionError:
            return

    async def wait_for(self, predicate: Callable[[], bool], timeout: float = PATIENCE) -> None:
        """Wait until `predicate()` holds; it is looked at after each line, each answer of ours,
        and at the end.

        Raises TimeoutError, or AgentGone if the agent is gone and it still does not hold.
        """
        async with asyncio.timeout(timeout):
            while not predicate():
                if self._gone:
                    raise AgentGone(self._last_words())
                self._news.clear()
                await self._news.wait()

    def pause(self) -> None:
        """Read nothing more of the agent."""
        self._reads.clear()

    def go_on(self) -> None:
        """Read again."""
        self._reads.set()

    async def hang_up(self, timeout: float = EXIT_SECONDS) -> int:
        """EOF to the agent; its exit code. SIGKILL after `timeout` seconds (code -9)."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            async with asyncio.timeout(timeout):
                return await self.process.wait()
        except TimeoutError:
            return await self.kill()

    async def kill(self) -> int:
        """SIGKILL to the agent; its exit code."""
        if self.process.returncode is None:
            self.process.kill()
        return await self.process.wait()

    async def _send(self, message: Json) -> None:
        await self.send_raw(json.dumps(message).encode() + b"\n")

    async def _read(self) -> None:
        assert self.process.stdout is not None
        rest = b""
        try:
            while chunk := await self.process.stdout.read(64 * 1024):
                await self._reads.wait()
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    self._take(line)
            if rest:
                self.violations.append(f"the last line has no end: {rest[:200]!r}")
        finally:
            self._gone = True
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(AgentGone(self._last_words()))
            self._news.set()

    async def _read_stderr(self) -> None:
        assert self.process.stderr is not None
        while chunk := await self.process.stderr.read(64 * 1024):
            self.stderr = (self.stderr + chunk)[-STDERR_KEPT:]

    def _take(self, line: bytes) -> None:
        message = self._observer.received(line)
        if message is not None:
            self.updates.append(Line(time.monotonic(), message))
            if self.on_message is not None:
                self.on_message(message)
            if "method" not in message:
                future = self._waiting.get(message.get("id"))
                if future is not None and not future.done():
                    future.set_result(message)
            elif "id" in message:
                self._asked(message)
            elif message["method"] == "$/cancel_request":
                self._withdrawn((message.get("params") or {}).get("requestId"))
        self._news.set()

    def _asked(self, message: Json) -> None:
        session = str((message.get("params") or {}).get("sessionId"))
        key = json.dumps(message["id"])
        task = asyncio.create_task(self._decide(key, message))
        self._asks[key] = _Ask(message["method"], session, task)

    def _withdrawn(self, ident: object) -> None:
        ask = self._asks.get(json.dumps(ident))
        if ask is not None:
            ask.ending = {"error": {"code": -32800, "message": "The request was cancelled."}}
            ask.task.cancel()

    async def _decide(self, key: str, message: Json) -> None:
        try:
            answer = await self._answer(message["method"], message.get("params") or {})
        except asyncio.CancelledError:
            await self._reply(key, message, self._asks[key].ending)
            raise
        await self._reply(key, message, answer)

    async def _answer(self, method: str, params: Json) -> Json:
        if method == FORM:
            return {"result": await self.form_policy(params)}
        if method != PERMISSION:
            return {"error": {"code": -32601, "message": f"Unknown method {method}."}}
        option = await self.policy(params)
        outcome = {"outcome": "selected", "optionId": option}
        return {"result": {"outcome": outcome if option else {"outcome": "cancelled"}}}

    async def _reply(self, key: str, message: Json, answer: Json) -> None:
        self._asks.pop(key, None)
        if answer:
            self._observer.sent_answer(message["id"], answer)
            await self._send({"jsonrpc": "2.0", "id": message["id"], **answer})
            # An answer of ours is in the transcript too, and what is waited for may be just that.
            self._news.set()

    def _last_words(self) -> str:
        stderr = self.stderr.decode("utf-8", "replace").strip()
        return f"the agent is gone (exit code {self.process.returncode}): {stderr[-2000:]}"
