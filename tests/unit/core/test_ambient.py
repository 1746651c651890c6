"""Work that a client did not prompt: shown once, to those who asked for it, and never their own."""

from __future__ import annotations

from typing import Any

import pytest

from adapter.core import values as v
from adapter.core.ambience import TEXTS_BOUND
from adapter.core.spectator import RUNS_BOUND
from adapter.core.values import ToolStatus
from adapter.limits import DEFAULTS, Limits
from contract.events import PROMPT_CHARS
from contract.reads import AssistantRow
from tests.support.drive import Drive, event, of, row, text_row

X, Y = "msg_acp_x", "msg_acp_y"
THEIRS = "msg_theirs"
WATCHER, OTHER = 7, 8


class Scene:
    """A session that WATCHER watches; everything else is somebody else's."""

    def __init__(self, limits: Limits = DEFAULTS) -> None:
        self.drive = Drive(limits=limits)
        self.drive.step(v.Watch(WATCHER))
        self._seen = 0

    def prompt(self, item: str = THEIRS, text: str = "do it", kind: str = "user") -> None:
        payload = {"text": text}
        self.drive.hear("inbox.enqueued", inboxID=item, item={"type": kind, "payload": payload})
        self.drive.deliver(item)

    def part(self, kind: str, message: str = "msg_1", ordinal: int = 0, **data: Any) -> None:
        self.drive.hear(kind, assistantMessageID=message, ordinal=ordinal, **data)

    def new(self, owner: int = WATCHER) -> list[v.Output]:
        """What the owner was shown of runs since the last call."""
        said, self._seen = self.drive.said[self._seen :], len(self.drive.said)
        return [
            one
            for one in said
            if isinstance(one, v.Prompted | v.Chunk | v.Tool)
            and isinstance(one.origin, v.OfRun)
            and one.owner == owner
        ]

    def text(self, owner: int = WATCHER) -> str:
        return "".join(chunk.text for chunk in of(self.new(owner), v.Chunk))


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_a_prompt_of_another_front_end_is_a_run_from_its_delivery_on(scene: Scene) -> None:
    scene.prompt()
    scene.drive.text("msg_1", "answer")
    scene.drive.tool("msg_1")
    scene.drive.tool_over("msg_1")
    shown = scene.new()
    assert of(shown, v.Prompted) == [v.Prompted(WATCHER, THEIRS, "do it", v.OfRun(THEIRS))]
    assert [type(one) for one in shown] == [v.Prompted, v.Chunk, v.Tool, v.Tool, v.Tool]
    assert {one.origin for one in of(shown, v.Tool)} == {v.OfRun(THEIRS)}


def test_nobody_who_did_not_ask_is_shown_anything() -> None:
    drive = Drive()
    drive.step(v.Watch(WATCHER, wanted=False))
    drive.deliver(THEIRS)
    drive.text("msg_1", "answer")
    assert of(drive.said, v.Chunk) == []


def test_it_ends_when_it_is_not_wanted_any_more(scene: Scene) -> None:
    scene.part("text.started")
    scene.drive.step(v.Watch(WATCHER, wanted=False))
    scene.part("text.delta", delta="a")
    assert scene.new() == []


def test_an_execution_that_nobody_prompted_is_a_run_of_its_item(scene: Scene) -> None:
    scene.prompt("msg_child_is_done", "<subagent>", kind="synthetic")
    scene.drive.text("msg_1", "so the child says")
    (chunk,) = of(scene.new(), v.Chunk)
    assert chunk.origin == v.OfRun("msg_child_is_done")
    # The reminder of the server to the model is no user's text.
    assert of(scene.drive.said, v.Prompted) == []


def test_a_synthetic_item_within_a_run_begins_no_other(scene: Scene) -> None:
    scene.prompt()
    scene.prompt("msg_reminder", "", kind="synthetic")
    scene.drive.text("msg_1", "a")
    scene.drive.hear("execution.succeeded")
    scene.drive.text("msg_2", "b")
    assert [chunk.origin for chunk in of(scene.new(), v.Chunk)] == [
        v.OfRun(THEIRS),
        v.OfRun("msg_2"),
    ]


def test_deltas_are_true_deltas_and_the_full_text_adds_what_is_missing(scene: Scene) -> None:
    scene.part("text.started")
    scene.part("text.delta", delta="ab")
    scene.part("text.delta", delta="ab")
    assert scene.text() == "abab"
    scene.part("text.ended", text="ababc")
    assert scene.text() == "c"


@pytest.mark.parametrize("kind", ["text", "reasoning"])
@pytest.mark.parametrize("full", ["ab", "a"])
def test_an_equal_or_stale_text_adds_nothing(scene: Scene, kind: str, full: str) -> None:
    scene.part(f"{kind}.started")
    scene.part(f"{kind}.delta", delta="ab")
    scene.new()
    scene.part(f"{kind}.ended", text=full)
    assert scene.new() == []


def test_a_text_that_is_not_what_was_shown_adds_nothing_and_is_counted(scene: Scene) -> None:
    scene.part("text.started")
    scene.part("text.delta", delta="ab")
    scene.new()
    scene.part("text.ended", text="xyz")
    assert scene.new() == []
    assert v.Counted(v.Oddity.DIVERGENCES) in scene.drive.said


