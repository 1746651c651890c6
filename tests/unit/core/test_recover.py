"""After a gap: texts, then the buffer, then acts; and a deadline for what nobody can say."""

from __future__ import annotations

import pytest

from adapter.core import values as v
from adapter.core.values import Admission, Stop
from contract.errors import Code
from tests.support.drive import Drive, event, of, row, text_row

A, B = "msg_acp_a", "msg_acp_b"
USER = row("user", A)


def delivered(turn: str) -> v.Heard:
    return v.Heard(event("session.inbox.delivered", {"sessionID": "ses_1", "inboxID": turn}))


def test_defect_reconnect_never_reconciled() -> None:
    """A feed that is back asks for the reads, and a turn that ended in the gap is answered."""
    drive = Drive()
    drive.run(A)
    drive.text("msg_1", "half ", end=False)
    drive.step(v.FeedLost())
    assert of(drive.step(v.FeedBack()), v.TakeSnapshot) == [v.TakeSnapshot(frozenset({A}))]
    drive.snapshot(USER, text_row("msg_1", "half and half", "stop"))
    assert drive.stop(A) is Stop.END_TURN
    assert drive.seen.texts == {("msg_1", "text"): "half and half"}
    assert (drive.outcome(A).gaps, drive.outcome(A).recovered) == (1, len("and half"))


def test_without_a_turn_nothing_is_read() -> None:
    drive = Drive()
    drive.step(v.FeedLost())
    assert drive.step(v.FeedBack()) == []


def test_a_gap_that_lasts_is_told_once() -> None:
    drive = Drive()
    drive.run(A)
    drive.admit(B, 2)
    drive.step(v.FeedLost())
    assert drive.timers["reconnecting"] == "reconnecting"
    told = of(drive.fire("reconnecting"), v.Notice)
    assert [(one.owner, one.kind) for one in told] == [(1, "reconnecting"), (2, "reconnecting")]
    drive.step(v.FeedBack())
    drive.step(v.FeedLost())
    assert "reconnecting" not in drive.timers
    drive.step(v.FeedBack())
    drive.snapshot(USER, text_row("msg_1"), inbox=[B], active=True)
    # The next gap is another one.
    drive.step(v.FeedLost())
    assert "reconnecting" in drive.timers


def test_a_gap_that_is_made_good_for_in_time_is_not_told() -> None:
    drive = Drive()
    drive.run(A)
    drive.gap()
    assert "reconnecting" in drive.timers
    drive.snapshot(USER, text_row("msg_1"), active=True)
    assert "reconnecting" not in drive.timers
    assert drive.step(v.Fired("reconnecting")) == []


def test_of_a_turn_that_is_over_no_gap_is_told() -> None:
    drive = Drive()
    drive.step(v.FeedLost())
    assert drive.timers == {}
    drive.step(v.FeedBack())
    drive.run(A)
    drive.step(v.FeedLost())
    drive.step(v.Cancel(1))
    drive.fire(f"cancel:{A}")
    assert "reconnecting" not in drive.timers


def test_lost_needs_the_same_reading_three_times() -> None:
    drive = Drive()
    drive.run(A)
    drive.gap()
    waits = []
    for _ in range(3):
        out = drive.snapshot(USER, text_row("msg_1"))
        waits += [arm.wait for arm in of(out, v.Arm) if arm.timer == "lost"]
        if "lost" in drive.timers:
            assert of(drive.fire("lost"), v.TakeSnapshot)
    assert waits == ["lost_first", "lost_last"]
    outcome = drive.outcome(A)
    assert (outcome.code, outcome.retry_safe) == (Code.UNKNOWN_OUTCOME, False)


def test_a_better_reading_in_between_starts_the_count_anew() -> None:
    drive = Drive()
    drive.run(A)
    drive.gap()
    for active in (False, False, True, False, False):
        drive.snapshot(USER, text_row("msg_1"), active=active)
    assert drive.core.turn_ids == (A,)


