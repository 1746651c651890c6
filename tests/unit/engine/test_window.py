"""The window of a snapshot: what is buffered, what ends it, and what follows from it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest

from adapter.core import values as v
from adapter.core.offsets import OffsetTable
from adapter.core.session import SessionCore
from adapter.engine.window import CHARACTERS, EVENTS, LONGEST_PAUSE, PATIENCE, Window
from adapter.upstream.client import Server
from adapter.upstream.errors import Ambiguous
from contract.events import Event, ExecutionStarted, TextDelta, ToolSuccess
from contract.reads import InboxItem, Info, Session
from contract.shapes import PermissionAsk
from stubs.waiting import until
from tests.unit.engine.rig import URL, Time, Told

NOTHING: Final[tuple[Any, ...]] = ()


class Reads(Server):
    """A server whose reads wait for `gate`, and fail the first `failures` times."""

    def __init__(self) -> None:
        super().__init__(URL)
        self.gate = asyncio.Event()
        self.gate.set()
        self.begun = 0
        self.cancelled = 0
        self.failures = 0
        self.fault: Exception | None = None
        self.anchors: list[frozenset[str]] = []
        self.family: dict[str, str] = {}

    async def info(self, *, deadline: float | None = None) -> Info:
        self.begun += 1
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self.fault is not None:
            raise self.fault
        if self.failures:
            self.failures -= 1
            raise Ambiguous("The OpenCode server failed (503): no reason given", 503)
        return Info(version="2", pid=7)

    async def inbox(self, session_id: str) -> tuple[InboxItem, ...]:
        return ()

    async def active(self) -> frozenset[str]:
        return frozenset()

    async def rows_back_to(
        self, session_id: str, anchors: frozenset[str], bound: int = 1000
    ) -> tuple[tuple[Any, ...], bool]:
        self.anchors.append(anchors)
        return NOTHING, True

    async def permissions(self, directory: str) -> tuple[PermissionAsk, ...]:
        return ()

    async def forms(self, directory: str) -> tuple[Any, ...]:
        return ()

    async def children(self, session_id: str, bound: int = 128) -> tuple[Session, ...]:
        return tuple(Session(id=key) for key, of in self.family.items() if of == session_id)


class Bench:
    """A window, its core and server, and what it told."""

    def __init__(self, server: Reads) -> None:
        self.server = server
        self.told = Told()
        self.time = Time()
        self.core = SessionCore("ses_a", OffsetTable())
        services = self.told.services(server, time=self.time)
        self.window = Window(services, "ses_a", "/srv", self.core, self.told.step)

    def admit(self, turn_id: str) -> None:
        self.core.step(v.Submit(turn_id, 1))
        self.core.step(v.Posted(turn_id, v.Admission.ADMITTED))

    def hear(self, *events: Event, size: int = 100) -> list[bool]:
        return [self.window.buffered(event, size) for event in events]

    async def reading(self, number: int = 1) -> None:
        """Wait until the read of that number is under way."""

        async def begun() -> bool:
            return self.server.begun >= number

        await until(f"read {number}", begun)

    async def steps(self, number: int) -> list[v.Input]:
        async def told() -> bool:
            return len(self.told.steps) >= number

        await until(f"{number} steps", told)
        return self.told.steps


def event(number: int) -> TextDelta:
    return TextDelta(session_id="ses_a", message_id="m", ordinal=0, delta=f"w{number} ")


def reconcile(step: v.Input) -> v.Reconcile:
    assert isinstance(step, v.Reconcile)
    return step


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with Reads() as server:
        assert isinstance(server, Reads)
        bench = Bench(server)
        yield bench
        bench.window.close()


async def test_without_a_window_nothing_is_buffered(bench: Bench) -> None:
    assert bench.hear(event(0)) == [False]


async def test_events_heard_meanwhile_follow_the_snapshot_in_order(bench: Bench) -> None:
    bench.admit("msg_1")
    bench.server.gate.clear()
    bench.window.open(frozenset({"msg_1"}))
    # From the opening on, before the first read is even begun.
    assert bench.hear(event(0)) == [True]
    await bench.reading()
    assert bench.hear(event(1), event(2)) == [True, True]
    assert bench.told.steps == []
    bench.server.gate.set()
    (step,) = await bench.steps(1)
    assert reconcile(step).buffer == (event(0), event(1), event(2))
    assert reconcile(step).snapshot.judged == {"msg_1"}
    assert bench.server.anchors == [{"msg_1"}]
    assert bench.hear(event(3)) == [False]


async def test_the_next_window_begins_empty(bench: Bench) -> None:
    bench.window.open(frozenset())
    bench.hear(event(0))
    await bench.steps(1)
    bench.window.open(frozenset())
    assert reconcile((await bench.steps(2))[1]).buffer == ()


async def test_the_engine_hears_of_the_server_and_of_children(bench: Bench) -> None:
    bench.server.family = {"ses_b": "ses_a"}
    bench.window.open(frozenset())
    (step,) = await bench.steps(1)
    assert reconcile(step).snapshot.children == (("ses_b", "ses_a"),)
    assert bench.told.pids == [7]
    assert bench.told.following.root_of("ses_b") == "ses_a"


async def test_nothing_is_read_while_the_feed_is_down(bench: Bench) -> None:
    bench.told.feed_is_up = False
    bench.window.open(frozenset({"msg_1"}))
    assert bench.hear(event(0)) == [False]
    assert bench.window.tasks == set()
    bench.told.feed_is_up = True
    bench.window.open(frozenset({"msg_2"}))
    await bench.steps(1)
    # What was asked for before is still looked for.
    assert bench.server.anchors == [{"msg_1", "msg_2"}]


async def test_a_lost_feed_cancels_the_read_and_forgets_the_buffer(bench: Bench) -> None:
    bench.server.gate.clear()
    bench.window.open(frozenset())
    await bench.reading()
    bench.hear(event(0))
    tasks = bench.window.tasks
    bench.window.close()
    await asyncio.wait(tasks)
    assert bench.server.cancelled == 1
    assert bench.hear(event(1)) == [False]
    bench.server.gate.set()
    bench.window.open(frozenset())
    (step,) = await bench.steps(1)
    assert reconcile(step).buffer == ()


@pytest.mark.parametrize(
    ("size", "kept"), [(1, EVENTS), (CHARACTERS // 8, 8)], ids=["events", "characters"]
)
async def test_an_overflow_is_a_gap(bench: Bench, size: int, kept: int) -> None:
    bench.server.gate.clear()
    bench.window.open(frozenset())
    await bench.reading()
    # A result of a tool weighs as much as a text: the line does.
    heard = ToolSuccess(session_id="ses_a", message_id="m", call_id="c", metadata={"a": "x"})
    assert bench.hear(*[heard] * kept, size=size) == [True] * kept
    assert bench.told.steps == []
    # The event that is too much is lost with the rest: the reads will show it.
    assert bench.hear(heard, size=size) == [True]
    assert bench.told.steps == [v.FeedLost(), v.FeedBack()]
    assert bench.hear(heard) == [False]
    await asyncio.sleep(0)
    assert bench.server.cancelled == 1


async def test_in_a_gap_a_read_that_fails_is_tried_again_with_growing_pauses(
    bench: Bench,
) -> None:
    bench.server.failures = 7
    bench.admit("msg_1")
    bench.core.step(v.FeedLost())
    bench.window.open(frozenset())
    # It outlives the reads that fail.
    bench.hear(event(0))
    (step,) = await bench.steps(1)
    assert reconcile(step).snapshot.state == "ok"
    assert reconcile(step).buffer == (event(0),)
    assert bench.time.pauses == [0.1, 0.2, 0.4, 0.8, 1.6, LONGEST_PAUSE, LONGEST_PAUSE]


async def test_without_a_gap_a_check_that_cannot_be_made_gives_the_text_back(bench: Bench) -> None:
    bench.server.failures = 1000
    bench.window.open(frozenset())
    bench.hear(event(0), event(1))
    assert await bench.steps(2) == [v.Heard(event(0)), v.Heard(event(1))]
    assert bench.time.now >= PATIENCE
    assert bench.hear(event(2)) == [False]
    bench.server.failures = 0
    bench.window.open(frozenset())
    assert reconcile((await bench.steps(3))[2]).snapshot.state == "ok"


async def test_a_fault_of_ours_gives_the_text_back(bench: Bench) -> None:
    bench.server.fault = KeyError("a bug")
    bench.window.open(frozenset())
    bench.hear(event(0))
    assert await bench.steps(1) == [v.Heard(event(0))]
    assert bench.hear(event(1)) == [False]


async def test_a_turn_that_is_admitted_in_mid_read_is_judged_by_the_next(bench: Bench) -> None:
    bench.admit("msg_1")
    bench.server.gate.clear()
    bench.window.open(frozenset({"msg_1"}))
    await bench.reading()
    bench.admit("msg_2")
    bench.window.open(frozenset({"msg_2"}))
    bench.server.gate.set()
    first, second = map(reconcile, await bench.steps(2))
    assert first.snapshot.judged == {"msg_1"}
    assert second.snapshot.judged == {"msg_1", "msg_2"}
    assert bench.server.begun == 2


async def test_to_open_an_open_window_starts_no_second_read(bench: Bench) -> None:
    bench.server.gate.clear()
    bench.window.open(frozenset())
    bench.window.open(frozenset({"msg_gone"}))
    await bench.reading()
    bench.window.open(frozenset({"msg_other"}))
    bench.server.gate.set()
    await bench.steps(1)
    assert bench.window.tasks == set()
    assert bench.server.begun == 1


async def test_an_event_without_text_counts_too(bench: Bench) -> None:
    bench.server.gate.clear()
    bench.window.open(frozenset())
    bench.hear(*[ExecutionStarted(session_id="ses_a")] * (EVENTS + 1))
    assert bench.told.steps == [v.FeedLost(), v.FeedBack()]
