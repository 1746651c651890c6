"""The core replays full recordings of the real server, and no cut of the feed changes the turn."""

from __future__ import annotations

import pytest

from adapter.core.values import Stop, ToolStatus
from contract.errors import Code
from tests.support.drive import Transcript
from tests.support.readings import FOLDER, Replay, load

Told = tuple[list[str], list[Stop | Code]]


def words(count: int, word: str = "w") -> str:
    return "".join(f"{word}{number} " for number in range(count))


# Recording: the texts of the client in order, and the outcomes of its turns.
EXPECTED: dict[str, Told] = {
    "text": ([words(5, "think"), words(20)], [Stop.END_TURN]),
    "tools": ([words(6), words(3, "think"), words(10)], [Stop.END_TURN]),
    "rejected": ([words(8)], [Stop.END_TURN]),
    "child": ([words(4)], [Stop.END_TURN]),
    "retried": ([words(8)], [Stop.END_TURN]),
    "dropped": ([words(8), words(8)], [Stop.END_TURN]),
    "failed": ([], [Code.INTERNAL]),
    "filtered": ([words(3)], [Stop.REFUSAL]),
    "interrupted": ([], [Stop.CANCELLED]),
    "queued": ([words(12), words(7)], [Stop.END_TURN, Stop.END_TURN]),
    "parked": ([words(7)], [Stop.CANCELLED, Stop.END_TURN]),
    "withdrawn": ([words(20)], [Stop.END_TURN, Stop.CANCELLED]),
    "silent": ([words(3) * 2], [Stop.END_TURN]),
}
# In these a turn is stopped in mid-text: how much of it came is a matter of the moment.
PARTIAL = {"interrupted", "parked"}
TOOLS: dict[str, list[ToolStatus]] = {
    "tools": [ToolStatus.COMPLETED] * 3,
    "rejected": [ToolStatus.FAILED],
    "child": [ToolStatus.COMPLETED],
}
# How many readings after the cut the client is back: the loss of one moment, or of a long one.
BACK = (0, 1, 3, 9)


def outcomes(seen: Transcript) -> list[Stop | Code]:
    """By the order of the prompts."""
    ended = (seen.outcomes[turn] for turn in sorted(seen.outcomes))
    return [outcome.stop or Code(outcome.code) for outcome in ended]


def texts(name: str, seen: Transcript) -> dict[tuple[str, str], str]:
    """The texts by (message, kind), without the one of the turn that was stopped."""
    told = dict(seen.texts)
    if name in PARTIAL:
        for key, text in seen.texts.items():
            if text != words(7) and words(200).startswith(text):
                del told[key]
    return told


@pytest.mark.parametrize("name", EXPECTED)
def test_a_recording_replays_to_what_the_client_saw(name: str) -> None:
    seen = Replay(name).play()
    assert (list(texts(name, seen).values()), outcomes(seen)) == EXPECTED[name]
    assert list(seen.tools.values()) == TOOLS.get(name, [])


@pytest.mark.parametrize("back", BACK)
@pytest.mark.parametrize("name", EXPECTED)
def test_a_cut_after_any_event_changes_nothing(name: str, back: int) -> None:
    recording = load(name)
    prompted = next(m.number for m in recording.moments if m.event is not None)
    whole = Replay(name).play()
    for cut in range(prompted, recording.events):
        seen = Replay(name, cut, back).play()
        assert same(name, seen, whole), f"cut after event {cut}: {seen}"


def same(name: str, cut: Transcript, whole: Transcript) -> bool:
    """The same texts, tool states and outcomes; asks that others answered need not be shown.

    The order of texts may differ: the server ends a thought only with the step, so a thought that
    began while the feed was away comes after the text of its message.
    """
    return (
        texts(name, cut) == texts(name, whole)
        and cut.tools == whole.tools
        and cut.asks <= whole.asks
        and outcomes(cut) == outcomes(whole)
    )


def test_a_cut_in_mid_text_says_how_much_was_recovered() -> None:
    recording = load("text")
    deltas = [m.number for m in recording.moments if m.event and m.event.type.endswith("t.delta")]
    seen = Replay("text", deltas[-1], 9).play()
    (outcome,) = seen.outcomes.values()
    assert outcome.gaps == 1
    assert 0 < outcome.recovered < len(words(20))


def test_a_silence_that_only_heartbeats_break_is_no_news_to_the_client() -> None:
    lines = (FOLDER / "silent.jsonl").read_text("utf-8").splitlines()
    assert sum('"line": ": heartbeat"' in line for line in lines) >= 2
    replay = Replay("silent")
    replay.play()
    assert replay.drive.notices() == []
