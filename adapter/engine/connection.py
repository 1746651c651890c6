"""One client's connection: its end of every session that it has open, and the ACP methods."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

from adapter.acp import updates
from adapter.acp.capabilities import Capabilities, capabilities, client_name
from adapter.acp.omitted import omitted, omitted_of_error
from adapter.acp.overlimit import OverLimit
from adapter.acp.peer import Peer, PeerError
from adapter.acp.transport import Call
from adapter.core import values as v
from adapter.core.state import Phase
from adapter.engine.backlog import Backlog
from adapter.engine.engine import Engine
from adapter.engine.methods.choosing import Choosing
from adapter.engine.methods.desk import Desk, Method
from adapter.engine.methods.ending import Ending
from adapter.engine.methods.listing import Listing
from adapter.engine.methods.loading import Loading
from adapter.engine.methods.opening import Opening
from adapter.engine.methods.prompting import Prompting
from adapter.engine.problems import as_acp_error
from adapter.engine.sessions import OpenSessions
from adapter.limits import Bound
from adapter.upstream.errors import UpstreamError
from contract.errors import AcpError, Code
from contract.initialize import initialize_result

# What a session need not be taken up for.
ENDINGS: Final = frozenset({"session/close", "session/delete"})
# Requests of one client that are served at once; further ones wait in order, since all clients
# share the connections to the server. A prompt is none of them: it may last, has a bound of its
# own, and a cancel right behind it has to find it. Nor is a close, which only stops one.
AT_ONCE: Final = 8
AT_LIBERTY: Final = frozenset({"initialize", "session/prompt", "session/close"})
SETUPS: Final = frozenset({"session/new", "session/load", "session/resume", "session/fork"})

logger = logging.getLogger(__name__)

Json = dict[str, object]


class Connection:
    """The handler behind a peer, and the client's end for the hubs."""

    def __init__(self, engine: Engine, client: Json | None = None, number: int = 0) -> None:
        self._engine = engine
        self._number = number
        self._peer: Peer | None = None
        self.limits = engine.settings.limits
        """For as long as it lasts: what an operator changes counts for connections that come."""
        self._can = capabilities(client or {})
        self._client_name = client_name(client or {})
        self._backlog = Backlog(
            self._send,
            engine.server.row,
            self._relaxed,
            self._give_up,
            engine.sleep,
            gone=lambda characters: engine.counters.hit(v.Oddity.CHARACTERS_GONE, characters),
            limits=self.limits,
        )
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._sessions = OpenSessions(engine, self)
        desk = Desk(engine, self, self._sessions)
        opening, ending, choosing = Opening(desk), Ending(desk), Choosing(desk)
        loading = Loading(desk, opening, self._backlog, self._send, self._relaxed)
        self._prompting = Prompting(desk, self._backlog.drained)
        self._methods: Mapping[str, Method] = {
            "initialize": self._initialize,
            "session/new": opening.new,
            "session/load": loading.load,
            "session/resume": opening.resume,
            "session/list": Listing(desk).list,
            "session/fork": opening.fork,
            "session/close": ending.close,
            "session/delete": ending.delete,
            "session/prompt": self._prompting.prompt,
            "session/set_mode": choosing.set_mode,
            "session/set_config_option": choosing.set_config_option,
        }

    def bind(self, peer: Peer) -> None:
        """The peer that this handler serves."""
        self._peer = peer

    @property
    def owed(self) -> int:
        """Updates that wait for a client that does not read."""
        return len(self._backlog)

    @property
    def holds(self) -> int:
        """Sessions that are being loaded, whose updates wait for the end of the replay."""
        return self._backlog.holds

    @property
    def owners(self) -> Mapping[str, int]:
        """The number of each opening, by session; a session that is opened again gets another."""
        return self._sessions.owners

    @property
    def client_name(self) -> str:
        """What the client calls itself, with its version; empty if it says nothing."""
        return self._client_name

    @property
    def label(self) -> str:
        return " ".join(filter(None, (str(self._number or ""), self._client_name)))

    @property
    def turns(self) -> int:
        """Prompts of the client in flight."""
        return len(self._sessions.turns)

    @property
    def queued(self) -> int:
        """Those of them that the server has not begun to answer."""
        return sum(turn.phase is not Phase.RUNNING for turn in self._sessions.turns)

    @property
    def open_sessions(self) -> frozenset[str]:
        """The sessions that the client has open here."""
        return self._sessions.ids

    async def leave(self) -> tuple[list[str], list[tuple[str, str]]]:
        """The client is gone: (sessions to interrupt, (session, prompt) to withdraw)."""
        interrupt = self._engine.settings.interrupt_on_exit
        opened = self._sessions.all
        left = await asyncio.gather(
            *(one.hub.leave(one.owner, interrupt=interrupt) for one in opened)
        )
        await self._backlog.aclose()
        self._sessions.leave()
        interrupts: list[str] = []
        withdrawals: list[tuple[str, str]] = []
        for one, (stops, withdrawn) in zip(opened, left, strict=True):
            interrupts.extend(one.session_id for _ in stops)
            withdrawals.extend((one.session_id, turn_id) for turn_id in withdrawn)
        return interrupts, withdrawals

    async def stop_turns(self) -> None:
        """Cancel the client's turns, and wait until they are answered (`cancelled`)."""
        await self._sessions.stop_all()

    async def leave_running(self) -> None:
        """Leave the client's turns to the server, and answer them so (`detached`)."""
        await self._sessions.leave_running()

    async def depart(self, *, interrupt: bool) -> None:
        """The client is gone, and the engine goes on for others: nothing of it is left behind.

        `interrupt`: its turns are stopped; otherwise they go on at the server. To be called once
        no request of it is served any more. Takes a little more than `cancel_seconds` at most; a
        stop that the server has not confirmed by then is the engine's to see to.
        """
        await self._backlog.aclose()
        await self._sessions.depart(interrupt=interrupt)

    # --- the client's end, for the hubs ---------------------------------------------------

    @property
    def can(self) -> Capabilities:
        return self._can

    def update(self, session_id: str, update: Json) -> None:
        if self._backlog.busy(session_id) or self._congested:
            self._backlog.owe(session_id, update)
        else:
            self._send(session_id, update)

    def text(self, session_id: str, chunk: v.Chunk) -> None:
        if self._backlog.busy(session_id) or self._congested:
            self._backlog.owe_text(session_id, chunk)
            return
        for update in updates.chunks(chunk, self.limits):
            self._send(session_id, update)

    async def ask(self, method: str, params: Json) -> object:
        if self._peer is None:
            return None
        try:
            shown = params.get("toolCall")
            self._engine.counters.left_out(omitted(shown) if isinstance(shown, dict) else {})
            return await self._peer.request(method, params)
        except (PeerError, ValueError) as error:
            logger.info("%s was not answered: %s", method, error)
            return None

    @property
    def _congested(self) -> bool:
        return self._peer is not None and self._peer.congested

    def _send(self, session_id: str, update: Json) -> None:
        """Queue one update. Never raises: the feed is read by whoever calls this."""
        if self._peer is None:
            return
        self._engine.counters.left_out(omitted(update))
        try:
            self._peer.notify("session/update", {"sessionId": session_id, "update": update})
        except ValueError as error:
            # The builders keep every line below the limit, so this one is a fault of theirs.
            logger.error("an update of %s was left out: %s", session_id, error)

    async def _relaxed(self) -> None:
        if self._peer is not None:
            await self._peer.relaxed()

    def _give_up(self) -> None:
        if self._peer is not None:
            self._peer.give_up()

    # --- the agent's end, for the peer ----------------------------------------------------

    async def request(self, call: Call) -> Json:
        """Serve one request. Raises AcpError."""
        method = self._methods.get(call.method)
        if method is None:
            raise AcpError(Code.METHOD_UNKNOWN, f"Method {call.method[:100]} is unknown.")
        try:
            if call.method in AT_LIBERTY:
                return await self._serve(method, call)
            async with self._slots:
                return await self._serve(method, call)
        except OverLimit as refusal:
            self._engine.counters.hit(refusal.bound)
            raise
        except AcpError as error:
            self._engine.counters.left_out(omitted_of_error(error))
            raise
        except UpstreamError as error:
            raise as_acp_error(error, self._engine.settings) from error

    async def _serve(self, method: Method, call: Call) -> Json:
        session_id, uses = call.params.get("sessionId"), call.method not in ENDINGS
        with self._sessions.request(session_id, uses=uses):
            return await self._timely(method, call)

    async def _timely(self, method: Method, call: Call) -> Json:
        """Serve it; what opens a session fails after a while, with no prompt sent."""
        seconds = self.limits.setup_seconds
        try:
            async with asyncio.timeout(seconds if call.method in SETUPS else None) as limit:
                return await method(call)
        except TimeoutError:
            if not limit.expired():
                raise
            message = f"The session could not be opened within {seconds:g} s; try it again."
            raise OverLimit(Bound.SETUP_SECONDS, AcpError(Code.INTERNAL, message)) from None

    def notification(self, method: str, params: Json) -> None:
        """`session/cancel`; every other notification is ignored (ACP)."""
        if method == "session/cancel":
            self._prompting.cancel(params)

    async def _initialize(self, call: Call) -> Json:
        policy = self._engine.settings.mcp.policy
        result = initialize_result(call.params, mcp=policy == "register")
        self._can = capabilities(call.params)
        self._client_name = client_name(call.params)
        return result
