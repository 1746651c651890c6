"""The rows of a turn, page by page: the same as of the whole, and next to nothing kept."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from adapter.core import values as v
from adapter.core.ownrows import OwnRows
from adapter.core.reconcile import segment
from contract.reads import AnyRow, AssistantRow
from tests.support.drive import Drive, of, row

TURN = "msg_acp_a"


def step(number: int, finish: str | None = "tool-calls") -> AnyRow:
    text = {"type": "text", "text": f"step {number}"}
    tokens = {"input": 1, "output": 1, "reasoning": 0, "cache": {"read": 0, "write": 0}}
    return row("assistant", f"msg_{number}", content=[text], finish=finish, tokens=tokens)


def conversation() -> list[AnyRow]:
    """The turn joins what other front ends and the server put in, and is followed by a prompt."""
    return [
        row("user", "msg_before", text="Before"),
        step(0, "stop"),
        row("idle", "msg_idle", outcome="succeeded"),
        row("user", TURN, text="Long. " * 100),
        *(step(number) for number in range(1, 8)),
        row("user", "msg_steered", text="Also this"),
        row(
            "compaction", "msg_compaction", status="completed", reason="auto", summary="", recent=""
        ),
        step(8),
        step(9, "stop"),
        row("user", "msg_next", text="Next"),
        step(10),
    ]


def taken(rows: Sequence[AnyRow], size: int) -> list[str]:
    """Ids of the answers that the pages show as the turn's, in order, each once."""
    own, found = OwnRows(), []
    for at in range(0, len(rows), size):
        given = own.take(rows[at : at + size], TURN)
        part = segment(given, TURN)
        found += [one.id for one in part.assistants if one.id not in found] if part else []
    return found


@pytest.mark.parametrize("size", range(1, 20))
def test_pages_of_any_size_give_what_the_whole_gives(size: int) -> None:
    rows = conversation()
    whole = segment(rows, TURN)
    assert whole is not None
    assert taken(rows, size) == [one.id for one in whole.assistants]
    assert taken(rows, size)[-1] == "msg_9"


def test_of_what_was_taken_two_rows_are_kept_without_what_they_say() -> None:
    own = OwnRows()
    own.take([row("user", TURN, text="Long. " * 100), *map(step, range(200))], TURN)
    prompt, last, fresh = own.take([step(200)], TURN)
    assert (prompt.id, last.id, fresh.id) == (TURN, "msg_199", "msg_200")
    assert "Long" not in str(prompt)
    assert isinstance(last, AssistantRow)
    assert (last.content, last.finish) == ((), "tool-calls")


def test_nothing_is_taken_before_the_prompt_or_once_the_turn_is_over() -> None:
    own = OwnRows()
    assert own.take([step(1)], TURN) == ()
    assert own.take([row("user", TURN), step(2, "stop"), row("user", "msg_next")], TURN) != ()
    assert own.take([step(3)], TURN) == ()


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_what_pages_showed_is_told_once_and_spent_once(size: int) -> None:
    drive = Drive()
    drive.run(TURN)
    drive.text("msg_1", "step 1")
    drive.step(v.Reloading(1))
    rows = [row("user", TURN, text="Go"), step(1), step(2), step(3)]
    own, out = OwnRows(), []
    for at in range(0, len(rows), size):
        given = own.take(rows[at : at + size], TURN)
        out += drive.step(v.Replayed(1, given)) if given else []
    drive.step(v.Reloaded(1))
    assert [type(one) for one in out] == [v.Usage] * 3
    before = len(of(drive.said, v.Chunk))
    for number in (2, 3):
        part = {"assistantMessageID": f"msg_{number}", "ordinal": 0}
        drive.hear("text.ended", **part, text=f"step {number}")
    assert len(of(drive.said, v.Chunk)) == before
