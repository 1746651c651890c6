"""One JSON-RPC peer over one transport: requests both ways, cancellation both ways, one order out.

Everything that is queued leaves in the order in which it was queued: an update that a handler
sends before it returns precedes the answer on the wire.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from adapter.acp import jsonrpc
from adapter.acp.framing import INBOUND_LIMIT, OUTBOUND_LIMIT, LineBuffer, Oversize, encode
from adapter.acp.inbound import Inbound, Unanswered, weight
from adapter.acp.jsonrpc import Fault, Id, JsonObject, Notification, Request, Response
from adapter.acp.outbox import Outbox
from adapter.acp.transport import Call, Clock, Handler, Transport
from adapter.limits import Bound, Limits
from contract.errors import AcpError, Code, Plain
from contract.words import counted

CANCEL_REQUEST: Final = "$/cancel_request"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PeerLimits:
    """The bounds of one connection: counts, bytes and seconds."""

    calls: int = 256
    """Requests of the client that run at once; one more is answered -32053."""
    asks: int = 256
    """Requests of ours that wait for the client; one more raises PeerError."""
    inbound_line: int = INBOUND_LIMIT
    outbound_line: int = OUTBOUND_LIMIT
    outbox: int = 8 * 1024 * 1024
    stall_seconds: float = 120.0
    end_seconds: float = 10.0
    """For a handler that is cancelled to come to its end; one that does not is named in the log."""

    @classmethod
    def of(cls, limits: Limits) -> PeerLimits:
        """Those of a connection for which an operator lowered some."""
        return cls(inbound_line=limits.inbound_line_bytes, outbound_line=limits.outbound_line_bytes)


class Ending(StrEnum):
    """Why a connection is over."""

    EOF = "the client closed its side"
    BROKEN = "the client stopped taking bytes"
    STALLED = "the client did not read for too long"
    CLOSED = "the connection was closed here"


class PeerError(Plain, Exception):
    """A request to the client has no result: its error answer, a limit, or a client that left."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    @property
    def plain(self) -> str:
        return f"error {self.code}"


@dataclass(slots=True, eq=False)
class _Running:
    call: Call
    task: asyncio.Task[None]
    withdrawn: bool = False


