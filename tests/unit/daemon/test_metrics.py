"""The metrics of a daemon at work: the counts add up, and no label says whose they are (O-22)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from adapter.core import values as v
from adapter.daemon.metrics import EVENTS, OTHER, OUTCOMES, ROUTES, Metrics
from adapter.engine.observer import Settlement
from adapter.limits import Limits
from stubs.waiting import until
from tests.unit.daemon.admin.office import Office, office
from tests.unit.daemon.house import Caller
from tests.unit.daemon.test_leaving import running

SHELL = 'tool shell {"command": "echo hi"}'
ASK = {"shell": "ask"}
ID = re.compile(r"(^|\W)(ses|msg|per|frm|evt)_|/tmp|\d{4}")

# From the list of the requirement; `process_*` has no prefix.
NAMES = (
    "build_info", "sse_connected", "sse_reconnects_total", "sse_gap_seconds_count", "events_total",
    "unknown_events_total", "prompts_total", "prompt_seconds_count", "first_chunk_seconds_count",
    "pending_prompts", "oldest_prompt_seconds", "attached_sessions", "clients",
    "permissions_total", "reconcile_total", "recovered_bytes_total", "http_requests_total",
    "http_seconds_count", "omitted_total", "queue_depth", "loop_lag_seconds_count",
    "limits_hit_total", "oddities_total",
)  # fmt: skip


async def until_up(place: Office) -> None:
    assert await place.home.engine.feed.ready(10)


async def answer(caller: Caller, option: str, number: int = 1) -> None:
    """Choose this option of the caller's permission request of that number."""
    asked = "session/request_permission"

    async def come() -> int | None:
        asks = [line["id"] for line in caller.lines if line.get("method") == asked]
        return asks[number - 1] if len(asks) >= number else None

    ident = await until("a permission request", come)
    outcome = {"outcome": "selected", "optionId": option}
    await caller.say({"jsonrpc": "2.0", "id": ident, "result": {"outcome": outcome}})


async def test_every_metric_of_the_list_is_there_and_none_is_global(tmp_path: Path) -> None:
    async with office(tmp_path, permission=ASK) as place:
        caller = await place.home.client()
        session = await caller.new(tmp_path)
        ident = await caller.prompt(session, f"@@{SHELL} || text 1@@")
        await answer(caller, "allow_once")
        await caller.answer(ident)
        samples = await place.samples()
        assert {name for name in NAMES if f"opencode_acp_{name}" not in samples} == set()
        assert {"process_resident_memory_bytes", "process_open_fds"} <= samples.keys()
        assert not [name for name in samples if name.endswith("_created")]
    assert not [one.name for one in REGISTRY.collect() if one.name.startswith("opencode_acp")]


