"""Forms of MCP servers: whose they are, though they say nothing of it, and what becomes of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest

from adapter.core import values as v
from adapter.limits import DEFAULTS, Limits
from contract.shapes import GLOBAL, Form
from tests.support.drive import CHILD, Drive, event, of, row

A: Final = "msg_acp_a"
FIELDS: Final = [{"key": "name", "type": "string", "required": True}]


def form(server: object = "el") -> Form:
    metadata = {"kind": "mcp-elicitation", "server": server, "message": "Tell me"}
    return Form.model_validate(
        {"id": "frm_1", "sessionID": GLOBAL, "metadata": metadata, "fields": FIELDS}
    )


def created(given: Form) -> v.Heard:
    return v.Heard(event("form.created", {"form": given.model_dump(by_alias=True)}))


def calling(
    name: str = "el_echo", given: dict[str, Any] | None = None, limits: Limits = DEFAULTS
) -> Drive:
    """A turn whose tool of that name runs."""
    drive = Drive(limits=limits)
    drive.run(A)
    at = {"assistantMessageID": "msg_1", "id": "call_1"}
    drive.hear("tool.input.started", **at, name=name)
    drive.hear("tool.called", **at, input=given or {})
    return drive


def look(drive: Drive, given: Form | None = None) -> list[v.Output]:
    """The reads of the directory, which list the form."""
    return drive.snapshot(row("user", A), active=True, forms=(given or form(),))


def shown(drive: Drive) -> list[v.Output]:
    drive.step(created(form()))
    return look(drive)


def test_a_form_of_a_server_that_the_turn_calls_is_looked_for_and_shown() -> None:
    drive = calling()
    assert of(drive.step(created(form())), v.TakeSnapshot)
    (asked,) = of(look(drive), v.ShowForm)
    assert (asked.owner, asked.form.session_id, asked.child) == (1, GLOBAL, None)
    drive.step(v.FormAnswered("frm_1", {"name": "Joe"}))
    assert of(drive.said, v.AnswerForm) == [v.AnswerForm(GLOBAL, "frm_1", {"name": "Joe"})]


@pytest.mark.parametrize(
    ("server", "tool", "given"),
    [
        ("el", "el_echo", {}),
        ("a b.c", "a_b_c_echo", {}),
        ("日本", "___echo", {}),
        ("el", "execute", {"code": "return await tools.el.echo({})"}),
    ],
)
def test_the_call_is_known_by_the_name_of_its_server(
    server: str, tool: str, given: dict[str, Any]
) -> None:
    drive = calling(tool, given)
    assert of(look(drive, form(server)), v.ShowForm)


@pytest.mark.parametrize(
    ("server", "tool", "given"),
    [
        ("el", "other_echo", {}),
        ("el", "elm_echo", {}),
        ("el", "shell", {"command": "el"}),
        ("el", "execute", {"code": "return await tools.elm.echo({})"}),
        ("el", "execute", {}),
        ("", "_echo", {}),
        (3, "el_echo", {}),
    ],
)
def test_a_form_of_another_server_is_somebody_elses(
    server: object, tool: str, given: dict[str, Any]
) -> None:
    drive = calling(tool, given)
    assert drive.step(created(form(server))) == []
    assert of(look(drive, form(server)), v.ShowForm) == []
    assert "unattended:frm_1" not in drive.timers


def test_a_form_that_the_directory_does_not_list_is_not_shown() -> None:
    drive = calling()
    drive.step(created(form()))
    drive.snapshot(row("user", A), active=True)
    assert of(drive.said, v.ShowForm) == []


def test_the_call_of_a_child_counts_for_the_turn_that_it_works_for() -> None:
    drive = Drive()
    drive.run(A)
    drive.tool("msg_1", "call_1", "subagent")
    drive.hear("created", sessionID=CHILD, parentID="ses_1")
    link = {"assistantMessageID": "msg_1", "id": "call_1", "metadata": {"sessionID": CHILD}}
    drive.hear("tool.progress", **link)
    at = {"sessionID": CHILD, "assistantMessageID": "msg_c", "id": "call_1"}
    drive.hear("tool.input.started", **at, name="el_echo")
    drive.hear("tool.called", **at, input={})
    assert of(shown(drive), v.ShowForm)


@pytest.mark.parametrize("fate", ["declined", "unable", "credential"])
def test_without_an_answer_the_server_is_told_so_and_given_none(fate: v.FormFate) -> None:
    drive = calling()
    shown(drive)
    out = drive.step(v.FormAnswered("frm_1", fate=fate))
    assert of(out, v.DismissForm) == [v.DismissForm(GLOBAL, "frm_1")]
    assert of(out, v.AnswerForm) == []


def test_a_cancel_takes_the_form_away_which_an_interrupt_does_not() -> None:
    drive = calling()
    shown(drive)
    out = drive.step(v.Cancel(1))
    assert of(out, v.WithdrawAsk) == [v.WithdrawAsk("frm_1")]
    assert of(out, v.DismissForm) == [v.DismissForm(GLOBAL, "frm_1")]
    assert of(out, v.Interrupt) == [v.Interrupt(A)]


@pytest.mark.parametrize(("error", "dismissed"), [("timeout", 1), ("", 0)])
def test_the_end_of_its_call_takes_the_form_back(error: str, dismissed: int) -> None:
    drive = calling()
    shown(drive)
    out = drive.tool_over("msg_1", "call_1", error)
    assert of(out, v.WithdrawAsk) == [v.WithdrawAsk("frm_1")]
    assert len(of(out, v.DismissForm)) == dismissed


def test_the_end_of_another_call_does_not() -> None:
    drive = calling()
    shown(drive)
    drive.tool("msg_1", "call_2")
    assert of(drive.tool_over("msg_1", "call_2", "no"), v.WithdrawAsk) == []


@pytest.mark.parametrize("kind", ["form.replied", "form.cancelled"])
def test_a_form_that_others_settled_is_withdrawn(kind: str) -> None:
    drive = calling()
    shown(drive)
    out = drive.hear(kind, sessionID=GLOBAL, id="frm_1")
    assert out == [v.WithdrawAsk("frm_1")]


# --- without an answer of the client ----------------------------------------------------------


def test_a_client_that_leaves_its_turn_running_leaves_none_open() -> None:
    drive = calling()
    shown(drive)
    out = drive.step(v.Left(1, interrupt=False))
    assert of(out, v.DismissForm) == [v.DismissForm(GLOBAL, "frm_1")]


def test_one_past_the_bound_of_its_turn_is_dismissed() -> None:
    drive = calling(limits=replace(DEFAULTS, turn_asks=1))
    drive.ask("per_1", "msg_1")
    out = shown(drive)
    assert (of(out, v.ShowForm), of(out, v.DismissForm)) == ([], [v.DismissForm(GLOBAL, "frm_1")])


def test_one_that_comes_while_its_turn_is_stopped_is_dismissed() -> None:
    drive = calling()
    drive.step(v.Cancel(1))
    assert of(shown(drive), v.DismissForm) == [v.DismissForm(GLOBAL, "frm_1")]


def test_one_of_a_turn_that_was_given_up_is_dismissed_after_its_time() -> None:
    drive = calling()
    shown(drive)
    drive.admit("msg_acp_b", 2)
    drive.step(v.FeedLost())
    drive.fire("gap")
    drive.step(v.FeedBack())
    drive.snapshot(row("user", A), inbox=["msg_acp_b"], active=True, forms=(form(),))
    drive.fire("unattended:frm_1")
    out = drive.snapshot(row("user", A), inbox=["msg_acp_b"], active=True, forms=(form(),))
    assert of(out, v.AnswerForm) == []
    assert of(out, v.DismissForm) == [v.DismissForm(GLOBAL, "frm_1")]
