"""Asks that are declined for a client: over a bound, or because it left its turn running."""

from __future__ import annotations

from dataclasses import replace

from adapter.core import values as v
from adapter.core.asks import KNOWN_BOUND
from adapter.limits import DEFAULTS
from tests.support.drive import Drive, of
from tests.unit.core.test_asks import ROWS, A, answer, running, shape

# --- limits ---------------------------------------------------------------------------------


def test_more_asks_than_a_client_can_be_shown_are_declined_in_their_turn() -> None:
    drive = Drive()
    running(drive, *(f"per_{n}" for n in range(DEFAULTS.open_asks + 3)))
    assert len(of(drive.said, v.AskClient)) == DEFAULTS.open_asks
    assert of(drive.said, v.Reply) == []


def test_asks_past_the_bound_of_the_turn_are_declined_once_no_sibling_waits() -> None:
    drive = Drive()
    names = [f"per_{n}" for n in range(DEFAULTS.turn_asks + 1)]
    running(drive, *names)
    shown = [one.ask.id for one in of(drive.said, v.AskClient)]
    # Before that the server would take the siblings along.
    assert of(drive.said, v.Reply) == []
    for name in shown[1:]:
        drive.step(v.Answered(name, "reject"))
    out = answer(drive, shown[0], "reject")
    assert {reply.ask_id for reply in out} == set(names)


def test_an_ask_past_the_bound_is_declined_until_the_server_has_it() -> None:
    drive = Drive(limits=replace(DEFAULTS, turn_asks=1))
    drive.run(A)
    drive.ask("per_1", "msg_1")
    answer(drive, "per_1", "once")
    drive.step(v.Replied("per_1", settled=True))
    declined = v.Reply("ses_1", "per_2", "reject", go_on=True)
    assert declined in drive.ask("per_2", "msg_1")
    drive.step(v.Replied("per_2", settled=False))
    assert drive.fire("reply:per_2") == [declined]
    drive.step(v.Replied("per_2", settled=True))
    assert drive.core.tables()["asks"] == 0


def test_what_has_no_room_at_all_is_declined_when_the_reads_show_it_again() -> None:
    drive = Drive(limits=replace(DEFAULTS, turn_asks=1))
    drive.run(A)
    for number in range(KNOWN_BOUND + 1):
        drive.ask(f"per_{number}", "msg_1", f"call_{number}")
    assert drive.core.tables()["asks"] == KNOWN_BOUND
    answer(drive, "per_0", "once")
    for number in range(KNOWN_BOUND):
        drive.step(v.Replied(f"per_{number}", settled=True))
    last = f"per_{KNOWN_BOUND}"
    out = drive.snapshot(*ROWS, active=True, asks=(shape(last),))
    assert [reply.ask_id for reply in of(out, v.Reply)] == [last]


# --- a client that leaves its turn running ---------------------------------------------------


def test_what_it_was_asked_is_refused_until_the_server_has_it() -> None:
    drive = Drive()
    running(drive, "per_1")
    refusal = v.Reply("ses_1", "per_1", "reject", go_on=True)
    out = drive.step(v.Left(1, interrupt=False))
    assert (of(out, v.WithdrawAsk), of(out, v.Reply)) == ([v.WithdrawAsk("per_1")], [refusal])
    assert drive.core.owes_an_answer
    drive.step(v.Replied("per_1", settled=False))
    assert drive.fire("reply:per_1") == [refusal]
    drive.step(v.Replied("per_1", settled=True))
    assert not drive.core.owes_an_answer


def test_a_refusal_on_leaving_waits_for_an_approval_on_its_way() -> None:
    drive = Drive()
    running(drive, "per_1", "per_2")
    answer(drive, "per_1", "once")
    assert of(drive.step(v.Left(1, interrupt=False)), v.Reply) == []
    out = drive.step(v.Replied("per_1", settled=True))
    assert [(one.ask_id, one.decision) for one in of(out, v.Reply)] == [("per_2", "reject")]
