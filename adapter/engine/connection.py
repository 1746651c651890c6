"""One client's connection: the ACP methods, and the sessions that it has open."""

from __future__ import annotations

import asyncio
import logging
import os
import posixpath
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from adapter.acp import prompts, updates
from adapter.acp.peer import Peer, PeerError
from adapter.acp.transport import Call
from adapter.core import values as v
from adapter.engine.backlog import Backlog
from adapter.engine.choices import Change, Choices, SetAgent, SetModel
from adapter.engine.client import Attachment
from adapter.engine.engine import Engine
from adapter.engine.hub import Hub
from adapter.engine.problems import as_acp_error
from adapter.upstream.errors import UpstreamError
from contract import acp
from contract.errors import AcpError, Code, invalid_params, not_sent, session_gone
from contract.initialize import initialize_result
from contract.reads import Session
from contract.semantics import OWN_MESSAGE_PREFIX

logger = logging.getLogger(__name__)

Json = dict[str, object]


@dataclass(frozen=True, slots=True)
class Open:
    """A session that this connection has open."""

    hub: Hub
    owner: int


class Connection:
    """The handler behind a peer, and the client's end for the hubs."""

    def __init__(self, engine: Engine, client: Json | None = None) -> None:
        self._engine = engine
        self._peer: Peer | None = None
        self._open: dict[str, Open] = {}
        self._backlog = Backlog(
            self._send, engine.server.row, self._relaxed, self._give_up, engine.sleep
        )
        self._takes_notices = _takes_notices(client or {})
        self._methods: dict[str, Callable[[Call], Awaitable[Json]]] = {
            "initialize": self._initialize,
            "session/new": self._new,
            "session/resume": self._resume,
            "session/close": self._close,
            "session/prompt": self._prompt,
            "session/set_mode": self._set_mode,
            "session/set_config_option": self._set_config_option,
        }

    def bind(self, peer: Peer) -> None:
        """The peer that this handler serves."""
        self._peer = peer

    @property
    def owed(self) -> int:
        """Updates that wait for a client that does not read."""
        return len(self._backlog)

    async def leave(self) -> tuple[list[str], list[tuple[str, str]]]:
        """The client is gone: (sessions to interrupt, (session, prompt) to withdraw)."""
        interrupt = self._engine.settings.interrupt_on_exit
        # Requests that are still served may open and close sessions meanwhile.
        opened = dict(self._open)
        left = await asyncio.gather(
            *(one.hub.leave(one.owner, interrupt=interrupt) for one in opened.values())
        )
        await self._backlog.aclose()
        interrupts: list[str] = []
        withdrawals: list[tuple[str, str]] = []
        for session_id, (stops, withdrawn) in zip(opened, left, strict=True):
            interrupts.extend(session_id for _ in stops)
            withdrawals.extend((session_id, turn_id) for turn_id in withdrawn)
        return interrupts, withdrawals

    # --- the client's end, for the hubs ---------------------------------------------------

    @property
    def takes_notices(self) -> bool:
        return self._takes_notices

    def update(self, session_id: str, update: Json) -> None:
        if self._backlog.busy(session_id) or self._congested:
            self._backlog.owe(session_id, update)
        else:
            self._send(session_id, update)

    def text(self, session_id: str, chunk: v.Chunk) -> None:
        if self._backlog.busy(session_id) or self._congested:
            self._backlog.owe_text(session_id, chunk)
            return
        for update in updates.chunks(chunk):
            self._send(session_id, update)

    async def ask(self, params: Json) -> object:
        """The client's answer to a permission request; None when it gave no usable one."""
        if self._peer is None:
            return None
        try:
            return await self._peer.request("session/request_permission", params)
        except (PeerError, ValueError) as error:
            logger.info("a permission request was not answered: %s", error)
            return None

    @property
    def _congested(self) -> bool:
        return self._peer is not None and self._peer.congested

    def _send(self, session_id: str, update: Json) -> None:
        """Queue one update. Never raises: the feed is read by whoever calls this."""
        if self._peer is None:
            return
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
            return await method(call)
        except UpstreamError as error:
            raise as_acp_error(error, self._engine.settings) from error

    def notification(self, method: str, params: Json) -> None:
        """`session/cancel`; every other notification is ignored (ACP)."""
        if method != "session/cancel":
            return
        session_id = params.get("sessionId")
        one = self._open.get(session_id) if isinstance(session_id, str) else None
        if one is not None:
            one.hub.cancel(one.owner)

    async def _initialize(self, call: Call) -> Json:
        result = initialize_result(call.params)
        self._takes_notices = _takes_notices(call.params)
        return result

    async def _new(self, call: Call) -> Json:
        params = acp.read_params(acp.NewSession, call.params)
        directory = _directory(params)
        self._check_room()
        await self._engine.check_contract()
        session = await self._engine.server.create_session(directory)
        return {"sessionId": session.id, **await self._attach(session, params, call)}

    async def _resume(self, call: Call) -> Json:
        params = acp.read_params(acp.ResumeSession, call.params)
        directory = _directory(params)
        if params.session_id not in self._open:
            self._check_room()
        await self._engine.check_contract()
        try:
            session = await self._engine.server.session(params.session_id)
        except ValueError:
            # Outside the grammar of OpenCode's ids, so no server has it.
            raise session_gone(params.session_id) from None
        home = session.location.directory if session.location else directory
        if not _same_directory(home, directory):
            raise AcpError(
                Code.OTHER_DIRECTORY,
                f"This session belongs to {home}, not to {directory}; open it there.",
                {"directory": home},
            )
        return await self._attach(session, params, call)

    async def _attach(self, session: Session, params: acp.NewSession, call: Call) -> Json:
        directory = session.location.directory if session.location else params.cwd
        known = self._open.get(session.id)
        if known is None:
            # Once more: others may have been opened while the server was asked.
            self._check_room()
        hub = self._engine.hub(session, directory)
        owner = known.owner if known is not None else self._engine.new_owner()
        self._open[session.id] = Open(hub, owner)
        hub.attach(Attachment(owner, self))
        told = known is not None
        try:
            result = await self._choices(hub)
            told = True
        finally:
            if not told:
                # The client gets no answer by which it could know of the session and close it.
                del self._open[session.id]
                await self._detach(hub, owner)
        if params.mcp_servers:
            call.after = lambda: hub.notify(
                v.Notice(
                    owner,
                    "mcp",
                    "The MCP servers of this client were not added: on a shared server they "
                    "would be added to the directory, for every client.",
                )
            )
        return result

    async def _close(self, call: Call) -> Json:
        params = acp.read_params(acp.OfSession, call.params)
        one = self._open.pop(params.session_id, None)
        if one is None:
            return {}
        # What is closed already cannot be kept open by a cancelled request.
        call.on_cancel = lambda: None
        one.hub.cancel(one.owner)
        await one.hub.settled(one.owner)
        await self._detach(one.hub, one.owner)
        return {}

    async def _detach(self, hub: Hub, owner: int) -> None:
        if hub.detach(owner):
            await self._engine.release(hub)

    async def _prompt(self, call: Call) -> Json:
        params = acp.read_params(acp.Prompt, call.params)
        one = self._of(params.session_id)
        if one.hub.core.busy(one.owner):
            raise not_sent(
                Code.BUSY,
                "busy",
                "This session is busy with a prompt of this connection; wait for its end or "
                "cancel it.",
                retry_safe=True,
            )
        content = prompts.content(params.prompt)
        turn_id = f"{OWN_MESSAGE_PREFIX}{uuid.uuid4().hex}"
        answer = one.hub.prompt(one.owner, turn_id, content)
        call.on_cancel = lambda: one.hub.cancel_turn(turn_id)
        # Shielded: the hub still waits for the outcome when the client has left.
        outcome = await asyncio.shield(answer)
        await self._backlog.drained(params.session_id)
        if outcome.stop is None:
            raise updates.prompt_error(outcome)
        return updates.prompt_result(outcome)

    async def _set_mode(self, call: Call) -> Json:
        params = acp.read_params(acp.SetMode, call.params)
        one = self._of(params.session_id)
        async with one.hub.choosing:
            choices = await self._read_choices(one.hub)
            await self._apply(one.hub, choices.change_mode(params.mode_id))
        return {}

    async def _set_config_option(self, call: Call) -> Json:
        params = acp.read_params(acp.SetConfigOption, call.params)
        one = self._of(params.session_id)
        async with one.hub.choosing:
            choices = await self._read_choices(one.hub)
            await self._apply(one.hub, choices.change(params.config_id, params.value))
            return {"configOptions": (await self._read_choices(one.hub)).options()}

    # --- choices --------------------------------------------------------------------------

    async def _read_choices(self, hub: Hub) -> Choices:
        catalogue = await self._engine.catalogues.get(hub.directory)
        return Choices(catalogue, hub.agent, hub.model)

    async def _choices(self, hub: Hub) -> Json:
        choices = await self._read_choices(hub)
        result: Json = {"configOptions": choices.options()}
        modes = choices.modes()
        if modes is not None:
            result["modes"] = modes
        return result

    async def _apply(self, hub: Hub, change: Change) -> None:
        server = self._engine.server
        match change:
            case SetAgent(agent):
                await server.set_agent(hub.session_id, agent)
                hub.chose_agent(agent)
            case SetModel(model):
                await server.set_model(hub.session_id, model.provider_id, model.id, model.variant)
                hub.chose_model(model)
            case None:
                pass

    # --- checks ---------------------------------------------------------------------------

    def _of(self, session_id: str) -> Open:
        one = self._open.get(session_id)
        if one is None:
            raise not_sent(
                Code.INTERNAL,
                "not_open",
                "This session is not open on this connection; send session/resume first.",
                retry_safe=True,
            )
        return one

    def _check_room(self) -> None:
        limit = self._engine.settings.sessions
        if len(self._open) >= limit:
            raise AcpError(
                Code.LIMIT,
                f"This connection has {limit} sessions open; close one first.",
            )


def _directory(params: acp.NewSession) -> str:
    """The cwd, absolute and normal. AcpError -32602 for anything that is no directory."""
    if params.additional:
        raise invalid_params("additionalDirectories are not supported by the OpenCode server.")
    cwd = params.cwd
    if "\0" in cwd or not posixpath.isabs(cwd):
        raise invalid_params("cwd must be an absolute path.")
    directory = posixpath.normpath(cwd)
    if not os.path.isdir(directory):
        raise invalid_params(f"cwd is no directory: {directory}.")
    return directory


def _same_directory(one: str, other: str) -> bool:
    return posixpath.normpath(one) == posixpath.normpath(other) or (
        os.path.realpath(one) == os.path.realpath(other)
    )


def _takes_notices(params: Json) -> bool:
    """ACP: `{}` advertises, null or absence does not."""
    node: object = params
    for key in ("clientCapabilities", "session", "notices"):
        node = node.get(key) if isinstance(node, dict) else None
    return isinstance(node, dict)
