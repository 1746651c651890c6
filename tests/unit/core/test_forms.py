"""Forms: who fills them in, what becomes of the answer, and of those that nobody answers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest

from adapter.core import values as v
from adapter.core.state import ACTIVE_PATIENCE
from adapter.limits import DEFAULTS
from contract.shapes import Form
from tests.support.drive import CHILD, Drive, event, of, row, text_row

A, B = "msg_acp_a", "msg_acp_b"
ROWS: Final = (row("user", A), text_row("msg_1"))


def form(
    form_id: str = "frm_1",
    session: str = "ses_1",
    message: str | None = None,
    call: str = "call_0",
) -> Form:
    """A form with one question; with a `message`, of that message's call."""
    metadata: dict[str, Any] = {"kind": "question"}
    if message is not None:
        metadata["tool"] = {"messageID": message, "id": call}
    fields = [{"key": "q0", "type": "string", "title": "Color"}]
    return Form.model_validate(
        {"id": form_id, "sessionID": session, "metadata": metadata, "fields": fields}
    )


def created(given: Form) -> v.Heard:
    return v.Heard(event("form.created", {"form": given.model_dump(by_alias=True)}))


def shown(drive: Drive, *, call: bool = False) -> None:
    """A running turn whose client was shown a form; of the question tool if `call`."""
    drive.run(A)
    if call:
        drive.tool("msg_1", "call_0", "question")
    drive.step(created(form(message="msg_1" if call else None)))


def answers(drive: Drive) -> list[v.AnswerForm]:
    return of(drive.said, v.AnswerForm)


def say(drive: Drive, form_id: str = "frm_1", **answer: object) -> list[v.Output]:
    return drive.step(v.FormAnswered(form_id, answer))


# --- the client's answer --------------------------------------------------------------------


def test_the_owner_of_the_turn_is_shown_the_form_once_with_its_call() -> None:
    drive = Drive()
    shown(drive, call=True)
    (asked,) = of(drive.said, v.ShowForm)
    assert (asked.owner, asked.form.id, asked.child) == (1, "frm_1", None)
    assert asked.tool is not None and asked.tool.call_id == "call_0"
    assert drive.step(created(form(message="msg_1"))) == []


def test_an_answer_goes_to_the_server_and_a_second_one_nowhere() -> None:
    drive = Drive()
    shown(drive)
    assert say(drive, q0="Red") == [v.AnswerForm("ses_1", "frm_1", {"q0": "Red"})]
    assert say(drive, q0="Blue") == []
    assert say(drive, "frm_unknown", q0="Red") == []
    drive.step(v.Replied("frm_1", settled=True))
    assert drive.core.tables()["asks"] == 0


@pytest.mark.parametrize("fate", ["unable", "credential"])
def test_a_form_that_could_not_be_shown_is_left_unanswered_and_told(fate: v.FormFate) -> None:
    drive = Drive()
    shown(drive)
    drive.step(v.FormAnswered("frm_1", fate=fate))
    assert answers(drive) == [v.AnswerForm("ses_1", "frm_1", {})]
    assert drive.notices() == ["form"]


def test_a_user_who_declines_is_not_told_what_he_did() -> None:
    drive = Drive()
    shown(drive)
    drive.step(v.FormAnswered("frm_1", fate="declined"))
    assert answers(drive) == [v.AnswerForm("ses_1", "frm_1", {})]
    assert drive.notices() == []


def test_an_answer_is_no_part_of_what_is_printed() -> None:
    drive = Drive()
    shown(drive)
    given = v.FormAnswered("frm_1", {"q0": "hunter2"})
    assert "hunter2" not in repr([given, *drive.step(given)])


def test_an_answer_that_the_server_refuses_is_given_up_and_told() -> None:
    drive = Drive()
    shown(drive)
    say(drive, q0="Red")
    out = drive.step(v.Replied("frm_1", settled=False, refused=True))
    assert of(out, v.AnswerForm) == [v.AnswerForm("ses_1", "frm_1", {})]
    assert drive.notices() == ["form"]


def test_a_form_that_cannot_stay_unanswered_is_dismissed_until_it_is() -> None:
    drive = Drive()
    shown(drive)
    say(drive)
    out = drive.step(v.Replied("frm_1", settled=False, refused=True))
    assert out == [v.DismissForm("ses_1", "frm_1")]
    for refused in (False, True):
        drive.step(v.Replied("frm_1", settled=False, refused=refused))
        assert drive.fire("reply:frm_1") == [v.DismissForm("ses_1", "frm_1")]
    drive.step(v.Replied("frm_1", settled=True))
    assert drive.core.tables()["asks"] == 0


def test_an_answer_that_did_not_arrive_is_sent_again_as_long_as_the_form_is_open() -> None:
    drive = Drive()
    shown(drive)
    say(drive, q0="Red")
    for _ in range(3):
        drive.step(v.Replied("frm_1", settled=False))
        assert drive.fire("reply:frm_1") == [v.AnswerForm("ses_1", "frm_1", {"q0": "Red"})]
    drive.hear("form.replied", id="frm_1")
    assert drive.step(v.Fired("reply:frm_1")) == []