def test_a_text_whose_start_was_not_heard_comes_whole_at_its_end(scene: Scene) -> None:
    scene.part("text.delta", delta="b")
    assert scene.new() == []
    scene.part("text.ended", text="abc")
    assert scene.text() == "abc"


def test_a_tool_between_does_not_reset_what_was_shown(scene: Scene) -> None:
    """A / tool / B, then the full text ABC: only C is new (S2-35)."""
    scene.part("text.started")
    scene.part("text.delta", delta="A")
    scene.drive.tool("msg_1")
    scene.drive.tool_over("msg_1")
    scene.part("text.delta", delta="B")
    assert scene.text() == "AB"
    scene.part("text.ended", text="ABC")
    assert scene.text() == "C"


def test_a_users_prompt_begins_anew(scene: Scene) -> None:
    scene.prompt("msg_u1")
    scene.drive.text("msg_1", "AB")
    scene.prompt("msg_u2")
    scene.drive.text("msg_2", "ABC")
    assert [(c.text, c.origin) for c in of(scene.new(), v.Chunk)] == [
        ("AB", v.OfRun("msg_u1")),
        ("ABC", v.OfRun("msg_u2")),
    ]


def test_a_turn_of_another_connection_is_shown_and_an_own_one_is_not(scene: Scene) -> None:
    scene.drive.run(X, owner=OTHER)
    scene.drive.text("msg_1", "theirs")
    scene.drive.ended("msg_1")
    assert scene.text() == "theirs"
    scene.drive.run(Y, owner=WATCHER)
    scene.drive.text("msg_2", "own")
    scene.drive.ended("msg_2")
    # Late words of its own message are no news of others either.
    scene.part("text.ended", "msg_2", ordinal=1, text="late")
    assert scene.new() == []
    assert scene.drive.seen.texts[("msg_2", "text")] == "own"


def test_its_own_prompt_is_not_shown_to_it(scene: Scene) -> None:
    scene.drive.submit(X, owner=WATCHER)
    scene.prompt(X, "mine")
    scene.drive.ended("msg_1")
    assert scene.new() == []


def test_a_prompt_that_was_cancelled_and_runs_all_the_same_is_its_own_still(scene: Scene) -> None:
    scene.drive.admit(X, owner=WATCHER)
    scene.drive.step(v.Cancel(WATCHER))
    scene.drive.fire(f"cancel:{X}")
    scene.prompt(X, "mine")
    assert scene.new() == []


def test_who_comes_to_watch_in_its_own_turn_gets_its_answer_once() -> None:
    drive = Drive()
    drive.run(X, owner=WATCHER)
    drive.text("msg_1", "ab", end=False)
    drive.step(v.Watch(WATCHER))
    at = {"assistantMessageID": "msg_1", "ordinal": 0}
    assert [c.origin for c in of(drive.hear("text.delta", **at, delta="c"), v.Chunk)] == [None]
    assert drive.hear("text.ended", **at, text="abc") == []
    drive.ended("msg_1")
    assert drive.hear("text.ended", assistantMessageID="msg_1", ordinal=1, text="late") == []


def test_what_the_server_says_after_a_turn_settled_is_a_run(scene: Scene) -> None:
    """Text after an answer is not lost to whoever watches (S2-20)."""
    scene.drive.run(X, owner=WATCHER)
    scene.drive.text("msg_1", "own")
    scene.drive.ended("msg_1")
    scene.prompt("msg_child_is_done", kind="synthetic")
    scene.drive.text("msg_2", "news")
    assert scene.text() == "news"


def test_in_a_gap_nothing_is_shown_nor_of_what_was_first_heard_in_one(scene: Scene) -> None:
    scene.drive.admit(X, owner=OTHER)
    scene.part("text.started", "msg_1")
    scene.part("text.delta", "msg_1", delta="ab")
    assert scene.text() == "ab"
    scene.drive.step(v.FeedLost())
    scene.part("text.delta", "msg_1", delta="c")
    scene.part("text.ended", "msg_1", text="abcd")
    scene.part("text.started", "msg_2")
    scene.part("text.delta", "msg_2", delta="ab")
    scene.drive.step(v.FeedBack())
    assert scene.new() == []
    at = {"sessionID": "ses_1", "assistantMessageID": "msg_3", "ordinal": 0}
    begun = event("session.text.started", at)
    scene.drive.snapshot(row("user", "msg_other"), inbox=[X], active=True, buffer=[begun])
    for message in ("msg_1", "msg_2", "msg_3"):
        scene.part("text.ended", message, text="abcd")
    assert scene.text() == "cd"


def test_after_a_gap_without_a_turn_texts_come_with_their_ends(scene: Scene) -> None:
    scene.part("text.started")
    scene.part("text.delta", delta="ab")
    scene.new()
    scene.drive.gap()
    scene.part("text.delta", delta="d")
    assert scene.new() == []
    scene.part("text.ended", text="abcd")
    assert scene.text() == "cd"


