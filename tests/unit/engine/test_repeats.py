"""What a client has of a running call is not sent to it again."""

from __future__ import annotations

import pytest

from adapter.core.values import Tool, ToolStatus
from adapter.engine.repeats import CALLS, Repeats


def tool(call: str = "call_1", owner: int = 1, status: ToolStatus = ToolStatus.IN_PROGRESS) -> Tool:
    return Tool(owner, "msg_a", call, "shell", status)


def test_only_the_same_of_the_same_call_for_the_same_client_repeats() -> None:
    repeats = Repeats()
    assert not repeats.repeats(tool(), {"title": "a"})
    assert repeats.repeats(tool(), {"title": "a"})
    assert not repeats.repeats(tool(), {"title": "b"})
    assert not repeats.repeats(tool("call_2"), {"title": "b"})
    assert not repeats.repeats(tool(owner=2), {"title": "b"})


@pytest.mark.parametrize("status", [ToolStatus.COMPLETED, ToolStatus.FAILED])
def test_the_end_is_told_and_nothing_is_kept_of_it(status: ToolStatus) -> None:
    repeats = Repeats()
    repeats.repeats(tool(), {"title": "a"})
    assert not repeats.repeats(tool(status=status), {"title": "a"})
    assert len(repeats) == 0


def test_what_an_owner_lets_go_of_goes_and_nothing_else() -> None:
    repeats = Repeats()
    for owner in (1, 2):
        repeats.repeats(tool(owner=owner), {"title": "a"})
    repeats.forget(1)
    assert len(repeats) == 1
    assert not repeats.repeats(tool(), {"title": "a"})
    assert repeats.repeats(tool(owner=2), {"title": "a"})


def test_calls_whose_end_is_never_heard_take_no_more_than_their_room() -> None:
    repeats = Repeats()
    for number in range(CALLS + 10):
        repeats.repeats(tool(f"call_{number}"), {"title": "a"})
    assert len(repeats) == CALLS
    assert repeats.repeats(tool(f"call_{CALLS}"), {"title": "a"})
    assert not repeats.repeats(tool("call_0"), {"title": "a"})