class Peer:
    """The agent's end of an ACP connection.

    Use: `await peer.run()` until the client is gone, settle what is open, `await peer.aclose()`.
    The peer owns the writer task and one task per request; `aclose` ends them all. `count` hears of
    each line over its limit; `inbound` is what all peers together may hold of what came.
    """

    def __init__(
        self,
        transport: Transport,
        handler: Handler,
        clock: Clock,
        limits: PeerLimits = PeerLimits(),
        *,
        count: Callable[[Bound], None] = lambda _: None,
        inbound: Inbound | None = None,
    ) -> None:
        self._transport = transport
        self._handler = handler
        self._limits = limits
        self._count = count
        budget = inbound or Inbound()
        self._lines = LineBuffer(limits.inbound_line, budget)
        self._unanswered = Unanswered(budget)
        self._running: dict[Id, _Running] = {}
        self._asks: dict[int, asyncio.Future[object]] = {}
        self._last_ask = 0
        self._ending: Ending | None = None
        self._closing = False
        self._writer: asyncio.Task[None] | None = None
        self._outbox = Outbox(
            transport,
            clock,
            limit=limits.outbox,
            stall_seconds=limits.stall_seconds,
            on_stall=lambda: self._end(Ending.STALLED),
            on_broken=lambda: self._end(Ending.BROKEN),
        )

    @property
    def ending(self) -> Ending | None:
        """Why the connection is over; None while it is not."""
        return self._ending

    @property
    def calls(self) -> int:
        """Requests of the client that have no answer yet."""
        return len(self._running)

    @property
    def answering(self) -> frozenset[asyncio.Task[None]]:
        """Those requests, each a task that is done once its answer is queued."""
        return frozenset(running.task for running in self._running.values())

    @property
    def queued_bytes(self) -> int:
        """Bytes of the outbox that the client has not taken."""
        return self._outbox.queued_bytes

    @property
    def congested(self) -> bool:
        """Whether the client reads too slowly: text should wait outside of the outbox."""
        return self._outbox.congested

    async def relaxed(self) -> None:
        """Wait until half of the outbox is free again, or the connection is over."""
        await self._outbox.relaxed()

    def give_up(self, ending: Ending = Ending.STALLED) -> None:
        """End the connection: the client counts as one that left."""
        self._end(ending)

    async def run(self) -> Ending:
        """Read and dispatch until the client is gone, and say why.

        Handlers still run when it returns, and what is queued is still written: only the client's
        side is over. Requests of ours that were open have failed with PeerError by then.
        """
        self._writer = asyncio.create_task(self._outbox.write_out(), name="acp writer")
        try:
            while self._ending is None and (data := await self._transport.read()):
                for line in self._lines.feed(data):
                    self._take(line)
                    # The head of a handler, up to its first await, runs before the next message:
                    # a cancel right behind a prompt finds the turn. And a flood of lines keeps
                    # nobody else from the loop.
                    await asyncio.sleep(0)
        except OSError:
            self._end(Ending.BROKEN)
        finally:
            self._lines.close()
        if self._ending is None:
            self._ending = Ending.EOF
        self._fail_asks()
        return self._ending

    async def answered(self) -> None:
        """Wait until every request that is served has its answer."""
        while tasks := {running.task for running in self._running.values()}:
            await asyncio.wait(tasks)

    async def stop(self) -> None:
        """Cancel the handlers and wait for their end; they give no answer. What is queued stays.

        For `end_seconds` at most.
        """
        self._cancel_handlers()
        await self._handlers_ended()

    async def aclose(self, flush_seconds: float = 0.05) -> None:
        """Cancel the handlers, write what is queued for at most `flush_seconds`, and close.

        A handler that is cancelled here gives no answer. None runs any more when this returns,
        unless one takes longer than `end_seconds`.
        """
        tasks = self._cancel_handlers()
        self._fail_asks()
        try:
            async with asyncio.timeout(flush_seconds):
                if tasks:
                    await asyncio.wait(tasks)
                if self._writer is not None:
                    await self._outbox.flush()
        except TimeoutError:
            unread = counted(self.queued_bytes, "byte")
            logger.info("a connection was closed with %s unread", unread)
        finally:
            self._end(Ending.CLOSED)
            self._outbox.close()
            self._transport.close()
            if self._writer is not None:
                self._writer.cancel()
        await self._handlers_ended()
        if self._writer is not None:
            await asyncio.wait({self._writer})

    def _cancel_handlers(self) -> set[asyncio.Task[None]]:
        self._closing = True
        tasks = {running.task for running in self._running.values()}
        for task in tasks:
            task.cancel()
        return tasks

    async def _handlers_ended(self) -> None:
        tasks = {running.task for running in self._running.values()}
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=self._limits.end_seconds)
        if late:
            names = ", ".join(sorted({running.call.method for running in self._running.values()}))
            logger.error("cancelled and not ended: %s", names[:200])

    def notify(self, method: str, params: JsonObject) -> None:
        """Queue a notification; dropped once the connection is over. ValueError: too long."""
        self._outbox.put(self._encode(jsonrpc.notification(method, params)))

    async def request(self, method: str, params: JsonObject) -> object:
        """Ask the client and wait for its result.

        Raises PeerError for an error answer, a client that left, or too many open requests.
        Cancelling the caller sends `$/cancel_request`; a late answer is then ignored.
        """
        if self._ending is not None or self._closing:
            raise PeerError(Code.INTERNAL, "The client has left.")
        if len(self._asks) >= self._limits.asks:
            raise PeerError(Code.LIMIT, "Too many requests wait for the client.")
        self._last_ask += 1
        ident = self._last_ask
        line = self._encode(jsonrpc.request(ident, method, params))
        answer: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._asks[ident] = answer
        self._outbox.put(line)
        try:
            return await answer
        finally:
            # Still in the table: no answer came, so it is the caller who was cancelled.
            if self._asks.pop(ident, None) is not None:
                self.notify(CANCEL_REQUEST, {"requestId": ident})

    def _take(self, line: bytes | Oversize) -> None:
        if isinstance(line, Oversize):
            self._count(Bound.INBOUND_BYTES if line.shared else Bound.INBOUND_LINE_BYTES)
            self._refuse(None, AcpError(Code.INVALID_REQUEST, line.told))
            return
        match jsonrpc.decode(line):
            case Request() as request:
                self._dispatch(request)
            case Notification(method="$/cancel_request", params=params):
                self._withdraw(params.get("requestId", False))
            case Notification(method=method, params=params):
                self._notified(method, params)
            case Response() as response:
                self._answered(response)
            case Fault() as fault if fault.answer:
                self._refuse(fault.id, AcpError(fault.code, fault.message))
            case Fault() as fault:
                logger.info("ignored a line of the client: %s", fault.message)

    def _dispatch(self, request: Request) -> None:
        if request.id in self._running:
            # Under id null: an answer under the id itself would end the first request.
            text = f"The id {request.id!r} belongs to a request that is still open."
            self._refuse(None, AcpError(Code.INVALID_REQUEST, text))
            return
        if len(self._running) >= self._limits.calls:
            text = f"More than {self._limits.calls} requests are open on this connection."
            self._refuse(request.id, AcpError(Code.LIMIT, text))
            return
        size = weight(request.params)
        if not self._unanswered.take(size):
            self._count(Bound.INBOUND_BYTES)
            text = "The requests in work take up all there is for them; send it again, later."
            self._refuse(request.id, AcpError(Code.LIMIT, text))
            return
        call = Call(request.id, request.method, request.params)
        call.on_let_go = lambda: self._unanswered.give(size)
        task = asyncio.create_task(self._serve(call), name=f"acp {request.method}")
        self._running[request.id] = _Running(call, task)

    async def _serve(self, call: Call) -> None:
        try:
            result = await self._handler.request(call)
            line = self._encode(jsonrpc.success(call.id, result))
        except AcpError as error:
            line = self._failure(call.id, error)
        except asyncio.CancelledError:
            if not self._closing:
                self._refuse(call.id, self._cancelled(call.id))
            raise
        except Exception:
            logger.exception("%s failed", call.method)
            line = self._failure(call.id, _internal(call.method))
        finally:
            del self._running[call.id]
            call.let_go()
        self._outbox.put(line)
        if call.after is not None:
            call.after()

    def _encode(self, message: JsonObject) -> bytes:
        try:
            return encode(message, self._limits.outbound_line)
        except ValueError:
            self._count(Bound.OUTBOUND_LINE_BYTES)
            raise

    def _cancelled(self, ident: Id) -> AcpError:
        if self._running[ident].withdrawn:
            return AcpError(Code.REQUEST_CANCELLED, "The request was cancelled.")
        return AcpError(Code.INTERNAL, "The request was given up inside the adapter.")

    def _withdraw(self, ident: object) -> None:
        running = self._running.get(ident) if jsonrpc.is_id(ident) else None
        if running is None:
            return
        if running.call.on_cancel is None:
            running.withdrawn = True
            running.task.cancel()
            return
        try:
            running.call.on_cancel()
        except Exception:
            logger.exception("the cancel of %s failed", running.call.method)

    def _notified(self, method: str, params: JsonObject) -> None:
        try:
            self._handler.notification(method, params)
        except Exception:
            logger.exception("the notification %s failed", method)

    def _answered(self, response: Response) -> None:
        # The same check as for requests: True and 1.0 never answer 1.
        ident = response.id
        answer = self._asks.pop(ident, None) if isinstance(ident, int) else None
        if answer is None or answer.done():
            return
        if response.error is None:
            answer.set_result(response.result)
        else:
            answer.set_exception(_peer_error(response.error))

    def _refuse(self, ident: Id, error: AcpError) -> None:
        self._outbox.put(self._failure(ident, error))

    def _failure(self, ident: Id, error: AcpError) -> bytes:
        try:
            return self._encode(jsonrpc.failure(ident, error.to_json()))
        except (ValueError, TypeError):
            logger.exception("an error answer could not be written")
            plain = AcpError(error.code, "The error is too long to be told.")
            return encode(jsonrpc.failure(ident, plain.to_json()))

    def _fail_asks(self) -> None:
        asks, self._asks = self._asks, {}
        for answer in asks.values():
            if not answer.done():
                answer.set_exception(PeerError(Code.INTERNAL, "The client has left."))

    def _end(self, ending: Ending) -> None:
        if self._ending is None:
            self._ending = ending
        self._transport.close()


def _internal(method: str) -> AcpError:
    text = f"The adapter failed inside {method}; its log on stderr says where."
    return AcpError(Code.INTERNAL, text)


def _peer_error(error: JsonObject) -> PeerError:
    code, message = error.get("code"), error.get("message")
    return PeerError(
        code if type(code) is int else Code.INTERNAL,
        message if isinstance(message, str) else "The client answered with an error.",
        error.get("data"),
    )