# --- settled elsewhere ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["form.replied", "form.cancelled"])
def test_a_form_that_others_settled_is_withdrawn(kind: str) -> None:
    drive = Drive()
    shown(drive)
    assert drive.hear(kind, id="frm_1") == [v.WithdrawAsk("frm_1")]
    assert say(drive, q0="Red") == []


def test_a_form_whose_tool_is_over_is_withdrawn() -> None:
    drive = Drive()
    shown(drive, call=True)
    out = drive.tool_over("msg_1", "call_0", error="interrupted")
    assert of(out, v.WithdrawAsk) == [v.WithdrawAsk("frm_1")]


def test_the_end_of_the_turn_withdraws_its_form() -> None:
    drive = Drive()
    shown(drive)
    out = drive.hear("execution.interrupted", reason="user")
    assert of(out, v.WithdrawAsk) == [v.WithdrawAsk("frm_1")]
    assert answers(drive) == []


def test_a_deleted_session_takes_its_forms_along() -> None:
    drive = Drive()
    shown(drive)
    assert of(drive.hear("deleted"), v.WithdrawAsk) == [v.WithdrawAsk("frm_1")]


# --- cancel and leave -----------------------------------------------------------------------


def test_a_cancel_withdraws_the_form_and_interrupts() -> None:
    drive = Drive()
    shown(drive)
    out = drive.step(v.Cancel(1))
    assert of(out, v.WithdrawAsk) == [v.WithdrawAsk("frm_1")]
    assert of(out, v.Interrupt) == [v.Interrupt(A)]
    assert answers(drive) == []


def test_beside_a_form_a_rejection_would_stop_nothing_so_that_the_turn_is_interrupted() -> None:
    drive = Drive()
    drive.run(A)
    drive.tool("msg_1", "call_0")
    drive.ask("per_1", "msg_1", "call_0")
    drive.step(created(form()))
    out = drive.step(v.Cancel(1))
    assert (of(out, v.Interrupt), of(out, v.Reply)) == ([v.Interrupt(A)], [])


def test_nobody_is_shown_a_form_of_a_turn_that_is_being_stopped() -> None:
    drive = Drive()
    drive.run(A)
    drive.step(v.Cancel(1))
    assert drive.step(created(form())) == []


def test_a_client_that_leaves_its_turn_running_leaves_the_form_unanswered() -> None:
    drive = Drive()
    shown(drive)
    drive.step(v.Left(1, interrupt=False))
    assert answers(drive) == [v.AnswerForm("ses_1", "frm_1", {})]
    out = drive.step(v.Replied("frm_1", settled=False, refused=True))
    assert out == [v.DismissForm("ses_1", "frm_1")]
    assert drive.core.owes_an_answer
    drive.step(v.Replied("frm_1", settled=True))
    assert not drive.core.owes_an_answer


# --- beside permissions ---------------------------------------------------------------------


def test_a_rejection_waits_for_no_form_and_a_form_for_no_permission() -> None:
    drive = Drive()
    shown(drive)
    drive.tool("msg_1", "call_1")
    drive.ask("per_1", "msg_1", "call_1")
    out = drive.step(v.Answered("per_1", "reject"))
    assert of(out, v.Reply) == [v.Reply("ses_1", "per_1", "reject", go_on=True)]
    assert drive.step(v.Answered("frm_1", "once")) == []
    assert drive.step(v.FormAnswered("per_1", {"q0": "Red"})) == []
    assert len(say(drive, q0="Red")) == 1


def test_forms_and_permissions_share_the_bound_of_what_is_open() -> None:
    drive = Drive()
    drive.run(A)
    for number in range(DEFAULTS.open_asks - 1):
        drive.ask(f"per_{number}", "msg_1", f"call_{number}")
    for number in range(3):
        drive.step(created(form(f"frm_{number}")))
    assert [one.form.id for one in of(drive.said, v.ShowForm)] == ["frm_0"]
    assert [one.form_id for one in answers(drive)] == ["frm_1", "frm_2"]


def test_a_form_past_the_bound_is_dismissed_if_it_cannot_stay_unanswered() -> None:
    drive = Drive(limits=replace(DEFAULTS, turn_asks=1))
    drive.run(A)
    for number in range(3):
        drive.step(created(form(f"frm_{number}")))
    assert [one.form_id for one in answers(drive)] == ["frm_1", "frm_2"]
    out = drive.step(v.Replied("frm_2", settled=False, refused=True))
    assert out == [v.DismissForm("ses_1", "frm_2")]
    drive.step(v.Replied("frm_1", settled=False))
    assert drive.fire("reply:frm_1") == [v.AnswerForm("ses_1", "frm_1", {})]


# --- children, and nobody's -----------------------------------------------------------------