def test_a_message_that_an_own_prompt_may_have_set_off_is_not_shown(scene: Scene) -> None:
    """The prompt's delivery fell into a gap: the reads will say that the message is its answer."""
    scene.drive.submit(X, owner=WATCHER)
    scene.drive.gap()
    scene.drive.snapshot(active=True)
    scene.part("text.started", "msg_1")
    scene.part("text.delta", "msg_1", delta="ab")
    assert scene.new() == []
    scene.drive.step(v.Posted(X, v.Admission.ADMITTED))
    scene.drive.snapshot(row("user", X), text_row("msg_1", "abc", "stop"))
    assert scene.new() == []
    assert scene.drive.seen.texts == {("msg_1", "text"): "abc"}


def test_an_answer_that_is_taken_over_goes_on_where_it_was_shown(scene: Scene) -> None:
    scene.drive.run(X, owner=OTHER)
    scene.part("text.started")
    scene.part("text.delta", delta="ab")
    scene.drive.tool("msg_1")
    assert scene.text() == "ab"
    scene.drive.admit(Y, owner=WATCHER)
    scene.drive.ended("msg_1", "tool-calls")
    scene.drive.deliver(Y)
    scene.drive.step(v.Left(OTHER, interrupt=False))
    scene.part("text.ended", text="abcd")
    chunk = of(scene.drive.said, v.Chunk)[-1]
    assert (chunk.owner, chunk.text, chunk.origin) == (WATCHER, "cd", None)
    (tool,) = of(scene.drive.tool_over("msg_1"), v.Tool)
    assert (tool.first, tool.status, tool.origin) == (False, ToolStatus.COMPLETED, None)


def test_runs_are_bounded_and_what_went_is_not_shown_again(scene: Scene) -> None:
    scene.prompt("msg_u")
    scene.part("text.started", "msg_first")
    scene.part("text.delta", "msg_first", delta="ab")
    for n in range(RUNS_BOUND):
        scene.prompt(f"msg_u{n}")
        scene.drive.text(f"msg_a{n}", "x")
    scene.new()
    scene.part("text.ended", "msg_first", text="abc")
    assert scene.new() == []
    assert of(scene.drive.said, v.Counted) == [v.Counted(v.Oddity.RUNS_EVICTED)]


def test_a_run_that_is_heard_of_stays(scene: Scene) -> None:
    scene.prompt("msg_u")
    scene.part("text.started", "msg_first")
    for n in range(RUNS_BOUND):
        scene.part("text.delta", "msg_first", delta="a")
        scene.prompt(f"msg_u{n}")
        scene.drive.text(f"msg_a{n}", "x")
    scene.new()
    scene.part("text.ended", "msg_first", text="a" * RUNS_BOUND + "b")
    assert scene.text() == "b"


def test_texts_of_prompts_are_bounded(scene: Scene) -> None:
    for n in range(TEXTS_BOUND + 1):
        item = {"type": "user", "payload": {"text": "x" * (PROMPT_CHARS + 1)}}
        scene.drive.hear("inbox.enqueued", inboxID=f"msg_u{n}", item=item)
    scene.drive.deliver("msg_u0")
    scene.drive.deliver("msg_u1")
    (told,) = of(scene.new(), v.Prompted)
    assert (told.message_id, len(told.text)) == ("msg_u1", PROMPT_CHARS)


def test_two_spectators_have_their_own_offsets(scene: Scene) -> None:
    scene.part("text.started")
    scene.part("text.delta", delta="ab")
    scene.drive.step(v.Watch(OTHER))
    scene.part("text.ended", text="abc")
    chunks = [(c.owner, c.text) for c in of(scene.drive.said, v.Chunk)]
    assert chunks == [(WATCHER, "ab"), (WATCHER, "c"), (OTHER, "abc")]


def test_a_load_shows_everything_and_only_what_it_lacked_is_news(scene: Scene) -> None:
    scene.drive.text("msg_1", "shown before")
    scene.drive.tool("msg_1")
    scene.part("text.started", ordinal=1)
    scene.part("text.delta", ordinal=1, delta="ne")
    scene.new()
    scene.drive.step(v.Reloading(WATCHER))
    running = {"type": "tool", "id": "call_1", "name": "shell", "state": {"status": "running"}}
    content = [{"type": "text", "text": "shown before"}, running, {"type": "text", "text": ""}]
    unfinished = row("assistant", "msg_1", content=content)
    assert isinstance(unfinished, AssistantRow)
    scene.drive.step(v.Reloaded(WATCHER, unfinished))
    scene.part("text.ended", text="shown before")
    scene.part("text.ended", ordinal=1, text="news")
    (tool,) = of(scene.drive.tool_over("msg_1"), v.Tool)
    assert (tool.first, tool.status) == (False, ToolStatus.COMPLETED)
    assert scene.text() == "news"


def test_watching_leaves_turns_alone(scene: Scene) -> None:
    scene.prompt()
    scene.drive.text("msg_1", "a")
    scene.drive.tool("msg_1")
    scene.drive.ask("per_1", "msg_1")
    scene.drive.ended("msg_1")
    assert not [one for one in scene.drive.said if isinstance(one, v.AskClient | v.Settled)]