def test_a_turn_that_is_delivered_in_the_buffer_begins_there() -> None:
    drive = Drive()
    drive.run(A, 1)
    drive.started("msg_1")
    drive.admit(B, 2)
    drive.gap()
    part = {"sessionID": "ses_1", "assistantMessageID": "msg_1", "ordinal": 0}
    ended = {"sessionID": "ses_1", "assistantMessageID": "msg_1", "finish": "stop"}
    buffer = [
        event("session.text.ended", {**part, "text": "for a"}),
        event("session.step.ended", ended),
        delivered(B).event,
    ]
    rows = (USER, text_row("msg_1", "for a", "stop"), row("user", B), text_row("msg_2"))
    drive.snapshot(*rows, active=True, buffer=buffer)
    assert drive.core.turn_ids == (B,)
    drive.text("msg_2", "for b")
    drive.ended("msg_2")
    assert [(c.owner, c.text) for c in of(drive.said, v.Chunk)] == [(1, "for a"), (2, "for b")]


def test_a_turn_admitted_after_the_inbox_was_read_is_not_judged() -> None:
    drive = Drive()
    drive.run(A, 1)
    drive.gap()
    judged = drive.core.admitted_ids
    drive.admit(B, 2)
    drive.snapshot(USER, text_row("msg_1", "a", "stop"), judged=judged)
    assert drive.core.turn_ids == (B,)


def test_a_parked_turn_is_woken_after_the_second_reading() -> None:
    drive = Drive()
    drive.admit(A)
    drive.gap()
    assert of(drive.snapshot(inbox=[A]), v.Wake) == []
    drive.fire("parked")
    assert of(drive.step(v.InboxRead((A,), False)), v.Wake) == [v.Wake(A, requeue=False)]


def test_no_verdict_in_time_is_unknown_for_what_lacks_one_only() -> None:
    drive = Drive()
    drive.run(A, 1)
    drive.admit(B, 2)
    drive.gap()
    drive.snapshot(USER, text_row("msg_1"), inbox=[B])
    assert "gap" in drive.timers
    drive.fire("gap")
    assert drive.code(A) == Code.UNKNOWN_OUTCOME
    assert drive.core.turn_ids == (B,)


def test_a_prompt_on_its_way_when_the_deadline_passes_gets_one_of_its_own() -> None:
    drive = Drive()
    drive.submit(A)
    drive.step(v.FeedLost())
    drive.fire("gap")
    drive.step(v.Posted(A, Admission.ADMITTED))
    drive.fire("gap")
    assert drive.code(A) == Code.UNKNOWN_OUTCOME


def test_a_prompt_made_in_a_gap_has_the_deadline_too() -> None:
    drive = Drive()
    drive.step(v.FeedLost())
    drive.submit(A)
    assert drive.timers == {"gap": "gap"}


def test_the_deadline_counts_from_the_first_loss() -> None:
    drive = Drive()
    drive.run(A)
    drive.gap()
    assert not of(drive.step(v.FeedLost()), v.Arm)


@pytest.mark.parametrize("known", [True, False])
def test_a_restart_under_a_running_turn_is_unknown_whoever_is_active(known: bool) -> None:
    drive = Drive(pid=1 if known else 0)
    drive.run(A)
    drive.gap()
    drive.snapshot(USER, text_row("msg_1"), row("user", "msg_f"), active=True, pid=2)
    assert (A in drive.seen.outcomes) is known


def test_a_restart_with_the_turn_still_in_the_inbox_costs_nothing() -> None:
    drive = Drive()
    drive.admit(A)
    drive.gap()
    drive.snapshot(inbox=[A], pid=2)
    drive.snapshot(USER, text_row("msg_1"), active=True, pid=2)
    drive.ended("msg_1")
    assert drive.stop(A) is Stop.END_TURN


