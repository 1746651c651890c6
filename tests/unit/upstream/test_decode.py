"""JSON with and without lone surrogates."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.upstream.decode import DecodeError, clean, decode, encode

TEXT = st.text(st.characters())
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


@given(TEXT)
def test_what_is_sent_comes_back_cleaned(text: str) -> None:
    assert decode(encode({"text": text})) == {"text": clean(text)}


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1, 10**400])
@pytest.mark.parametrize("text", ["x", "\ud800"])
def test_an_integer_of_any_size_is_written_as_it_is(number: int, text: str) -> None:
    body = encode({"n": [number], "t": text})
    assert json.loads(body) == {"n": [number], "t": clean(text)}


@pytest.mark.parametrize("number", [math.inf, -math.inf, math.nan])
def test_what_is_no_number_of_json_becomes_null(number: float) -> None:
    assert encode({"n": number}) == b'{"n":null}'
    assert json.loads(encode({"n": number, "t": "\ud800", "i": 2**64}))["n"] is None


@given(JSON)
def test_every_document_of_the_server_is_read(value: object) -> None:
    document = json.dumps(value).encode()
    decoded = decode(document)
    encode(decoded)
    if b"\\ud" not in document:
        assert decoded == value


def test_lone_surrogates_become_the_replacement_character() -> None:
    document = b'{"a\\udfff": ["x\\ud800y", "\\ud83d\\ude00"]}'
    assert decode(document) == {"a\ufffd": ["x\ufffdy", "\U0001f600"]}


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"<html>", b"NaN", b'{"a": Infinity, "b": "\\ud800"}', b"\xff", b"[" * 100_000],
)
def test_what_is_no_json_is_one_error(data: bytes) -> None:
    with pytest.raises(DecodeError):
        decode(data)
