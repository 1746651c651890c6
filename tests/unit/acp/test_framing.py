"""Lines in any chunking are the same lines, and nothing that is sent breaks a line."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.acp.framing import OUTBOUND_LIMIT, LineBuffer, Oversize, encode
from stubs.parts import ROOT

LIMIT = 12
HOSTILE_TEXT = st.lists(
    st.sampled_from([b"\n", b"\r\n", b"\r", b"a", b" ", b"0123456789", b"\xe2\x80\xa8", b"\xff"])
).map(b"".join)


def expected(data: bytes) -> list[bytes | Oversize]:
    """The definition in one pass, over the whole input at once."""
    lines: list[bytes | Oversize] = []
    *whole, rest = data.split(b"\n")
    for line in whole:
        if len(line) > LIMIT:
            lines.append(Oversize(LIMIT))
        elif line.strip():
            lines.append(line.removesuffix(b"\r"))
    if len(rest) > LIMIT:
        lines.append(Oversize(LIMIT))
    return lines


@given(HOSTILE_TEXT, st.lists(st.integers(min_value=1, max_value=20)))
def test_any_chunking_yields_the_same_lines(data: bytes, sizes: list[int]) -> None:
    buffer, got, at = LineBuffer(LIMIT), [], 0
    for size in sizes:
        got += buffer.feed(data[at : at + size])
        at += size
    got += buffer.feed(data[at:])
    assert got == expected(data)


def test_only_lf_ends_a_line() -> None:
    text = "a\u2028b\u2029c\u0085d\x0be\x0cf\rg".encode()
    assert LineBuffer().feed(text + b"\n") == [text]


def test_an_oversize_line_is_reported_once_and_not_kept() -> None:
    buffer = LineBuffer(limit=1000)
    reports = [report for _ in range(1000) for report in buffer.feed(b"x" * 1000)]
    assert reports == [Oversize(1000)]
    assert buffer.feed(b"xx\nnext\n") == [b"next"]


def test_the_default_limit_is_32_mib() -> None:
    buffer = LineBuffer()
    assert buffer.feed(b"x" * 32 * 2**20) == []
    assert buffer.feed(b"x") == [Oversize(32 * 2**20)]


@given(st.recursive(st.text() | st.floats() | st.integers(), st.lists, max_leaves=5))
def test_whatever_is_sent_is_one_line_of_json(value: object) -> None:
    line = encode({"value": value})
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    json.loads(line.decode("utf-8"), parse_constant=pytest.fail)


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        ("a\ud800b", "a\ufffdb"),
        ({"\udfff": ["\ud83d"]}, {"\ufffd": ["\ufffd"]}),
        (float("nan"), None),
        (["\ud800", float("inf")], ["\ufffd", None]),
        (2**70, 2**70),
        ("😀\n", "😀\n"),
    ],
)
def test_what_no_encoder_takes_is_repaired(value: object, sent: object) -> None:
    assert json.loads(encode({"value": value})) == {"value": sent}


def test_a_line_over_the_limit_is_a_fault_of_the_caller() -> None:
    room = OUTBOUND_LIMIT - len(encode({"t": ""}))
    assert len(encode({"t": "x" * room})) == OUTBOUND_LIMIT
    with pytest.raises(ValueError, match="over"):
        encode({"t": "x" * (room + 1)})


def test_lines_that_wait_take_what_they_hold() -> None:
    """In a process of its own, whose memory is nobody else's."""
    script = (
        "import os\n"
        "from adapter.acp.framing import encode\n"
        "page = os.sysconf('SC_PAGE_SIZE')\n"
        "def rss(): return int(open('/proc/self/statm').read().split()[1]) * page\n"
        "start = rss()\n"
        "kept = [encode({'id': None, 'error': 'x' * 100}) for _ in range(20_000)]\n"
        "print((rss() - start) // len(kept))\n"
    )
    told = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, check=True)
    assert int(told.stdout) < 1000