def test_a_rejection_of_ours_that_ended_the_turn_in_the_gap_is_told() -> None:
    drive = Drive()
    drive.run(A)
    for call in ("call_1", "call_2"):
        drive.ask(f"per_{call}", "msg_1", call)
        drive.step(v.Answered(f"per_{call}", "reject"))
    drive.gap()
    drive.snapshot(USER, text_row("msg_1", "", "error", error={"type": "aborted"}))
    assert (drive.stop(A), drive.notices()) == (Stop.END_TURN, ["rejected"])


def test_a_silent_turn_is_checked_and_one_that_is_heard_is_not() -> None:
    drive = Drive()
    drive.run(A)
    drive.fire("quiet")
    drive.started("msg_1")
    assert not of(drive.fire("quiet"), v.TakeSnapshot)
    assert of(drive.fire("quiet"), v.TakeSnapshot)
    assert "quiet" in drive.timers


def test_two_of_ours_that_shared_in_the_gap_settle_alike_and_the_first_has_the_text() -> None:
    drive = Drive()
    drive.admit(A, 1)
    drive.admit(B, 2)
    drive.gap()
    drive.snapshot(USER, row("user", B), text_row("msg_1", "both", "stop"))
    assert [(c.owner, c.text) for c in of(drive.said, v.Chunk)] == [(1, "both")]
    assert all(drive.outcome(turn).shared for turn in (A, B))
    assert of(drive.said, v.Settled)[-1].outcome.message_id == A


def test_tokens_are_counted_once_by_event_and_read() -> None:
    drive = Drive()
    drive.run(A)
    tokens = {"input": 5, "output": 2, "reasoning": 0, "cache": {"read": 0, "write": 0}}
    drive.ended("msg_1", "tool-calls", tokens=tokens)
    drive.gap()
    one = text_row("msg_1", "", "tool-calls", tokens=tokens)
    drive.snapshot(USER, one, text_row("msg_2", "b", "stop", tokens=tokens))
    spent = drive.outcome(A).tokens
    assert spent is not None and (spent.input, spent.output) == (10, 4)


def test_the_step_cap_is_known_though_the_last_step_ended_in_the_gap() -> None:
    drive = Drive()
    drive.run(A)
    drive.gap()
    drive.snapshot(USER, text_row("msg_1", "", "tool-calls"), active=True)
    drive.hear("execution.succeeded")
    assert drive.stop(A) is Stop.MAX_TURN_REQUESTS


def test_after_a_gap_no_part_that_was_open_takes_deltas() -> None:
    drive = Drive()
    drive.run(A)
    part = {"assistantMessageID": "msg_1", "ordinal": 0}
    drive.text("msg_1", "one ", end=False)
    drive.gap()
    drive.snapshot(USER, text_row("msg_1"), active=True)
    drive.hear("text.delta", **part, delta="three ")
    drive.hear("text.ended", **part, text="one two three ")
    assert drive.seen.texts == {("msg_1", "text"): "one two three "}


def test_an_answer_that_was_heard_before_its_delivery_was_known_is_not_lost() -> None:
    """The POST's answer and the delivery fall into a gap; the answer itself is heard live."""
    drive = Drive()
    drive.submit(A)
    drive.gap()
    drive.snapshot()
    drive.started("msg_1")
    drive.text("msg_1", "hello")
    drive.ended("msg_1")
    drive.step(v.Posted(A, v.Admission.ADMITTED, probed=True))
    drive.snapshot(row("user", A), text_row("msg_1", "hello", "stop"), row("idle", "msg_i"))
    assert drive.stop(A) is v.Stop.END_TURN
    assert drive.seen.texts[("msg_1", "text")] == "hello"


def test_after_a_restart_the_answer_of_the_next_prompt_is_not_shown_as_ours() -> None:
    drive = Drive()
    drive.run(A)
    drive.text("msg_1", "half", end=False)
    drive.gap()
    dead, theirs = text_row("msg_1"), text_row("msg_2", "theirs", "stop")
    drive.snapshot(USER, dead, row("user", "msg_f"), theirs, row("idle", "msg_i"), pid=2)
    assert drive.code(A) == Code.UNKNOWN_OUTCOME
    assert drive.seen.texts == {("msg_1", "text"): "half"}
