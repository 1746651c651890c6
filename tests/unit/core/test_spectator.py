"""What is remembered of work that a client did not prompt has a bound, which costs it nothing."""

from __future__ import annotations

import pytest

from adapter.core import values as v
from adapter.core.weights import ENTRY, MESSAGES
from adapter.limits import Bound, Limits
from tests.support.drive import of, row, text_row
from tests.unit.core.test_ambient import WATCHER, Scene, X


def work(scene: Scene, number: int) -> None:
    """A step of others."""
    scene.drive.text(f"msg_{number}", "x")
    scene.drive.tool(f"msg_{number}")
    scene.drive.tool_over(f"msg_{number}")


def hits(scene: Scene) -> int:
    found = of(scene.drive.said, v.Counted)
    return sum(one.times for one in found if one.bound is Bound.TURN_CONTEXT_BYTES)


@pytest.mark.parametrize("steps", [100, MESSAGES + 20])
def test_of_a_long_run_what_is_over_is_let_go_of_and_no_news_later(steps: int) -> None:
    scene = Scene(Limits(turn_context_bytes=16 * ENTRY))
    scene.prompt()
    for number in range(steps):
        work(scene, number)
    shown = scene.new()
    assert (len(of(shown, v.Chunk)), len(of(shown, v.Tool))) == (steps, 3 * steps)
    assert scene.drive.core.beside_bytes <= 16 * ENTRY
    scene.part("text.ended", "msg_0", text="x")
    scene.drive.tool_over("msg_0")
    scene.part("text.ended", f"msg_{steps - 20}", text="xy")
    assert (scene.new(), hits(scene)) == ([], 0)


def test_a_turn_that_claims_what_was_let_go_of_shows_it_no_second_time() -> None:
    scene = Scene(Limits(turn_context_bytes=16 * ENTRY))
    scene.prompt()
    scene.drive.admit(X, WATCHER)
    for number in range(20):
        work(scene, number)
    rows = [text_row(f"msg_{number}", "x", "tool-calls") for number in range(20)]
    scene.new()
    # The reads show that its own prompt shares the answer from its first step on.
    scene.drive.gap()
    scene.drive.snapshot(row("user", X), *rows, active=True)
    scene.drive.text("msg_20", "y")
    chunks = [one for one in of(scene.drive.said, v.Chunk) if one.owner == WATCHER]
    assert [(one.message_id, one.text) for one in chunks] == [
        *((f"msg_{number}", "x") for number in range(20)),
        ("msg_20", "y"),
    ]
    assert chunks[-1].origin is None


def test_of_a_step_of_others_that_is_too_large_no_more_is_shown() -> None:
    scene = Scene(Limits(turn_context_bytes=16 * ENTRY))
    scene.prompt()
    for number in range(40):
        scene.drive.tool("msg_1", f"call_{number}")
    shown = {tool.call_id for tool in of(scene.new(), v.Tool)}
    assert 0 < len(shown) < 16 and hits(scene) == 2 * (40 - len(shown))
    assert scene.drive.core.beside_bytes <= 16 * ENTRY
    scene.drive.hear("tool.called", assistantMessageID="msg_1", id="call_0",
                     input={"a": "x" * 16 * ENTRY})  # fmt: skip
    assert scene.drive.core.beside_bytes <= 16 * ENTRY
