"""A flight: what the core was given, written without texts, and run again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from adapter.commands.replay import newest, replayed
from adapter.core import values as v
from adapter.core.offsets import OffsetTable
from adapter.core.session import SessionCore
from adapter.engine.heads import HeadError, head, read
from adapter.engine.recorder import BYTES, Recorder
from tests.support.drive import event, row, text_row

SECRET = "the-users-own words"
TURN = "msg_acp_1"


def deltas(number: int) -> list[v.Input]:
    data = {"sessionID": "ses_1", "assistantMessageID": "msg_2", "ordinal": 0}
    return [v.Heard(event("session.text.delta", {**data, "delta": SECRET}))] * number


def turn(number: int = 3) -> list[v.Input]:
    """A turn that is lost with its server."""
    data = {"sessionID": "ses_1", "assistantMessageID": "msg_2", "ordinal": 0}
    rows = (row("user", TURN, text=SECRET), text_row("msg_2", SECRET))
    lost = v.Snapshot(rows=rows, pid=8, judged=frozenset({TURN}))
    return [
        v.Submit(TURN, 1),
        v.Posted(TURN, v.Admission.ADMITTED),
        v.Heard(event("session.inbox.delivered", {"sessionID": "ses_1", "inboxID": TURN})),
        v.Heard(event("session.execution.started", {"sessionID": "ses_1"})),
        v.Heard(
            event("session.step.started", {"sessionID": "ses_1", "assistantMessageID": "msg_2"})
        ),
        v.Heard(event("session.text.started", data)),
        *deltas(number),
        v.FeedLost(),
        v.FeedBack(),
        v.ServerSeen(8),
        v.Reconcile(lost),
    ]


def flown(given: list[v.Input]) -> tuple[Recorder, list[v.Output]]:
    core, recorder = SessionCore("ses_1", OffsetTable(), 7), Recorder("ses_1", lambda: 0.0)
    out: list[v.Output] = []
    for one in given:
        recorder.given(one, 7)
        out += core.step(one)
    return recorder, out


def test_the_core_does_the_same_again_without_the_texts() -> None:
    recorder, out = flown(turn())
    block = recorder.block()
    assert SECRET not in block
    lines = list(replayed(newest(f"opencode-acp: WARNING x: the flight: {block}\n")))
    again = [line for line in lines if line.lstrip().startswith("->")]
    assert len(again) == len(out)
    (settled,) = [one for one in out if isinstance(one, v.Settled)]
    assert settled.outcome.code == -32050
    assert [line for line in again if '"Settled"' in line and "-32050" in line]
    chunks = [one for one in out if isinstance(one, v.Chunk)]
    assert sum(f'"~text": {len(SECRET)}' in line for line in again) >= len(chunks) > 0


def test_a_long_flight_is_bounded_and_keeps_its_beginning_and_its_end() -> None:
    recorder, _ = flown(turn(2000))
    block = recorder.block()
    assert len(block) <= BYTES + 200
    told = json.loads(block)
    assert told["left_out"] > 1000
    assert told["given"][0][1]["~"] == "Submit"
    assert told["given"][-1][1]["~"] == "Reconcile"


def test_what_landed_is_forgotten() -> None:
    recorder, _ = flown(turn())
    recorder.landed()
    assert json.loads(recorder.block())["given"] == []


@pytest.mark.parametrize("given", turn(1), ids=lambda one: type(one).__name__)
def test_a_head_is_read_back_as_what_it_was_but_for_texts(given: v.Input) -> None:
    assert head(read(head(given))) == head(given)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no flight here",
        '{"flight":1,',
        '{"flight":1,"session":"ses_1","given":[[1,{"~":"os"}]]}',
        '{"flight":1,"session":"ses_1","given":[[1,{"~":"Submit"}]]}',
        '{"flight":1,"session":"ses_1","given":[[1,{"~":"Snapshot"}]]}',
        '{"flight":1,"session":"ses_1","given":[7]}',
        '{"flight":1,"session":4,"given":[]}',
        '{"flight":1,"session":"ses_1","given":[[1,{"~text":99999999999}]]}',
        '{"flight":1,"session":"ses_1","given":[[1,{"~":"Heard","event":"x"}]]}',
    ],
)
def test_what_is_no_flight_is_told(text: str, tmp_path: Path) -> None:
    with pytest.raises(HeadError):
        list(replayed(newest(text)))