async def test_clients_prompts_and_the_one_feed_add_up(tmp_path: Path) -> None:
    async with office(tmp_path) as place:
        await until_up(place)
        first, second = await place.home.client(), await place.home.client()
        ours, theirs = await first.new(tmp_path), await second.new(tmp_path)
        running = await first.prompt(ours, "@@text 5000 10@@")
        await first.until_text(ours, "w1 ")
        done = await second.prompt(theirs, "@@text 2@@")
        assert await second.stop_reason(done) == "end_turn"
        assert await place.value("clients") == await place.value("attached_sessions") == 2
        assert await place.value("pending_prompts") == 1
        await first.say(
            {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": ours}}
        )
        assert await first.stop_reason(running) == "cancelled"
        assert await place.value("pending_prompts") == 0
        requests = await place.by("http_requests_total", "route")
        assert requests["GET /api/event"] == await place.value("sse_connected") == 1
        assert requests["POST /api/session/{sessionID}/prompt"] == 2
        await first.hang_up()
        await place.until_value("clients", 1)


async def test_a_gap_is_counted_with_what_came_of_it(tmp_path: Path) -> None:
    async with office(tmp_path) as place:
        await until_up(place)
        caller = await place.home.client()
        session = await caller.new(tmp_path)
        ident = await caller.prompt(session, "@@text 40 10@@")
        await caller.until_text(session, "w3 ")
        place.home.stub.cut_feed()
        assert await caller.stop_reason(ident) == "end_turn"
        answered = await caller.answer(ident)
        recovered = answered["result"]["_meta"]["opencode-acp"]["recoveredChars"]
        assert recovered
        assert await place.value("recovered_bytes_total") == recovered
        assert await place.value("sse_reconnects_total") == 1
        assert await place.value("sse_gap_seconds_count") == 1
        verdicts = await place.by("reconcile_total", "verdict")
        assert verdicts.keys() <= {"running", "succeeded"}
        assert verdicts


async def test_permissions_are_counted_by_what_was_decided_and_by_whom(tmp_path: Path) -> None:
    async with office(tmp_path, permission=ASK) as place:
        caller = await place.home.client()
        session = await caller.new(tmp_path)
        ident = await caller.prompt(session, f"@@{SHELL} || {SHELL} || text 1@@")
        await answer(caller, "allow_once")
        await answer(caller, "reject_once", 2)
        await caller.answer(ident)

        async def settled() -> bool:
            return len(await place.by("permissions_total", "decision")) == 2

        await until("both are settled", settled)
        samples = (await place.samples())["opencode_acp_permissions_total"]
        assert sorted((*labels.values(), value) for labels, value in samples) == [
            ("once", "client", 1),
            ("reject", "client", 1),
        ]


async def test_no_label_holds_an_id_and_many_sessions_make_no_new_series(tmp_path: Path) -> None:
    async with office(tmp_path, permission=ASK) as place:
        sizes: list[int] = []
        for count in (1, 12):
            callers = [await place.home.client() for _ in range(count)]
            for caller in callers:
                session = await caller.new(tmp_path)
                ident = await caller.prompt(session, f"@@{SHELL} || text 2@@")
                await answer(caller, "allow_once")
                await caller.answer(ident)
            event = {
                "id": f"evt_{session}",
                "type": "session.novel",
                "data": {"sessionID": session},
            }
            place.home.stub.inject(event)
            await place.until_value("unknown_events_total", len(sizes) + 1)
            samples = await place.samples()
            sizes.append(sum(len(found) for found in samples.values()))
        assert sizes[0] == sizes[1]
        values = {
            (name, value) for found in samples.values() for labels, _ in found
            for name, value in labels.items()
        }  # fmt: skip
        assert [value for name, value in values if name != "le" and ID.search(value)] == []
        types = {value for name, value in values if name == "type"}
        assert types == EVENTS | {OTHER}
        assert {value for name, value in values if name == "route"} <= ROUTES
        assert (await place.by("events_total", "type"))[OTHER] == 2


def settlement(outcome: v.Outcome) -> Settlement:
    return Settlement("ses_1", outcome, 1.5, None)


def counts(metrics: Metrics, name: str) -> dict[tuple[str, ...], float]:
    return {
        tuple(sample.labels.values()): sample.value
        for family in metrics.registry.collect()
        for sample in family.samples
        if sample.name == f"opencode_acp_{name}" and sample.value
    }


def test_what_nobody_knows_beforehand_is_other() -> None:
    metrics = Metrics()
    for number in range(3):
        metrics.settled(settlement(v.Outcome("msg_1", code=-1, reason=f"new_{number}")))
        metrics.verdict(f"new_{number}")
        metrics.requested(f"GET /api/new/{number}", 200, 0.1)
        metrics.event(f"new.{number}")
    assert counts(metrics, "prompts_total") == {(OTHER,): 3}
    assert counts(metrics, "reconcile_total") == {(OTHER,): 3}
    assert counts(metrics, "http_requests_total") == {(OTHER, "2xx"): 3}
    assert metrics.events.keys() == EVENTS


@pytest.mark.parametrize(
    ("status", "code"), [(0, "none"), (200, "2xx"), (404, "4xx"), (599, "5xx"), (999, "none")]
)
def test_statuses_are_counted_by_class(status: int, code: str) -> None:
    metrics = Metrics()
    metrics.requested("GET /api/info", status, 0.01)
    assert counts(metrics, "http_requests_total") == {("GET /api/info", code): 1}


def test_every_outcome_of_a_prompt_has_a_name() -> None:
    """`docs/outcomes.md` says which there are."""
    told = (Path(__file__).parents[3] / "docs" / "outcomes.md").read_text("utf-8")
    assert [name for name in OUTCOMES if f"`{name}`" not in told] == []


def test_what_went_past_the_output_limit_is_counted() -> None:
    metrics = Metrics()
    metrics.settled(settlement(v.Outcome("msg_1", stop=v.Stop.END_TURN, omitted=7)))
    metrics.settled(settlement(v.Outcome("msg_2", stop=v.Stop.END_TURN, omitted=5)))
    assert metrics.omitted_characters == 12
    assert counts(metrics, "prompts_total") == {("end_turn",): 2}


async def test_prompts_are_counted_by_their_outcome_with_their_times(tmp_path: Path) -> None:
    async with office(tmp_path, limits=Limits(turn_output_bytes=40)) as place:
        first, second = await place.home.client(), await place.home.client()
        ours, theirs = await first.new(tmp_path), await second.new(tmp_path)
        running = await first.prompt(ours, "@@wait 30000@@")
        done = await second.prompt(theirs, "@@text 3 && text 40 5@@")
        meta = (await second.answer(done))["result"]["_meta"]["opencode-acp"]
        failing = await second.prompt(theirs, "@@error 400@@")
        assert "error" in await second.answer(failing)
        await first.say(
            {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": ours}}
        )
        assert await first.stop_reason(running) == "cancelled"
        counted = await place.by("prompts_total", "outcome")
        assert counted == {"end_turn": 1, "failed": 1, "cancelled": 1}
        assert await place.value("prompt_seconds_count") == sum(counted.values())
        assert await place.value("first_chunk_seconds_count") == 1
        omitted = await place.by("omitted_total", "kind")
        assert omitted == {"turn_output_bytes": meta["omittedChars"]}


@pytest.mark.parametrize(("interrupt", "outcome"), [(True, "cancelled"), (False, "detached")])
async def test_a_turn_whose_client_leaves_is_counted_as_what_becomes_of_it(
    tmp_path: Path, interrupt: bool, outcome: str
) -> None:
    async with office(tmp_path, interrupt_on_exit=interrupt) as place:
        caller, _ = await running(place.home)
        await caller.hang_up()
        await place.home.until_empty()
        assert await place.by("prompts_total", "outcome") == {outcome: 1}
