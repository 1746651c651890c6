"""The verdict table of the lifecycle, row by row, on the rows that the server was seen to write."""

from __future__ import annotations

from typing import Any, Final

import pytest

from adapter.core.reconcile import Verdict, judge, newest_prompt, segment
from adapter.core.state import CancelStep, Phase, Turn
from adapter.core.values import Snapshot, Stop
from contract.reads import AnyRow
from tests.support.drive import row, text_row

X: Final = "msg_acp_x"
USER: Final = row("user", X)
OTHER: Final = row("user", "msg_f")
STOPPED: Final = text_row("msg_a", "hi", "stop")
OPEN: Final = text_row("msg_a")
LOOPING: Final = text_row("msg_a", "hi", "tool-calls")
SYNTHETIC: Final = row("synthetic", "msg_s")


def failed_row(kind: str, message: str = "boom", row_id: str = "msg_a") -> AnyRow:
    return text_row(row_id, "hi", "error", error={"type": kind, "message": message})


def idle(outcome: str, row_id: str = "msg_i") -> AnyRow:
    return row("idle", row_id, outcome=outcome)


ABORTED: Final = failed_row("aborted", "Step interrupted")
DROPPED: Final = failed_row("provider.transport")
FILTERED: Final = failed_row("provider.content-filter")
CAPPED: Final = row(
    "assistant",
    "msg_a",
    finish="tool-calls",
    content=[
        {
            "type": "tool",
            "id": "call_1",
            "name": "shell",
            "state": {
                "status": "error",
                "error": {
                    "type": "tool.execution",
                    "message": "Tools are disabled after the maximum agent steps",
                },
            },
        }
    ],
)
SECOND: Final = text_row("msg_b", "more", "stop")
SECOND_OPEN: Final = text_row("msg_b")

TABLE: Final[list[tuple[str, tuple[AnyRow, ...], dict[str, Any], Verdict]]] = [
    ("new pid, unanswered", (USER, OPEN), {"pid": 2}, Verdict.RESTARTED),
    ("new pid, no assistant", (USER,), {"pid": 2}, Verdict.RESTARTED),
    ("new pid, somebody else active", (USER, OPEN, OTHER), {"pid": 2, "active": True},
     Verdict.RESTARTED),
    ("new pid, a bogus success behind it", (USER, OPEN, idle("succeeded")), {"pid": 2},
     Verdict.RESTARTED),
    ("new pid, another one's answer behind it", (USER, OPEN, OTHER, SECOND), {"pid": 2},
     Verdict.RESTARTED),
    ("new pid, aborted by the end of the server", (USER, ABORTED), {"pid": 2}, Verdict.RESTARTED),
    ("new pid, died between steps", (USER, LOOPING), {"pid": 2}, Verdict.RESTARTED),
    ("new pid, answered before", (USER, STOPPED), {"pid": 2}, Verdict.SUCCEEDED),
    ("new pid, interrupted before", (USER, idle("interrupted")), {"pid": 2}, Verdict.INTERRUPTED),
    ("new pid, failed before", (USER, DROPPED, idle("failed")), {"pid": 2}, Verdict.FAILED),
    ("pid not known", (USER, OPEN), {"pid": 0, "active": True}, Verdict.RUNNING),
    ("queued", (), {"inbox": {X}, "active": True}, Verdict.QUEUED),
    ("parked", (), {"inbox": {X}}, Verdict.PARKED),
    ("nowhere", (OTHER,), {}, Verdict.WITHDRAWN_ELSEWHERE),
    ("nowhere, rows cut", (OTHER,), {"complete": False}, Verdict.LOST),
    ("rows cut in a long answer", (SECOND_OPEN,), {"complete": False, "active": True},
     Verdict.RUNNING),
    ("answered", (USER, STOPPED, idle("succeeded")), {}, Verdict.SUCCEEDED),
    ("answered, no idle row needed", (USER, STOPPED), {}, Verdict.SUCCEEDED),
    ("answered, the next one active", (USER, STOPPED, OTHER), {"active": True},
     Verdict.SUCCEEDED),
    ("answered, the next one interrupted", (USER, STOPPED, OTHER, idle("interrupted")), {},
     Verdict.SUCCEEDED),
    ("cut by length", (USER, text_row("msg_a", "hi", "length")), {}, Verdict.SUCCEEDED),
    ("step cap", (USER, CAPPED, idle("succeeded")), {}, Verdict.STEP_CAP),
    ("step cap, still active", (USER, CAPPED), {"active": True}, Verdict.RUNNING),
    ("content filter", (USER, FILTERED, idle("failed")), {}, Verdict.REFUSED),
    ("interrupted", (USER, ABORTED, idle("interrupted")), {}, Verdict.INTERRUPTED),
    ("interrupted before an assistant", (USER, idle("interrupted")), {}, Verdict.INTERRUPTED),
    ("rejected: aborted, no idle row", (USER, ABORTED), {}, Verdict.ABORTED),
    ("rejected, a success written behind it", (USER, ABORTED, idle("succeeded")), {},
     Verdict.ABORTED),
    ("rejected, the next one interrupted", (USER, ABORTED, OTHER, idle("interrupted")), {},
     Verdict.ABORTED),
    ("failed", (USER, DROPPED, idle("failed")), {}, Verdict.FAILED),
    ("failed without an assistant: a bad model", (USER, idle("failed")), {}, Verdict.FAILED),
    ("an error and nobody active", (USER, DROPPED), {}, Verdict.FAILED),
    ("the pause before a retry", (USER, DROPPED), {"active": True}, Verdict.RUNNING),
    ("a retry under way", (USER, DROPPED, SYNTHETIC, SECOND_OPEN), {"active": True},
     Verdict.RUNNING),
    ("a retry that answered", (USER, DROPPED, SYNTHETIC, SECOND, idle("succeeded")), {},
     Verdict.SUCCEEDED),
    ("running", (USER, OPEN), {"active": True}, Verdict.RUNNING),
    ("running, no assistant yet", (USER,), {"active": True}, Verdict.RUNNING),
    ("a steer that joined in the loop", (USER, LOOPING, OTHER, SECOND), {}, Verdict.SUCCEEDED),
    ("together with another prompt", (USER, OTHER, STOPPED), {}, Verdict.SUCCEEDED),
    ("a compaction in the loop", (USER, LOOPING, row("compaction", "msg_c"), SECOND_OPEN),
     {"active": True}, Verdict.RUNNING),
    ("a synthetic item after the answer", (USER, STOPPED, SYNTHETIC, SECOND_OPEN),
     {"active": True}, Verdict.SUCCEEDED),
    ("died: open, nobody active", (USER, OPEN), {}, Verdict.LOST),
    ("died in the loop", (USER, LOOPING), {}, Verdict.LOST),
    ("a bogus success is no proof", (USER, OPEN, idle("succeeded")), {}, Verdict.LOST),
    ("a closed segment does not run", (USER, OPEN, idle("succeeded"), OTHER), {"active": True},
     Verdict.LOST),
]  # fmt: skip


