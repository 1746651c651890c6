"""Why a permission was decided as it was, for whoever counts: the reply says it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from adapter.core import values as v
from adapter.limits import DEFAULTS
from tests.support.drive import Drive, of
from tests.unit.core.test_asks import A, B, child_ask, running


def reasons(outputs: list[v.Output]) -> list[tuple[str, v.AskReason]]:
    return [(reply.decision, reply.why) for reply in of(outputs, v.Reply)]


@pytest.mark.parametrize("reason", ["client", "no_client", "no_answer"])
def test_an_answer_brings_its_reason_along(reason: v.AskReason) -> None:
    drive = Drive()
    running(drive, "per_1")
    assert reasons(drive.step(v.Answered("per_1", "reject", reason))) == [("reject", reason)]


def test_one_over_the_limit() -> None:
    drive = Drive(limits=replace(DEFAULTS, turn_asks=1))
    running(drive, "per_1", "per_2")
    out = drive.step(v.Answered("per_1", "once"))
    out += drive.step(v.Replied("per_1", settled=True))
    assert reasons(out) == [("once", "client"), ("reject", "limit")]


def test_one_that_nobody_attends_to() -> None:
    drive = Drive()
    drive.admit(B, 2)
    ask = child_ask(drive)
    drive.fire("unattended:per_1")
    assert reasons(drive.snapshot(inbox=[B], asks=(ask,))) == [("reject", "unattended")]


def test_one_whose_client_leaves_and_one_that_it_had_refused() -> None:
    drive = Drive()
    running(drive, "per_1", "per_2")
    drive.step(v.Answered("per_1", "reject"))
    assert sorted(reasons(drive.step(v.Left(1, interrupt=False)))) == [
        ("reject", "client"),
        ("reject", "left"),
    ]


def test_one_that_a_cancel_settles() -> None:
    drive = Drive()
    drive.run(A)
    drive.tool("msg_1", "call_1")
    drive.ask("per_1", "msg_1", "call_1")
    assert reasons(drive.step(v.Cancel(1))) == [("reject", "cancel")]