def test_a_form_of_a_child_is_shown_to_the_client_whose_turn_made_it() -> None:
    drive = Drive()
    drive.run(A)
    drive.hear("created", sessionID=CHILD, parentID="ses_1", title="Look around")
    drive.step(created(form(session=CHILD)))
    (asked,) = of(drive.said, v.ShowForm)
    assert (asked.owner, asked.child) == (1, "Look around")
    assert say(drive, q0="Red") == [v.AnswerForm(CHILD, "frm_1", {"q0": "Red"})]


def childs(drive: Drive) -> Form:
    """A form of a child that was made without a turn of ours."""
    drive.hear("created", sessionID=CHILD, parentID="ses_1")
    given = form(session=CHILD)
    drive.step(created(given))
    return given


def test_a_childs_form_without_a_turn_is_left_to_others_for_a_while() -> None:
    drive = Drive()
    drive.admit(B, 2)
    given = childs(drive)
    assert drive.timers["unattended:frm_1"] == "unattended"
    assert (of(drive.said, v.ShowForm), drive.notices()) == ([], ["waiting"])
    drive.fire("unattended:frm_1")
    drive.snapshot(inbox=[B], forms=(given,))
    assert answers(drive) == [v.AnswerForm(CHILD, "frm_1", {})]


def test_one_that_a_running_turn_of_others_may_own_is_left_longer() -> None:
    drive = Drive()
    given = childs(drive)
    for _ in range(ACTIVE_PATIENCE):
        assert answers(drive) == []
        drive.fire("unattended:frm_1")
        drive.snapshot(active=True, forms=(given,))
    assert len(answers(drive)) == 1


def test_one_that_others_answered_is_not_answered_again() -> None:
    drive = Drive()
    childs(drive)
    drive.hear("form.replied", sessionID=CHILD, id="frm_1")
    assert drive.timers == {}


def test_the_form_of_somebody_elses_turn_is_left_alone() -> None:
    drive = Drive()
    drive.step(created(form()))
    for _ in range(3 * ACTIVE_PATIENCE):
        assert of(drive.fire("unattended:frm_1"), v.TakeSnapshot) == []
    assert (answers(drive), of(drive.said, v.ShowForm)) == ([], [])


def test_a_form_of_a_session_that_is_not_followed_is_not_ours() -> None:
    drive = Drive()
    drive.run(A)
    assert drive.step(created(form(session="ses_stranger"))) == []


# --- after a gap ----------------------------------------------------------------------------


def test_after_a_gap_a_shown_form_is_not_shown_twice_and_a_vanished_one_is_withdrawn() -> None:
    drive = Drive()
    drive.run(A)
    drive.step(created(form("frm_0")))
    drive.step(created(form("frm_1")))
    drive.gap()
    out = drive.snapshot(*ROWS, active=True, forms=(form("frm_0"),))
    assert of(out, v.ShowForm) == []
    assert of(out, v.WithdrawAsk) == [v.WithdrawAsk("frm_1")]


@pytest.mark.parametrize("unread", ["asks", "forms"])
def test_what_could_not_be_read_is_not_taken_for_vanished(unread: str) -> None:
    drive = Drive()
    shown(drive)
    drive.ask("per_1", "msg_1")
    drive.gap()
    read: dict[str, Any] = {unread: None}
    out = drive.snapshot(*ROWS, active=True, **read)
    gone = {"asks": "frm_1", "forms": "per_1"}[unread]
    assert of(out, v.WithdrawAsk) == [v.WithdrawAsk(gone)]


def test_after_a_gap_an_answer_that_did_not_arrive_is_sent_again() -> None:
    drive = Drive()
    shown(drive)
    say(drive, q0="Red")
    drive.gap()
    out = drive.snapshot(*ROWS, active=True, forms=(form(),))
    assert of(out, v.AnswerForm) == [v.AnswerForm("ses_1", "frm_1", {"q0": "Red"})]


def test_a_form_that_was_missed_in_the_gap_is_shown_after_it() -> None:
    drive = Drive()
    drive.run(A)
    drive.gap()
    out = drive.snapshot(*ROWS, active=True, forms=(form(),))
    assert [one.form.id for one in of(out, v.ShowForm)] == ["frm_1"]


def test_a_form_that_the_buffer_settles_is_not_shown() -> None:
    drive = Drive()
    drive.run(A)
    drive.gap()
    over = event("form.replied", {"sessionID": "ses_1", "id": "frm_1"})
    out = drive.snapshot(*ROWS, active=True, forms=(form(),), buffer=[over])
    assert of(out, v.ShowForm) == []


def test_a_form_that_the_buffer_and_the_reads_tell_of_is_shown_once() -> None:
    drive = Drive()
    drive.run(A)
    drive.gap()
    drive.snapshot(*ROWS, active=True, forms=(form(),), buffer=[created(form()).event])
    assert len(of(drive.said, v.ShowForm)) == 1
