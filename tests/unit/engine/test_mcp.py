"""Registrations: who holds what, what happens when the server fails, and what is left behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

import pytest

from adapter.acp.mcpservers import registered_name
from adapter.config import McpSettings
from adapter.engine.mcp import LEFT, PAUSES, Registrations
from adapter.engine.mcpmisses import NotAdded, not_added
from adapter.upstream.errors import (
    Ambiguous,
    Refused,
    ShapeMismatch,
    Unauthorised,
    Unreachable,
    UpstreamError,
)
from adapter.upstream.mcp import McpServers
from adapter.upstream.transport import ServerSettings, Transport
from contract.mcp import McpStatus, StdioServer
from stubs.waiting import until
from tests.unit.engine.rig import Time

SESSION = "ses_a"
HOME = "/srv/project"
SECRET = "cAnary"


class Server(McpServers):
    """The server's side: what is listed, what was asked, and what fails: each `put` with
    `failure` though it had its effect, and so many puts and removals without any. One that
    `falls_deaf` takes a put and answers no reading."""

    def __init__(self) -> None:
        super().__init__(Transport("http://127.0.0.1:9", None, ServerSettings()))
        self.listed: dict[str, McpStatus] = {}
        self.asked: list[str] = []
        self.starts: dict[str, str] = {}
        self.failure: UpstreamError | None = None
        self.lost_puts = 0
        self.falls_deaf = False
        self.refused_removals = 0
        self.unread: UpstreamError | None = None
        self.unremovable: UpstreamError | None = None
        self.hangs_on: Time | None = None
        self.open = asyncio.Event()
        self.open.set()

    async def put(
        self, directory: str, name: str, config: Mapping[str, object], deadline: float
    ) -> None:
        self.asked.append(f"put {name}")
        if self.lost_puts:
            self.lost_puts -= 1
            raise Unreachable("It is down.")
        if self.falls_deaf:
            self.unread = Unreachable("It is down.")
        status = self.starts.get(name, "connected")
        self.listed[name] = McpStatus(
            status=status, error=f"boom {SECRET}" if status == "failed" else ""
        )
        await self.open.wait()
        if self.hangs_on is not None:
            self.hangs_on.now += deadline
            raise Ambiguous("It did not answer in time.")
        if self.failure is not None:
            raise self.failure

    async def statuses(self, directory: str, deadline: float) -> dict[str, McpStatus]:
        if self.unread is not None:
            self.asked.append("unread")
            raise self.unread
        seen = dict(self.listed)
        for name, status in seen.items():
            if status.status == "pending":
                self.listed[name] = McpStatus(status="connected")
        return seen

    async def remove(self, directory: str, name: str, deadline: float) -> None:
        self.asked.append(f"remove {name}")
        await self.open.wait()
        if self.refused_removals:
            self.refused_removals -= 1
            raise Ambiguous("It failed (503).", 503)
        if self.unremovable is not None:
            raise self.unremovable
        self.listed.pop(name, None)


class Rig:
    def __init__(self) -> None:
        self.server = Server()
        self.time = Time()
        self.lost: list[tuple[str, int, Sequence[NotAdded]]] = []
        self.made = Registrations(
            self.server,
            McpSettings("register"),
            self.time.clock,
            self.time.sleep,
            lambda *told: self.lost.append(told),
        )

    async def add(self, *names: str, owner: int = 1, command: str = "x") -> list[NotAdded]:
        servers = [StdioServer(name=name, command=command, args=[], env=[]) for name in names]
        return await self.made.register(SESSION, HOME, owner, servers)

    @property
    def puts(self) -> int:
        return len([line for line in self.server.asked if line.startswith("put")])

    @property
    def removals(self) -> int:
        return len([line for line in self.server.asked if line.startswith("remove")])

    async def until(self, what: str, holds: Callable[[], bool]) -> None:
        async def probe() -> bool:
            return holds()

        await until(what, probe)


@asynccontextmanager
async def rig() -> AsyncIterator[Rig]:
    one = Rig()
    try:
        yield one
    finally:
        await one.made.aclose()


def named(name: str) -> str:
    return registered_name(SESSION, name)


async def test_what_stands_is_not_registered_again() -> None:
    async with rig() as one:
        assert await one.add("a") == []
        assert await one.add("a") == []
        assert one.puts == 1
        await one.add("a", command="another")
        assert one.puts == 2


async def test_what_no_longer_stands_is() -> None:
    async with rig() as one:
        await one.add("a")
        one.server.listed[named("a")] = McpStatus(status="failed")
        await one.add("a")
        assert one.puts == 2


async def test_the_last_one_who_holds_it_takes_it_along() -> None:
    async with rig() as one:
        await one.add("a", owner=1)
        await one.add("a", owner=2)
        one.made.release(SESSION, 1)
        await one.made.settled(SESSION)
        assert list(one.server.listed) == [named("a")]
        one.made.release(SESSION, 2)
        await one.made.settled(SESSION)
        assert one.server.listed == {}
        one.made.release(SESSION, 2)
        assert one.made.unheld() == []


async def test_a_failure_has_a_reason_and_leaves_nothing() -> None:
    async with rig() as one:
        one.server.starts = {named("bad"): "failed", named("odd"): "disabled"}
        failures = await one.add("bad", "good", "odd")
        off = "it is switched off at the OpenCode server"
        assert failures == [NotAdded("bad", "it failed to start"), NotAdded("odd", off)]
        await one.until("they are removed", lambda: list(one.server.listed) == [named("good")])


async def test_one_that_still_starts_is_waited_for() -> None:
    """In a directory that is used for the first time the PUT is answered before the start."""
    async with rig() as one:
        one.server.starts = {named("a"): "pending"}
        assert await one.add("a") == []


@pytest.mark.parametrize("deaf", [True, False])
async def test_a_server_that_fails_is_no_reason_to_open_nothing(deaf: bool) -> None:
    async with rig() as one:
        one.server.unread = Ambiguous("no answer") if deaf else None
        one.server.failure = None if deaf else Ambiguous("It failed (500).", 500)
        (failure,) = await one.add("a")
        assert failure.reason == (
            "the OpenCode server does not say that it started"
            if deaf
            else "the OpenCode server gave no definite answer"
        )
        await one.until("it is removed", lambda: one.server.listed == {})


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (Refused(400, "InvalidRequestError", SECRET), "refused it"),
        (Ambiguous(SECRET, 500), "gave no definite answer"),
        (ShapeMismatch(SECRET), "gave no usable answer"),
        (Unauthorised(SECRET), "refused the password"),
        (Unreachable(SECRET), "cannot be reached"),
    ],
    ids=lambda given: type(given).__name__,
)
async def test_what_the_server_says_of_a_request_is_neither_told_nor_logged(
    error: UpstreamError, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It may quote the request, and so a command, a variable or a header."""
    caplog.set_level("DEBUG", "adapter")
    async with rig() as one:
        await one.add("b")
        one.server.failure = one.server.unread = one.server.unremovable = error
        (failure,) = await one.add("a")
        assert failure == NotAdded("a", f"the OpenCode server {said}")
        one.made.recheck(HOME)
        await one.until("it was read", lambda: "unread" in one.server.asked)
        await one.until("a removal failed", lambda: one.removals > 1)
    assert caplog.text.count(said) > 3
    assert SECRET not in caplog.text


