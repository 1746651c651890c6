"""Every text arrives exactly once, however its deltas and full texts are cut, held or repeated."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from adapter.core.offsets import OffsetTable, Part, State
from tests.support.drive import Drive

PART = Part("msg_a", "text", 0)
S = "ses_1"


def test_a_delta_before_its_start_is_held_until_the_full_text() -> None:
    table = OffsetTable()
    assert table.delta(S, PART, "ab") == ""
    table.started(S, PART)
    assert table.delta(S, PART, "cd") == ""
    assert table.full(S, PART, "abcd") == "abcd"


def test_a_delta_that_says_the_same_again_is_news() -> None:
    table = OffsetTable()
    table.started(S, PART)
    pieces = ["| -", "- | -", "- | -", "--", "--"]
    assert [table.delta(S, PART, piece) for piece in pieces] == pieces
    assert table.full(S, PART, "".join(pieces)) == ""


def test_a_closed_part_takes_nothing_more() -> None:
    table = OffsetTable()
    table.started(S, PART)
    assert table.delta(S, PART, "ab") == "ab"
    assert table.full(S, PART, "abc") == "c"
    assert (table.delta(S, PART, "d"), table.full(S, PART, "abcd")) == ("", "")
    assert (table.sent(S, PART), table.state(S, PART)) == (3, State.CLOSED)


def test_a_text_that_is_not_the_one_sent_is_counted_and_not_sent() -> None:
    table = OffsetTable()
    table.started(S, PART)
    table.delta(S, PART, "ab")
    assert table.full(S, PART, "xyz") == ""
    assert table.divergences == 1


def test_a_shorter_text_sends_nothing() -> None:
    table = OffsetTable()
    table.started(S, PART)
    table.delta(S, PART, "abc")
    assert table.full(S, PART, "ab") == ""


def test_held_parts_stay_held_when_their_start_is_heard_again() -> None:
    table = OffsetTable()
    table.started(S, PART)
    table.delta(S, PART, "ab")
    table.hold(S)
    table.started(S, PART)
    assert table.delta(S, PART, "ef") == ""
    assert table.full(S, PART, "abcdef") == "cdef"


def test_whoever_takes_a_message_over_gets_its_open_parts_in_whole() -> None:
    table = OffsetTable()
    table.started(S, PART)
    table.delta(S, PART, "ab")
    table.restart(S, frozenset({"msg_a"}))
    assert table.delta(S, PART, "c") == ""
    assert table.full(S, PART, "abc") == "abc"


def test_defect_offsets_of_another_session_cleared() -> None:
    """A gap or an end in one session touches no offset of another one."""
    table = OffsetTable()
    for session in (S, "ses_2"):
        table.started(session, PART)
        table.delta(session, PART, "ab")
    table.hold(S)
    table.restart(S, frozenset({"msg_a"}))
    table.forget(S, frozenset({"msg_a"}))
    assert table.sent("ses_2", PART) == 2
    assert table.delta("ses_2", PART, "c") == "c"
    assert len(table) == 1


def test_defect_offsets_of_another_session_cleared_by_the_end_of_a_turn() -> None:
    table = OffsetTable()
    one, two = Drive(session=S, offsets=table), Drive(session="ses_2", offsets=table)
    for drive in (one, two):
        drive.run("msg_acp_x")
        drive.started("msg_a")
        drive.text("msg_a", "ab", end=False)
    one.ended("msg_a")
    assert (table.sent(S, PART), table.sent("ses_2", PART)) == (0, 2)
    two.hear("text.ended", assistantMessageID="msg_a", ordinal=0, text="abc")
    assert two.seen.texts == {("msg_a", "text"): "abc"}


@given(
    text=st.text(min_size=1, max_size=40),
    cuts=st.lists(st.integers(0, 40), max_size=8),
    faults=st.lists(st.sampled_from(["", "", "lost", "hold", "read", "started"]), max_size=9),
    started=st.booleans(),
)
def test_any_cut_hold_and_repeat_yields_each_text_exactly_once(
    text: str, cuts: list[int], faults: list[str], started: bool
) -> None:
    """Deltas of `text`, cut anywhere; a gap loses some, and reads and ends repeat the whole."""
    table = OffsetTable()
    sent = ""
    if started:
        table.started(S, PART)
    edges = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    for index, (start, end) in enumerate(pairwise(edges)):
        match faults[index] if index < len(faults) else "":
            case "lost":
                table.hold(S)
                continue
            case "hold":
                table.hold(S)
            case "started" if started:
                table.started(S, PART)
            case "read":
                sent += table.full(S, PART, text)
            case _:
                pass
        sent += table.delta(S, PART, text[start:end])
        assert text.startswith(sent)
    sent += table.full(S, PART, text) + table.full(S, PART, text)
    assert sent == text
    assert table.divergences == 0
