"""session/load: the whole conversation as updates, then the answer (ACP v1).

The rows are read while the session goes on: what happens meanwhile is held back until the replay
is out, and what the replay showed is left out of it. A replay is read and sent page by page, as
the client takes it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from adapter.acp.transport import Call
from adapter.core import values as v
from adapter.core.ownrows import OwnRows
from adapter.engine.backlog import Backlog
from adapter.engine.methods.desk import Desk, Json
from adapter.engine.methods.opening import Opening
from adapter.engine.replay import Replay
from adapter.engine.sessions import Open
from contract.errors import AcpError, Code
from contract.reads import AnyRow, AssistantRow
from contract.words import counted

CUT: Final = "replay_cut"
# Loads of one connection that read at once; further ones wait for their turn.
LOADS: Final = 2


@dataclass(frozen=True, slots=True)
class Loading:
    """`send` queues an update past the backlog, `relaxed` waits for a client that reads slowly.

    `room` bounds the loads of the connection that read at once, each with a page in memory.
    """

    desk: Desk
    opening: Opening
    backlog: Backlog
    send: Callable[[str, Json], None]
    relaxed: Callable[[], Awaitable[None]]
    room: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(LOADS))

    async def load(self, call: Call) -> Json:
        """All updates of the replay precede the answer, whatever happened meanwhile follows it.

        A page that cannot be read is the error of the load: what was sent until then stands, and
        a session that was not open before is not open then.
        """
        params, session, home = await self.opening.existing(call)
        replay = Replay(home, self.desk.client.can, self.desk.client.limits)
        async with self.opening.opened(session, home, call) as one:
            past = one.hub.past.read()
            hold = self.backlog.hold(session.id)

            def release() -> None:
                self.backlog.release(session.id, hold, replay.shown())

            told = False
            try:
                await one.hub.whole()
                async with self.room:
                    await self._replay(one, replay)
                result = await self.opening.answer(one, params, call)
                told = True
            finally:
                if not told:
                    release()
            self._follow_up(call, release)
            self.opening.tell_past(one, past, call, seen=True)
            return result

    @staticmethod
    def _follow_up(call: Call, release: Callable[[], None]) -> None:
        """What was held back is behind the answer, and before all else that follows it."""
        follow_up = call.after

        def after() -> None:
            release()
            if follow_up is not None:
                follow_up()

        call.after = after

    async def _replay(self, one: Open, replay: Replay) -> None:
        """Show every row. A turn of ours that runs is told what its client has of it now."""
        hub, server = one.hub, self.desk.engine.server
        self.backlog.drop_shown(hub.session_id)
        hub.step(v.Reloading(one.owner))
        replay.active = hub.session_id in await server.active()
        history = server.history(hub.session_id, self.desk.engine.settings.replay_messages)
        own = OwnRows()
        last: AnyRow | None = None
        first = True
        async for page in history.pages():
            self._check(one)
            if first and history.is_cut:
                self.send(hub.session_id, replay.notice(CUT, _cut(history.bound)))
            first = False
            for row in page:
                last = row
                for update in replay.updates(row):
                    # A row may be larger than the outbox, and other loads write into it, too.
                    await self.relaxed()
                    self._check(one)
                    self.send(hub.session_id, update)
            turn = hub.core.turn_of(one.owner)
            rows = own.take(page, turn.id) if turn is not None else ()
            if rows:
                hub.step(v.Replayed(one.owner, rows))
        hub.step(v.Reloaded(one.owner, _unfinished(last)))

    def _check(self, one: Open) -> None:
        """AcpError -32603 if the session was closed or loaded anew meanwhile."""
        if not self.desk.sessions.holds(one):
            raise AcpError(
                Code.INTERNAL, "The load was given up: the session was closed or opened anew."
            )


def _unfinished(row: AnyRow | None) -> AssistantRow | None:
    """The row if it is an answer whose end is still to come."""
    if isinstance(row, AssistantRow) and row.finish is None and row.error is None:
        return row
    return None


def _cut(bound: int) -> str:
    shown = counted(bound, "message")
    return f"No more than the newest {shown} can be shown; the server has older ones."