async def test_the_time_is_for_all_together() -> None:
    async with rig() as one:
        one.server.hangs_on = one.time
        began = one.time.now
        failures = await one.add("a", "b")
        assert one.time.now - began == 20
        late = "it was not there within the 20 s that all have"
        assert failures == [NotAdded("a", late), NotAdded("b", late)]


async def test_what_is_on_its_way_is_known_to_whoever_leaves() -> None:
    """A request that was sent has its effect, also when nobody waits for its answer."""
    async with rig() as one:
        one.server.open.clear()
        adding = asyncio.create_task(one.add("a"))
        await one.until("it was asked for", lambda: one.puts == 1)
        adding.cancel()
        await asyncio.wait([adding])
        assert one.made.unheld() == []
        one.made.release(SESSION, 1)
        assert one.made.unheld() == [(HOME, named("a"))]


async def test_a_removal_that_is_under_way_is_not_overtaken() -> None:
    async with rig() as one:
        await one.add("a")
        one.server.open.clear()
        one.made.release(SESSION, 1)
        await one.until("it is being removed", lambda: f"remove {named('a')}" in one.server.asked)
        adding = asyncio.create_task(one.add("a"))
        await asyncio.sleep(0)
        assert one.puts == 1
        one.server.open.set()
        assert await adding == []
        assert one.server.asked[-1] == f"put {named('a')}"
        assert list(one.server.listed) == [named("a")]


async def test_a_removal_that_failed_is_tried_again_after_a_pause() -> None:
    """What stays behind runs on with what its client entrusted to it."""
    async with rig() as one:
        await one.add("a", "b")
        one.time.pauses.clear()
        one.server.refused_removals = 3
        one.made.release(SESSION, 1)
        await one.made.settled(SESSION)
        assert one.removals == 2
        assert one.made.unheld() == [(HOME, named("a")), (HOME, named("b"))]
        await one.until("they are removed", lambda: one.server.listed == {})
        assert one.time.pauses == [*PAUSES[:2]]
        assert (one.removals, one.made.unheld()) == (5, [])


