"""The byte stream before httpx-sse: any chunking gives the same lines, and only ours pass."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.upstream.lines import EventLines, FeedCounters, Oversize, OversizeLine, Splitter
from adapter.upstream.watch import Watch

OURS = "ses_ours"


def event(kind: str, session: str, rest: str = "") -> bytes:
    head = f'data: {{"id":"evt_1","created":1,"type":"{kind}",'
    return f'{head}"data":{{"sessionID":"{session}"{rest}}}}}'.encode()


def cut(data: bytes, places: Sequence[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]


async def source(chunks: Sequence[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def passed(
    chunks: Sequence[bytes], counters: FeedCounters | None = None, limit: int = 100_000
) -> list[bytes]:
    watch = Watch()
    watch.add(OURS)
    stream = EventLines(source(chunks), watch, counters or FeedCounters(), lambda: 0.0, limit=limit)
    return [line async for line in stream]


def lines_of(chunks: Sequence[bytes], limit: int) -> list[bytes | Oversize]:
    splitter = Splitter(limit)
    return [line for chunk in chunks for line in splitter.feed(chunk)]


@given(st.lists(st.binary(max_size=30)), st.lists(st.integers(min_value=0), max_size=20))
def test_any_chunking_gives_the_same_lines(pieces: list[bytes], places: list[int]) -> None:
    data = b"\n".join(pieces)
    assert lines_of(cut(data, places), 10_000) == data.split(b"\n")[:-1]


@given(
    st.lists(st.integers(min_value=0, max_value=40), min_size=1),
    st.lists(st.integers(min_value=0), max_size=20),
)
def test_lines_over_the_limit_are_reported_once_each(lengths: list[int], places: list[int]) -> None:
    data = b"".join(b"x" * length + b"\n" for length in lengths)
    found = lines_of(cut(data, places), 20)
    assert [isinstance(line, Oversize) for line in found] == [length > 20 for length in lengths]


def test_an_oversize_line_is_reported_before_its_end_and_not_held() -> None:
    splitter = Splitter(1000)
    found = [line for _ in range(100) for line in splitter.feed(b"y" * 100)]
    assert found == [Oversize(b"y" * 1000 + b"y" * 100)]
    assert len(splitter._pending) == 0
    assert list(splitter.feed(b"\nnext\n")) == [b"next"]


async def test_only_lines_of_our_sessions_pass() -> None:
    counters = FeedCounters()
    ours = event("session.text.delta", OURS)
    other = event("session.text.delta", "ses_other")
    assert await passed([b": heartbeat\n\n", other, b"\n\n", ours, b"\n\n"], counters) == [
        ours + b"\n\n"
    ]
    assert (counters.heartbeats, counters.skipped) == (1, 1)


async def test_a_child_is_heard_of_by_its_parent() -> None:
    child = event("session.created", "ses_child", f',"parentID":"{OURS}"')
    assert await passed([child + b"\n"]) == [child + b"\n\n"]


async def test_a_text_that_talks_of_our_id_does_not_pass() -> None:
    line = event("session.text.ended", "ses_other", f',"text":"{{\\"sessionID\\":\\"{OURS}\\"}}"')
    assert await passed([line + b"\n"]) == []


@pytest.mark.parametrize("kind", ["server.connected", "model.updated", "location.shutdown"])
async def test_types_without_a_session_pass(kind: str) -> None:
    line = f'data: {{"id":"evt_1","created":1,"type":"{kind}","data":{{}}}}'.encode()
    assert await passed([line + b"\n\n"]) == [line + b"\n\n"]


async def test_a_session_watched_because_of_a_line_is_heard_in_the_next() -> None:
    first = event("session.created", "ses_child", f',"parentID":"{OURS}"')
    second = event("session.execution.started", "ses_child")
    watch = Watch()
    watch.add(OURS)
    stream = EventLines(
        source([first + b"\n\n" + second + b"\n\n"]), watch, FeedCounters(), lambda: 0.0
    )
    heard = []
    async for line in stream:
        heard.append(line)
        watch.add("ses_child")
    assert heard == [first + b"\n\n", second + b"\n\n"]


BIG = ',"text":"' + "x" * 5000 + '"'


@pytest.mark.parametrize(
    "line",
    [
        event("session.text.ended", OURS, BIG),
        b'data: {"id":"evt_1","created":1,"type":"session.x","data":{"a":"' + b"x" * 5000,
    ],
    ids=["ours", "head without a session"],
)
async def test_an_oversize_line_that_may_be_ours_is_a_gap(line: bytes) -> None:
    counters = FeedCounters()
    with pytest.raises(OversizeLine):
        await passed([line], counters, limit=4500)
    assert counters.oversize == 1


@pytest.mark.parametrize(
    "line",
    [
        event("session.text.ended", "ses_other", BIG),
        event("session.inbox.enqueued", OURS, BIG),
        event("session.inbox.enqueued", "ses_other", BIG),
    ],
    ids=["foreign", "echo of ours", "foreign echo"],
)
async def test_other_oversize_lines_are_dropped(line: bytes) -> None:
    counters = FeedCounters()
    ours = event("session.text.delta", OURS)
    chunks = [line, b"\n\n", ours, b"\n\n"]
    assert await passed(chunks, counters, limit=4500) == [ours + b"\n\n"]
    assert counters.oversize == 1


async def test_the_time_of_the_last_chunk_is_visible() -> None:
    times = iter([1.0, 2.0, 3.0])
    stream = EventLines(
        source([b": heartbeat\n\n", b"data: "]), Watch(), FeedCounters(), lambda: next(times)
    )
    assert stream.last_byte == 1.0
    assert [line async for line in stream] == []
    assert stream.last_byte == 3.0


def test_a_watch_is_bounded() -> None:
    watch = Watch(limit=2)
    assert [watch.add("ses_a"), watch.add("ses_b"), watch.add("ses_c")] == [True, True, False]
    assert watch.add("ses_a")
    watch.discard("ses_a")
    assert watch.add("ses_c")
    assert ("ses_a" in watch, "ses_c" in watch, len(watch)) == (False, True, 2)
