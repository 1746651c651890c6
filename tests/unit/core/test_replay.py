"""The core replays recordings of a real server, whole and with its feed cut at every event."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations_with_replacement

import pytest

from adapter.core import values as v
from adapter.core.values import Stop, ToolStatus
from contract import events as ev
from contract.errors import Code
from tests.support.drive import Drive, Transcript
from tests.support.projection import Projection
from tests.support.recordings import turn_of

# Recording, and the outcome of its turn.
TURNS: dict[str, Stop | Code] = {
    "q2_text": Stop.END_TURN,
    "q2_think": Stop.END_TURN,
    "q2_tool": Stop.END_TURN,
    "q3_uni__": Stop.END_TURN,
    "q5_once": Stop.END_TURN,
    "q5_reject_msg": Stop.END_TURN,
    "q6_form_reply": Stop.END_TURN,
    "q10_sub_fg": Stop.END_TURN,
    "q10_sub_bg": Stop.END_TURN,
    "q12_err500x2": Stop.END_TURN,
    "q12_len": Stop.MAX_TOKENS,
    "q12_filter": Stop.REFUSAL,
    "q12_err400": Code.INTERNAL,
    "q1_steer_queue": Stop.END_TURN,
    "q4_full_midtext": Code.ENDED_ELSEWHERE,
    "q4_full_midthink": Code.ENDED_ELSEWHERE,
    "q4_full_midtool": Code.ENDED_ELSEWHERE,
    "q4_full_toolinput": Code.ENDED_ELSEWHERE,
    "q4_full_prefirst_immediate": Code.ENDED_ELSEWHERE,
    "q5_reject": Code.ENDED_ELSEWHERE,
    "q5_interrupt_pending": Code.ENDED_ELSEWHERE,
    "q7_delete_running": Code.ENDED_ELSEWHERE,
    "q8_bad_model": Code.INTERNAL,
}
# Enough to cover thinking, text, a tool, a permission, several steps, a child and a retry.
CUT = (
    "q2_think",
    "q2_tool",
    "q5_once",
    "q10_sub_fg",
    "q12_err500x2",
    "q4_full_midtool",
    "q4_full_midtext",
)


class Player:
    """Plays a recording into a core, with a feed that loses the events [i, j)."""

    def __init__(self, name: str) -> None:
        session, self.turn, self.events = turn_of(name)
        self.drive = Drive(session=session)
        self.server = Projection(session)

    def play(self, i: int | None = None, j: int = 0, buffered: int = 0) -> Transcript:
        drive = self.drive
        drive.submit(self.turn)
        for event in self.events[:i]:
            self._happen(event, heard=True)
        if i is None:
            return drive.seen
        drive.step(v.FeedLost())
        for event in self.events[i:j]:
            self._happen(event, heard=False)
        drive.step(v.FeedBack())
        buffer = self.events[j : j + buffered]
        judged, inbox = drive.core.admitted_ids, tuple(self.server.inbox)
        for event in buffer:
            self._happen(event, heard=False)
        if drive.core.turn_ids:
            self._step(v.Reconcile(self.server.snapshot(judged, inbox), tuple(buffer)))
        for event in self.events[j + buffered :]:
            self._happen(event, heard=True)
        for _ in range(12):
            due = [name for name in drive.timers if name.partition(":")[0] in ("lost", "parked")]
            if not drive.core.turn_ids:
                break
            for timer in due or ["quiet"]:
                self._step(v.Fired(timer))
        return drive.seen

    def _happen(self, event: ev.Event, *, heard: bool) -> None:
        self.server.apply(event)
        if heard:
            self._step(v.Heard(event))
        if isinstance(event, ev.InboxEnqueued) and event.inbox_id == self.turn:
            self._step(v.Posted(self.turn, v.Admission.ADMITTED))

    def _step(self, given: v.Input) -> None:
        for output in self.drive.step(given):
            match output:
                case v.TakeSnapshot() if not isinstance(given, v.FeedBack):
                    judged = self.drive.core.admitted_ids
                    self._step(v.Reconcile(self.server.snapshot(judged)))
                case v.ReadInbox():
                    self._step(v.InboxRead(tuple(self.server.inbox), self.server.active))
                case v.AskClient(_, ask, _):
                    self._step(v.Answered(ask.id, "once"))
                case v.Reply(_, ask_id, _):
                    self._step(v.Replied(ask_id, settled=True))
                case _:
                    pass


def whole(name: str) -> tuple[Player, Transcript]:
    player = Player(name)
    return player, player.play()


def own_texts(events: Iterable[ev.Event], session: str) -> dict[tuple[str, str], str]:
    """The full texts of a session by (message, kind)."""
    texts: dict[tuple[str, str], str] = {}
    for event in events:
        if event.session_id == session and isinstance(event, ev.TextEnded | ev.ReasoningEnded):
            kind = "text" if isinstance(event, ev.TextEnded) else "reasoning"
            texts[event.message_id, kind] = texts.get((event.message_id, kind), "") + event.text
    return texts


@pytest.mark.parametrize("name", TURNS)
def test_a_recording_replays_to_its_outcome(name: str) -> None:
    player, seen = whole(name)
    outcome, expected = seen.outcomes[player.turn], TURNS[name]
    assert (outcome.stop or Code(outcome.code)) is expected
    texts = {
        key: text for key, text in own_texts(player.events, player.drive.session).items() if text
    }
    assert seen.texts.items() <= texts.items()
    if name not in ("q1_steer_queue", "q10_sub_bg"):  # these hold answers of others
        assert seen.texts == texts


def test_one_execution_with_three_prompts_gives_each_its_own_text() -> None:
    player, seen = whole("q1_steer_queue")
    texts = list(own_texts(player.events, player.drive.session).values())
    assert len(texts) == 3
    assert list(seen.texts.values()) == texts[:1]


def test_an_unprompted_execution_of_a_background_child_is_not_ours() -> None:
    player, seen = whole("q10_sub_bg")
    foreign = [e for e in player.events if isinstance(e, ev.StepStarted)][-1].message_id
    assert foreign not in {message for message, _ in seen.texts}
    assert not any(text for (message, _), text in seen.texts.items() if message == foreign)


@pytest.mark.parametrize("name", ["q12_drop", "q12_errmid"])
def test_a_retry_after_partial_text_names_the_message_that_it_retries(name: str) -> None:
    player, _ = whole(name)
    chunks = [output for output in player.drive.said if isinstance(output, v.Chunk)]
    assert len({chunk.message_id for chunk in chunks}) > 1
    before = None
    for chunk in chunks:
        if before is not None and chunk.message_id != before.message_id:
            assert chunk.retry_of is not None
        before = chunk
    retries = [e for e in player.events if isinstance(e, ev.RetryScheduled)]
    assert player.drive.notices().count("retry") == len(retries)


def test_a_bad_agent_is_taken_out_of_the_inbox_and_fails_with_the_servers_words() -> None:
    player, seen = whole("q8_bad_agent")
    assert player.turn not in seen.outcomes
    assert v.Withdraw(player.turn) in player.drive.said
    player.drive.hear("inbox.cancelled", inboxID=player.turn)
    outcome = seen.outcomes[player.turn]
    assert (outcome.code, outcome.retry_safe) == (Code.INTERNAL, True)
    assert "Agent" in outcome.message


def windows(events: list[ev.Event], buffered: int) -> list[tuple[int, int]]:
    """Every cut [i, j) of a turn under way, but for those that hide an ask until its answer."""
    first = next(i for i, e in enumerate(events) if isinstance(e, ev.InboxEnqueued)) + 1
    asked = [i for i, e in enumerate(events) if isinstance(e, ev.PermissionAsked)]
    replied = [i for i, e in enumerate(events) if isinstance(e, ev.PermissionReplied)]
    pairs = list(zip(asked, replied, strict=True))
    return [
        (i, j)
        for i, j in combinations_with_replacement(range(first, len(events) + 1), 2)
        if not any(i <= start < j and end < j + buffered for start, end in pairs)
    ]


def same(cut: Transcript, clean: Transcript, turn: str) -> bool:
    ended, expected = cut.outcomes[turn], clean.outcomes[turn]
    if ended.code == Code.UNKNOWN_OUTCOME:
        return True
    done = {key: state for key, state in cut.tools.items() if state is not ToolStatus.PENDING}
    return (cut.texts, done, cut.asks) == (clean.texts, clean.tools, clean.asks) and (
        ended.stop,
        ended.code,
    ) == (expected.stop, expected.code)


@pytest.mark.parametrize("buffered", [0, 3])
@pytest.mark.parametrize("name", CUT)
def test_a_cut_at_any_event_costs_no_character_no_tool_state_and_no_outcome(
    name: str, buffered: int
) -> None:
    _, clean = whole(name)
    for i, j in windows(turn_of(name)[2], buffered):
        player = Player(name)
        cut = player.play(i, j, buffered)
        assert same(cut, clean, player.turn), (name, i, j, buffered, cut, clean)


def test_a_cut_turn_is_never_unknown_while_the_server_has_its_rows() -> None:
    player = Player("q2_tool")
    for i in range(2, len(player.events) + 1):
        player = Player("q2_tool")
        seen = player.play(i, len(player.events))
        assert seen.outcomes[player.turn].stop is Stop.END_TURN