def turn(phase: Phase = Phase.RUNNING, cancel: CancelStep = CancelStep.NONE) -> Turn:
    return Turn(X, 1, phase=phase, cancel=cancel, pid=1)


def snapshot(*rows: AnyRow, **fields: Any) -> Snapshot:
    inbox = frozenset(fields.pop("inbox", ()))
    return Snapshot(rows=rows, inbox=inbox, **{"pid": 1, **fields})


@pytest.mark.parametrize(("name", "rows", "fields", "verdict"), TABLE, ids=lambda v: str(v)[:40])
def test_verdict(
    name: str, rows: tuple[AnyRow, ...], fields: dict[str, Any], verdict: Verdict
) -> None:
    assert judge(turn(), snapshot(*rows, **fields), 1).verdict is verdict, name


def test_our_own_withdrawal_is_told_from_that_of_somebody_else() -> None:
    ours = turn(Phase.WAITING, CancelStep.WITHDRAWING)
    assert judge(ours, snapshot(), 1).verdict is Verdict.WITHDRAWN


@pytest.mark.parametrize(
    ("rows", "active", "verdict"),
    [
        ((USER, OPEN), True, Verdict.RUNNING),  # woken on the new server
        ((USER, OPEN), False, Verdict.LOST),
        ((USER, OPEN, OTHER), True, Verdict.RESTARTED),
        ((USER, OTHER, OPEN), True, Verdict.RESTARTED),
        ((USER, STOPPED, OTHER), True, Verdict.SUCCEEDED),
    ],
)
def test_a_turn_not_seen_delivered_before_a_restart(
    rows: tuple[AnyRow, ...], active: bool, verdict: Verdict
) -> None:
    waiting = turn(Phase.WAITING)
    assert judge(waiting, snapshot(*rows, pid=2, active=active), 1).verdict is verdict


@pytest.mark.parametrize(
    ("finish", "stop"),
    [
        ("stop", Stop.END_TURN),
        ("length", Stop.MAX_TOKENS),
        ("content-filter", Stop.REFUSAL),
        ("other", Stop.END_TURN),
    ],
)
def test_stop_reasons(finish: str, stop: Stop) -> None:
    judged = judge(turn(), snapshot(USER, text_row("msg_a", "hi", finish)), 1)
    assert judged.stop is stop


def test_a_segment_holds_the_answers_of_one_prompt_only() -> None:
    own = segment([USER, STOPPED, OTHER, SECOND, idle("succeeded")], X)
    assert own is not None
    assert ([one.id for one in own.assistants], own.idle, own.closed) == (["msg_a"], None, True)
    assert segment([OTHER], X) is None


@pytest.mark.parametrize(
    ("rows", "newest"),
    [
        ((USER, OPEN), X),
        ((USER, STOPPED, OTHER), "msg_f"),
        ((USER, STOPPED, idle("succeeded")), "msg_i"),
        ((USER, STOPPED, SYNTHETIC, SECOND_OPEN), "msg_s"),
        ((USER, DROPPED, SYNTHETIC, SECOND_OPEN), X),
        ((OPEN,), None),
    ],
)
def test_the_newest_prompt_is_what_an_interrupt_stops(
    rows: tuple[AnyRow, ...], newest: str | None
) -> None:
    assert newest_prompt(rows) == newest
