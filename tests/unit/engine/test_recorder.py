"""A flight: what the core was given, written without texts, and run again."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

import pytest

from adapter.commands.replay import newest, replayed
from adapter.core import values as v
from adapter.core.offsets import OffsetTable
from adapter.core.reconcile import STEP_CAP_PHRASE
from adapter.core.session import SessionCore
from adapter.engine.heads import ITEMS, Reader
from adapter.engine.recorder import BYTES, CHILDREN, FLIGHTS, PINNED, Recorder, pace
from adapter.limits import DEFAULTS, Limits
from tests.support.drive import event, row, text_row
from tests.support.readings import Replay

SECRET: Final = "the users-own words"
TURN: Final = "msg_acp_1"
DATA: Final = {"sessionID": "ses_1", "assistantMessageID": "msg_2", "ordinal": 0}


def heard(kind: str, **data: Any) -> v.Heard:
    return v.Heard(event(f"session.{kind}", {"sessionID": "ses_1", **data}))


def begun(turn: str = TURN, owner: int = 1) -> list[v.Input]:
    return [
        v.Submit(turn, owner),
        v.Posted(turn, v.Admission.ADMITTED),
        heard("inbox.enqueued", inboxID=turn, item={"type": "user", "payload": {"text": SECRET}}),
        heard("inbox.delivered", inboxID=turn),
    ]


def answering(pieces: int = 3) -> list[v.Input]:
    deltas = [heard("text.delta", **DATA, delta=SECRET)] * pieces
    return [heard("step.started", **DATA), heard("text.started", **DATA), *deltas]


def lost(text: str = SECRET, pid: int = 8) -> list[v.Input]:
    """The feed is cut, and the server is another process then."""
    rows = (row("user", TURN, text=SECRET), text_row("msg_2", text))
    snapshot = v.Snapshot(rows=rows, pid=pid, judged=frozenset({TURN}))
    return [v.FeedLost(), v.FeedBack(), v.ServerSeen(pid), v.Reconcile(snapshot)]


class Flown:
    """A recorder with its core, and all that came out."""

    def __init__(self, given: Iterable[v.Input] = (), limits: Limits = DEFAULTS) -> None:
        self.now = 0.0
        offsets = OffsetTable()
        self.core = SessionCore("ses_1", offsets, 7, limits=limits)
        clock = self.clock
        self.recorder = Recorder(self.core, offsets, limits, clock, pace(clock), pid=lambda: 7)
        self.out: list[v.Output] = []
        self.fly(given)

    def clock(self) -> float:
        return self.now

    def fly(self, given: Iterable[v.Input]) -> None:
        for one in given:
            self.out += self.recorder.step(one)

    def block(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self.recorder.block())
        return told


def again(flight: dict[str, Any]) -> list[v.Output]:
    """What a new core puts out."""
    core = SessionCore(flight["session"], OffsetTable(), flight["pid"])
    reader = Reader()
    return [out for entry in flight["given"] for out in core.step(reader.input(entry[1]))]


def summed(outputs: Iterable[v.Output]) -> tuple[Counter[str], list[str]]:
    """Characters of each part; and everything else in order, but for texts and what they weigh."""
    texts: Counter[str] = Counter()
    others: list[str] = []
    for one in outputs:
        match one:
            case v.Chunk():
                texts[f"{one.owner} {one.message_id} {one.kind} {one.ordinal}"] += len(one.text)
            case v.Tool():
                others.append(f"{one.owner} {one.message_id} {one.call_id} {one.status}")
            case v.Settled(outcome=end):
                told = (end.message_id, end.stop, end.code, end.gaps, end.recovered, end.shared)
                others.append(f"Settled {told}")
            case v.Reply() | v.AskClient() | v.Interrupt() | v.Wake() | v.Withdraw() | v.Arm():
                others.append(f"{type(one).__name__} {getattr(one, 'timer', '')}")
            case _:
                others.append(type(one).__name__)
    return texts, others


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [line for line in caplog.messages if line.startswith("the flight of")]


# --- what is written ------------------------------------------------------------------------


def test_an_unknown_outcome_is_told_with_all_that_led_to_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    flown = Flown([*begun(), *answering(), *lost(SECRET)])
    (line,) = told(caplog)
    assert caplog.records[-1].levelno == logging.WARNING
    assert SECRET not in line
    flight = newest(line)
    assert [entry[1]["~"] for entry in flight["given"]][:2] == ["Submit", "Posted"]
    assert flight["ended"] == [[TURN, -32050]]
    assert summed(again(flight)) == summed(flown.out)
    lines = list(replayed(flight))
    assert lines[-1] == "It ended as it did."
    assert any("Settled(" in one and "code=-32050" in one for one in lines)
    assert len(flown.recorder) == 0


def test_a_turn_that_is_left_running_needs_no_explanation(
    caplog: pytest.LogCaptureFixture,
) -> None:
    flown = Flown([*begun(), *answering(), v.Left(1, interrupt=False)])
    (end,) = [one.outcome for one in flown.out if isinstance(one, v.Settled)]
    assert end.reason == "detached"
    assert told(caplog) == []


def test_a_flight_that_ends_otherwise_when_it_is_run_again_is_said_to(
    caplog: pytest.LogCaptureFixture,
) -> None:
    Flown([*begun(), *lost()])
    flight = newest(told(caplog)[0])
    assert flight["given"].pop()[1]["~"] == "Reconcile"
    assert list(replayed(flight))[-1] == "It did not end as it did when it was written."


def test_an_end_that_is_known_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    flown = Flown([*begun(), *answering(), heard("step.ended", **DATA, finish="stop")])
    assert [one for one in flown.out if isinstance(one, v.Settled)]
    assert (told(caplog), len(flown.recorder)) == ([], 0)


@pytest.mark.parametrize("shown", [SECRET[::-1] * 9, SECRET], ids=["other", "shorter"])
def test_a_text_that_was_not_as_shown_is_told_once_and_met_again(
    caplog: pytest.LogCaptureFixture, shown: str
) -> None:
    flown = Flown([*begun(), *answering()])
    flown.fly([heard("text.ended", **DATA, text=shown)])
    (line,) = told(caplog)
    assert "not as it had been shown" in line
    outputs = again(newest(line))
    assert v.Counted(v.Oddity.DIVERGENCES) in outputs
    assert summed(outputs) == summed(flown.out)
    other = {**DATA, "ordinal": 1}
    flown.fly([heard("text.started", **other), heard("text.delta", **other, delta=SECRET)])
    flown.fly([heard("text.ended", **other, text="another one " * 9)])
    assert flown.out.count(v.Counted(v.Oddity.DIVERGENCES)) == 2
    assert len(told(caplog)) == 1


def test_of_the_texts_that_are_read_after_a_gap_only_the_one_that_differed_differs_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    other = {**DATA, "ordinal": 1}
    flown = Flown([*begun(), *answering(), heard("text.started", **other)])
    flown.fly([heard("text.delta", **other, delta=SECRET)])
    content = [{"type": "text", "text": SECRET * 4}, {"type": "text", "text": "else " * 20}]
    rows = (row("user", TURN, text=SECRET), row("assistant", "msg_2", content=content))
    snapshot = v.Snapshot(rows=rows, active=True, pid=7, judged=frozenset({TURN}))
    flown.fly([v.FeedLost(), v.FeedBack(), v.Reconcile(snapshot)])
    (line,) = told(caplog)
    assert summed(again(newest(line))) == summed(flown.out)
    assert v.Counted(v.Oddity.DIVERGENCES, 1) in flown.out


@pytest.mark.parametrize("text", ["stop", "read", "running", f"{STEP_CAP_PHRASE} reached", "else"])
@pytest.mark.parametrize("shown", ["what was shown at first", None])
def test_a_text_that_reads_like_a_word_of_the_rules_is_a_text(
    caplog: pytest.LogCaptureFixture, text: str, shown: str | None
) -> None:
    deltas = [heard("text.delta", **DATA, delta=one) for one in (shown or text)]
    flown = Flown([*begun(), heard("step.started", **DATA), heard("text.started", **DATA), *deltas])
    rows = (row("user", TURN, text="stop"), text_row("msg_2", text))
    snapshot = v.Snapshot(rows=rows, active=True, pid=7, judged=frozenset({TURN}))
    flown.fly([v.FeedLost(), v.FeedBack(), v.Reconcile(snapshot)])
    assert flown.out.count(v.Counted(v.Oddity.DIVERGENCES)) == (shown is not None)
    assert len(told(caplog)) == (shown is not None)
    if STEP_CAP_PHRASE not in text or shown is not None:
        assert summed(again(flown.block())) == summed(flown.out)


def test_of_a_row_with_more_parts_than_are_kept_the_last_may_differ(
    caplog: pytest.LogCaptureFixture,
) -> None:
    last = {**DATA, "ordinal": ITEMS}
    flown = Flown([*begun(), heard("step.started", **DATA), heard("text.started", **last)])
    flown.fly([heard("text.delta", **last, delta=SECRET)])
    content = [{"type": "text", "text": ""}] * ITEMS + [{"type": "text", "text": "else " * 9}]
    rows = (row("user", TURN, text=SECRET), row("assistant", "msg_2", content=content))
    snapshot = v.Snapshot(rows=rows, active=True, pid=7, judged=frozenset({TURN}))
    flown.fly([v.FeedLost(), v.FeedBack(), v.Reconcile(snapshot)])
    assert v.Counted(v.Oddity.DIVERGENCES) in flown.out
    assert "could not be kept" not in caplog.text


def test_a_fault_of_the_recorder_keeps_no_input_from_the_core(
    caplog: pytest.LogCaptureFixture,
) -> None:
    faults = [RuntimeError("once")]

    def before() -> Iterable[v.Input]:
        while faults:
            raise faults.pop()
        return ()

    offsets, clock = OffsetTable(), Flown().clock
    core = SessionCore("ses_1", offsets, 7)
    recorder = Recorder(core, offsets, DEFAULTS, clock, pace(clock), before=before)
    given = [*begun(), *answering(), *lost()]
    out = [output for one in given for output in recorder.step(one)]
    alone = SessionCore("ses_1", OffsetTable(), 7)
    assert summed(out) == summed(output for one in given for output in alone.step(one))
    assert [one for one in caplog.messages if "could not be kept" in one] == [
        "a flight of ses_1 could not be kept"
    ]
    # Half a flight proves nothing; the next one begins when no turn is left.
    assert (told(caplog), len(recorder)) == ([], 0)
    recorder.step(v.Submit("msg_acp_3", 1))
    assert len(recorder) > 0


def test_a_server_that_goes_down_with_many_turns_does_not_flood_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = Flown().clock
    shared = pace(clock)
    for _ in range(FLIGHTS + 2):
        offsets = OffsetTable()
        recorder = Recorder(SessionCore("ses_1", offsets, 7), offsets, DEFAULTS, clock, shared)
        for one in [*begun(), *lost()]:
            recorder.step(one)
    lines = told(caplog)
    assert [line.endswith("left out, since there are many") for line in lines] == (
        [False] * FLIGHTS + [True] * 2
    )


# --- what is kept ---------------------------------------------------------------------------


def test_pieces_of_a_text_are_one_entry() -> None:
    flown = Flown([*begun(), *answering(2000)])
    given = flown.block()["given"]
    assert len(given) == 7
    assert given[-1][1]["event"]["delta"] == {"~text": 2000 * len(SECRET)}
    assert given[-1][2] == 2000


def test_progress_of_a_call_is_one_entry_as_long_as_it_names_the_same_child() -> None:
    call = {"sessionID": "ses_1", "assistantMessageID": "msg_2", "id": "call_1"}
    flown = Flown([*begun(), *answering()])
    for metadata in [{"out": SECRET}] * 50 + [{"sessionID": "ses_child", "out": SECRET}] * 50:
        flown.fly([heard("tool.progress", **call, metadata=metadata)])
    entries = flown.block()["given"][-2:]
    assert [entry[2] for entry in entries] == [50, 50]
    assert entries[1][1]["event"]["metadata"]["sessionID"] == "ses_child"


def test_times_are_milliseconds_since_the_flight_began() -> None:
    flown = Flown()
    flown.now = 50.0
    flown.fly(begun()[:1])
    flown.now = 50.25
    flown.fly(begun()[1:2])
    assert [entry[0] for entry in flown.block()["given"]] == [0, 250]


def test_a_long_flight_is_bounded_and_keeps_how_its_turns_began() -> None:
    flown = Flown([*begun(), *answering()])
    usage = [heard("usage.updated", cost=0.5, tokens={"input": number}) for number in range(1000)]
    flown.fly(usage)
    for number in range(PINNED):
        flown.fly(begun(f"msg_acp_other{number}", number + 2)[:1])
    flown.fly(usage[-1:])
    flight = flown.block()
    assert len(flown.recorder.block()) <= BYTES + 200
    assert flight["left_out"] > 500
    assert [entry[1]["~"] for entry in flight["given"]][:2] == ["Submit", "Posted"]
    assert flight["given"][-1][1]["event"]["tokens"]["input"] == 999
    assert again(flight)


def test_turns_that_are_over_give_their_room_to_those_that_are_not() -> None:
    flown = Flown(begun("msg_acp_first", 0)[:1])
    for number in range(1000):
        turn = f"msg_acp_{number}"
        flown.fly([v.Submit(turn, 1), v.Posted(turn, v.Admission.NOT_ADMITTED)])
    flight = flown.block()
    assert flight["given"][0][1]["turn_id"] == "msg_acp_first"
    assert len(flown.recorder.block()) <= BYTES + 200


def test_an_input_that_is_too_long_is_named_and_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    parts = [{"type": "text", "text": SECRET}] * 2000
    rows = (row("user", TURN), row("assistant", "msg_2", content=parts))
    snapshot = v.Snapshot(rows=rows, pid=8, judged=frozenset({TURN}))
    Flown([*begun(), v.FeedLost(), v.FeedBack(), v.Reconcile(snapshot)])
    lines = list(replayed(newest(told(caplog)[0])))
    assert any("(Reconcile: too long to be kept, and not run)" in line for line in lines)


def test_nothing_is_kept_without_a_turn() -> None:
    flown = Flown([v.Watch(1), heard("execution.started"), *answering()])
    assert flown.block()["given"] == []


def test_a_flight_begins_with_what_its_core_knew(caplog: pytest.LogCaptureFixture) -> None:
    offsets = OffsetTable()
    core = SessionCore("ses_1", offsets, 7)
    made = [heard("created", sessionID="ses_child", parentID="ses_1")]
    known: list[v.Input] = [*made, v.Watch(3), v.FeedLost()]
    clock = Flown().clock
    recorder = Recorder(core, offsets, DEFAULTS, clock, pace(clock), before=lambda: iter(known))
    for one in known:
        core.step(one)
    recorder.step(v.Submit(TURN, 1))
    names = [entry[1]["~"] for entry in json.loads(recorder.block())["given"]]
    assert names == ["Heard", "Watch", "FeedLost", "Submit"]
    assert CHILDREN * 200 < BYTES / 2


def test_limits_that_were_lowered_go_along(caplog: pytest.LogCaptureFixture) -> None:
    Flown([*begun(), *lost()], Limits(turn_asks=3))
    flight = newest(told(caplog)[0])
    assert flight["limits"] == {"turn_asks": 3}
    assert list(replayed(flight))[-1] == "It ended as it did."


# --- what the real server did ---------------------------------------------------------------

NAMES: Final = ("text", "tools", "rejected", "child", "retried", "failed", "interrupted", "queued")


def recorded(name: str, cut: int | None, monkeypatch: pytest.MonkeyPatch) -> Sequence[v.Input]:
    """All that the core is given when this recording is played to it."""
    replay = Replay(name, cut)
    given: list[v.Input] = []
    step = replay.drive.core.step

    def noted(one: v.Input) -> list[v.Output]:
        given.append(one)
        return step(one)

    monkeypatch.setattr(replay.drive.core, "step", noted)
    replay.play()
    return given


def strings(value: object) -> Iterable[str]:
    match value:
        case str():
            yield value
        case dict():
            for key, one in value.items():
                yield from (key, *strings(one))
        case list():
            for one in value:
                yield from strings(one)


@pytest.mark.parametrize("cut", [None, 12, 30])
@pytest.mark.parametrize("name", NAMES)
def test_what_a_real_server_led_to_is_led_to_again_without_a_text(
    monkeypatch: pytest.MonkeyPatch, name: str, cut: int | None
) -> None:
    given = recorded(name, cut, monkeypatch)
    session = next(one.event.session_id for one in given if isinstance(one, v.Heard))
    offsets = OffsetTable()
    core = SessionCore(session, offsets)
    clock = Flown().clock
    recorder = Recorder(core, offsets, DEFAULTS, clock, pace(clock))
    # A turn that never ends: the flight does not land.
    out = [one for given in [v.Submit("msg_acp_z", 99), *given] for one in recorder.step(given)]
    flight = json.loads(recorder.block())
    assert flight["left_out"] == 0
    assert summed(again(flight)) == summed(out)
    assert [text for text in strings(flight) if " " in text] == []
