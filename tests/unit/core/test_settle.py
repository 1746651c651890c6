"""Every way out of a turn goes through `settle`, answers once, and leaves every table empty.

`Drive` checks at each step: one answer a turn, no update after it, no table and no timer left.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

import adapter.core
import adapter.engine
from adapter.core import values as v
from adapter.core.values import Admission, Stop
from contract.errors import Code
from contract.reads import AnyRow
from tests.support.drive import Drive, of, row, text_row

X = "msg_acp_x"
CORE = Path(adapter.core.__file__).parent
ENGINE = Path(adapter.engine.__file__).parent
# The methods that take out; `forget` is that of the offsets.
TAKING: Final = ("pop", "popitem", "popleft", "clear", "remove", "discard", "forget")
BOOM = {"type": "provider.internal", "message": "boom"}

Way = Callable[[Drive], None]


def posted(admission: Admission) -> Way:
    def way(drive: Drive) -> None:
        drive.submit(X)
        drive.step(v.Posted(X, admission, "no"))

    return way


def busy(drive: Drive) -> None:
    """A running turn with all that one can have: text, an open tool, an ask of it."""
    drive.run(X)
    drive.started("msg_a")
    drive.text("msg_a", "hello", end=False)
    drive.tool("msg_a")
    drive.ask("per_1", "msg_a")


def hears(kind: str, **data: object) -> Way:
    def way(drive: Drive) -> None:
        busy(drive)
        drive.hear(kind, **data)

    return way


def reads(*rows: AnyRow, cancel: bool = False, **fields: Any) -> Way:
    def way(drive: Drive) -> None:
        busy(drive)
        drive.gap()
        if cancel:
            drive.step(v.Cancel(1))
        drive.snapshot(*rows, **fields)

    return way


def lost(drive: Drive) -> None:
    busy(drive)
    drive.gap()
    for _ in range(3):
        drive.snapshot(row("user", X), text_row("msg_a"))


def withdrawn(drive: Drive) -> None:
    drive.admit(X)
    drive.hear("inbox.cancelled", inboxID=X)


def bad_agent(drive: Drive) -> None:
    drive.admit(X)
    drive.hear("execution.started")
    drive.hear("execution.failed", error=BOOM)
    withdrawn_by_us = drive.hear("inbox.cancelled", inboxID=X)
    assert withdrawn_by_us


def cancelled_in_inbox(drive: Drive) -> None:
    drive.admit(X)
    drive.step(v.Cancel(1))
    drive.hear("inbox.cancelled", inboxID=X)


def cancelled(drive: Drive) -> None:
    busy(drive)
    drive.step(v.Cancel(1))
    drive.hear("execution.interrupted", reason="shutdown")


def cancel_overdue(drive: Drive) -> None:
    busy(drive)
    drive.step(v.Cancel(1))
    drive.fire(f"cancel:{X}")


def gap_overdue(drive: Drive) -> None:
    busy(drive)
    drive.step(v.FeedLost())
    drive.fire("gap")


def left(*, interrupt: bool) -> Way:
    def way(drive: Drive) -> None:
        busy(drive)
        drive.step(v.Left(1, interrupt))

    return way


def left_sending(drive: Drive) -> None:
    drive.submit(X)
    drive.step(v.Left(1, interrupt=False))


def left_cancelled(drive: Drive) -> None:
    drive.submit(X)
    drive.step(v.Cancel(1))
    drive.step(v.Left(1, interrupt=False))


def let_go(drive: Drive) -> None:
    busy(drive)
    drive.step(v.LetGo())


def let_go_in_doubt(drive: Drive) -> None:
    drive.submit(X)
    drive.step(v.LetGo())


def rejected(drive: Drive) -> None:
    busy(drive)
    drive.step(v.Answered("per_1", "reject"))
    drive.step(v.Replied("per_1", settled=True))
    drive.tool_over("msg_a", error="declined")
    drive.hear("execution.interrupted", reason="shutdown")


def step_cap(drive: Drive) -> None:
    busy(drive)
    drive.ended("msg_a", "tool-calls")
    drive.hear("execution.succeeded")


USER = row("user", X)
WAYS: dict[str, tuple[Way, Stop | Code]] = {
    "not admitted": (posted(Admission.NOT_ADMITTED), Code.INTERNAL),
    "unreached": (posted(Admission.UNREACHED), Code.INTERNAL),
    "unclear": (posted(Admission.UNCLEAR), Code.UNKNOWN_OUTCOME),
    "session gone": (posted(Admission.GONE), Code.SESSION_GONE),
    "unauthorised": (posted(Admission.UNAUTHORISED), Code.AUTH_REQUIRED),
    "answered": (hears("step.ended", assistantMessageID="msg_a", finish="stop"), Stop.END_TURN),
    "length": (hears("step.ended", assistantMessageID="msg_a", finish="length"), Stop.MAX_TOKENS),
    "step cap": (step_cap, Stop.MAX_TURN_REQUESTS),
    "failed": (hears("execution.failed", error=BOOM), Code.FAILED_AFTER_TOOL),
    "filtered": (
        hears("execution.failed", error={"type": "provider.content-filter", "message": ""}),
        Stop.REFUSAL,
    ),
    "interrupted": (hears("execution.interrupted", reason="user"), Code.ENDED_ELSEWHERE),
    "shut down": (hears("execution.interrupted", reason="shutdown"), Code.ENDED_ELSEWHERE),
    "rejected": (rejected, Stop.END_TURN),
    "deleted": (hears("deleted"), Code.ENDED_ELSEWHERE),
    "withdrawn elsewhere": (withdrawn, Code.ENDED_ELSEWHERE),
    "bad agent": (bad_agent, Code.INTERNAL),
    "cancelled in the inbox": (cancelled_in_inbox, Stop.CANCELLED),
    "cancelled": (cancelled, Stop.CANCELLED),
    "cancel overdue": (cancel_overdue, Stop.CANCELLED),
    "gap overdue": (gap_overdue, Code.UNKNOWN_OUTCOME),
    "the client left": (left(interrupt=True), Stop.CANCELLED),
    "the client left it running": (left(interrupt=False), Code.UNKNOWN_OUTCOME),
    "the client left while it was sent": (left_sending, Code.UNKNOWN_OUTCOME),
    "the client cancelled it and left": (left_cancelled, Stop.CANCELLED),
    "let go of": (let_go, Code.UNKNOWN_OUTCOME),
    "let go of while it is sent": (let_go_in_doubt, Code.UNKNOWN_OUTCOME),
    "read: answered": (reads(USER, text_row("msg_a", "hello", "stop")), Stop.END_TURN),
    "read: nowhere": (reads(), Code.ENDED_ELSEWHERE),
    "read: gone": (reads(state="gone"), Code.ENDED_ELSEWHERE),
    "read: unauthorised": (reads(state="unauthorised"), Code.AUTH_REQUIRED),
    "read: restarted": (reads(USER, pid=2), Code.UNKNOWN_OUTCOME),
    "read: restarted, cancelled": (reads(USER, pid=2, cancel=True), Stop.CANCELLED),
    "read: interrupted": (
        reads(USER, row("idle", "msg_i", outcome="interrupted")),
        Code.ENDED_ELSEWHERE,
    ),
    "read: cancelled": (
        reads(USER, row("idle", "msg_i", outcome="interrupted"), cancel=True),
        Stop.CANCELLED,
    ),
    "read: failed": (
        reads(USER, row("idle", "msg_i", outcome="failed")),
        Code.FAILED_AFTER_TOOL,
    ),
    "read: lost": (lost, Code.UNKNOWN_OUTCOME),
}


@pytest.mark.parametrize("name", WAYS)
def test_a_way_out(name: str) -> None:
    drive = Drive()
    way, expected = WAYS[name]
    way(drive)
    outcome = drive.outcome(X)
    assert (outcome.stop or Code(outcome.code)) is expected
    answers = [output for output in drive.said if isinstance(output, v.Settled)]
    assert len(answers) == 1
    assert not any(drive.core.tables().values())


@pytest.mark.parametrize("name", WAYS)
def test_what_was_open_is_closed_before_the_answer(name: str) -> None:
    drive = Drive()
    WAYS[name][0](drive)
    open_states = (v.ToolStatus.PENDING, v.ToolStatus.IN_PROGRESS)
    assert not [status for status in drive.seen.tools.values() if status in open_states]
    if drive.seen.asks:
        assert of(drive.said, v.WithdrawAsk) or name == "rejected"


@pytest.mark.parametrize("name", WAYS)
def test_the_next_turn_of_the_session_is_not_touched_by_it(name: str) -> None:
    """The second half of the known defect that left marks and offsets behind."""
    drive = Drive()
    WAYS[name][0](drive)
    if drive.core.step(v.FeedBack()):
        drive.snapshot()
    drive.run("msg_acp_next", owner=5)
    drive.started("msg_n")
    drive.text("msg_n", "fresh")
    drive.ended("msg_n")
    assert drive.stop("msg_acp_next") is Stop.END_TURN
    assert drive.seen.texts["msg_n", "text"] == "fresh"


# Who takes something out of which table of a session. Of the asks, settle takes those of its turn,
# and `asks` one that was answered, vanished or went with its session. A turn is out of `running`
# too when a snapshot shows it elsewhere; it is still a turn then. A message goes before its turn
# where that has far more than any reading shows.
REMOVERS: Final = {
    "turns": {"settle.py", "naming.py"},
    "messages": {"settle.py", "context.py"},
    "offsets": {"settle.py"},
    "asks": {"settle.py", "asks.py"},
    "running": {"settle.py", "recover.py", "naming.py"},
}


def test_only_settle_removes_what_belongs_to_a_turn() -> None:
    """Who deletes from, pops from, clears or replaces the tables of a turn, in all of the core
    and the engine: turns, messages and offsets nobody but `settle`."""
    found: dict[str, set[str]] = {name: set() for name in REMOVERS}
    for path in (*CORE.glob("*.py"), *ENGINE.glob("*.py")):
        for name in removals(path):
            found[name].add(path.name)
    assert found == REMOVERS


def removals(path: Path) -> list[str]:
    """Names of the tables (`….turns`, `….offsets`) that a module takes something out of."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        taken: list[ast.expr] = []
        if isinstance(node, ast.Delete):
            taken = [one.value for one in node.targets if isinstance(one, ast.Subscript)]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in TAKING:
                taken = [node.func.value]
        elif isinstance(node, ast.Assign):
            # `self.offsets = …` is an attribute that is set up.
            taken = [one for one in node.targets if not ast.unparse(one).startswith("self.")]
        names = [one.attr for one in taken if isinstance(one, ast.Attribute)]
        found += [name for name in names if name in REMOVERS]
    return found


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("del s.turns[k]", "turns"),
        ("s.messages.pop(k)", "messages"),
        ("s.turns = {}", "turns"),
        ("s.running.remove(k)", "running"),
        ("state.offsets.forget(i, owned)", "offsets"),
        ("self._state.asks.clear()", "asks"),
    ],
)
def test_the_check_of_removals_sees_one(code: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(code, encoding="utf-8")
    assert removals(path) == [name]