async def test_what_cannot_be_removed_waits_for_the_next_connection_and_for_the_exit() -> None:
    async with rig() as one:
        await one.add("a")
        one.time.pauses.clear()
        tries = len(PAUSES) + 1
        one.server.refused_removals = tries
        one.made.release(SESSION, 1)
        await one.until("all tries are used up", lambda: one.removals == tries)
        await one.made.settled(SESSION)
        assert one.time.pauses == [*PAUSES]
        assert one.made.unheld() == [(HOME, named("a"))]
        one.made.reconnected()
        await one.until("it is removed", lambda: one.server.listed == {})
        assert one.made.unheld() == []


async def test_one_that_could_not_be_removed_is_held_again_by_who_brings_it() -> None:
    async with rig() as one:
        await one.add("a")
        one.server.refused_removals = 10**6
        one.made.release(SESSION, 1)
        await one.made.settled(SESSION)
        assert await one.add("a", owner=2) == []
        one.server.refused_removals = 0
        one.made.reconnected()
        await one.made.settled(SESSION)
        assert (one.puts, list(one.server.listed)) == (1, [named("a")])


async def test_what_cannot_be_removed_is_remembered_up_to_a_bound() -> None:
    async with rig() as one:
        one.server.refused_removals = 10**6
        server = StdioServer(name="a", command="x", args=[], env=[])
        for number in range(LEFT + 3):
            await one.made.register(f"ses_{number}", HOME, 1, [server])
            one.made.release(f"ses_{number}", 1)
            await one.made.settled(f"ses_{number}")
        assert len(one.made.unheld()) == LEFT


async def test_what_the_server_forgot_comes_back() -> None:
    async with rig() as one:
        await one.add("a", "b")
        one.server.listed.pop(named("a"))
        one.made.recheck("/elsewhere")
        one.made.recheck(HOME)
        await one.until("it is back", lambda: named("a") in one.server.listed)
        assert (one.puts, one.lost) == (3, [])


async def test_what_does_not_come_back_is_told_to_who_brought_it() -> None:
    async with rig() as one:
        await one.add("a", owner=1)
        await one.add("a", "b", owner=2)
        one.server.listed.clear()
        one.server.starts = {named("b"): "failed"}
        one.made.recheck(None)
        await one.until("it is told", lambda: bool(one.lost))
        assert one.lost == [(SESSION, 2, [NotAdded("b", "it failed to start")])]


async def test_a_server_that_does_not_answer_is_not_taken_for_one_that_forgot() -> None:
    async with rig() as one:
        await one.add("a")
        one.server.unread = Ambiguous("no answer")
        one.made.recheck(HOME)
        await one.until("it was read", lambda: "unread" in one.server.asked)
        one.made.recheck(HOME)
        await one.until("it was read again", lambda: one.server.asked.count("unread") == 2)
        assert one.puts == 1


async def test_what_got_no_answer_of_a_server_that_goes_down_comes_back() -> None:
    """It is tried once more, and then when the server answers again."""
    async with rig() as one:
        await one.add("a")
        one.server.listed.clear()
        one.server.lost_puts = 2
        one.made.recheck(HOME)
        await one.until("it was tried again", lambda: one.server.lost_puts == 0)
        one.made.reconnected()
        await one.until("it is back", lambda: named("a") in one.server.listed)
        assert (one.puts, one.lost, one.made.unheld()) == (4, [], [])


async def test_one_that_a_server_took_before_it_went_down_comes_back() -> None:
    async with rig() as one:
        await one.add("a")
        one.server.listed.clear()
        one.server.falls_deaf = True
        one.made.recheck(HOME)
        await one.until("it was tried", lambda: one.puts == 2)
        await one.until("it was read in vain", lambda: one.server.asked.count("unread") == 2)
        one.server.listed.clear()
        one.server.falls_deaf, one.server.unread = False, None
        one.made.reconnected()
        await one.until("it is back", lambda: named("a") in one.server.listed)
        assert (one.lost, one.made.unheld()) == ([], [])


async def test_who_brings_none_has_none() -> None:
    async with rig() as one:
        assert await one.add() == []
        await one.add("a")
        assert await one.add() == []
        await one.made.settled(SESSION)
        assert one.server.listed == {}


def test_one_notice_names_all() -> None:
    notice = not_added(7, [NotAdded("a", "boom"), NotAdded("b", "late")])
    assert (notice.owner, notice.kind) == (7, "mcp")
    assert "a (boom); b (late)" in notice.title
    assert notice.data == {
        "servers": [{"name": "a", "reason": "boom"}, {"name": "b", "reason": "late"}]
    }
