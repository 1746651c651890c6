"""One line is one value: a table of what peers have been seen to send, and worse."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.acp.jsonrpc import Fault, Notification, Request, Response, decode, is_id, request
from adapter.acp.jsontext import MAX_DEPTH, MAX_VALUES, NotJson, crowded, parse
from adapter.limits import DEFAULTS
from contract.limits import PROMPT_BLOCKS

HOSTILE = {
    b"[]": -32600,
    b'[{"jsonrpc":"2.0","id":1,"method":"a"}]': -32600,
    b"null": -32600,
    b"5": -32600,
    b'"x"': -32600,
    b"true": -32600,
    b"{}": -32600,
    b'{"jsonrpc":"2.0"}': -32600,
    b"": -32700,
    b"{": -32700,
    b"\xff\xfe": -32700,
    b'{"jsonrpc":"2.0","id":1,"method":"\xed\xa0\x80"}': -32700,
    b"\xef\xbb\xbf{}": -32700,
    b"[" * 5000: -32700,
    b"[" * 5000 + b"]" * 5000: -32700,
    b'{"a":' * 5000 + b"1" + b"}" * 5000: -32700,
    b'{"jsonrpc":"2.0","id":1,"id":2,"method":"a"}': -32700,
    b'{"jsonrpc":"2.0","id":NaN,"method":"a"}': -32700,
    b'{"jsonrpc":"2.0","id":1e999,"method":"a"}': -32700,
    b"1" * 10_000: -32700,
}


@pytest.mark.parametrize("line", HOSTILE, ids=lambda line: repr(line[:40]))
def test_a_hostile_line_is_one_fault_under_id_null(line: bytes) -> None:
    fault = decode(line)
    assert isinstance(fault, Fault)
    assert (fault.code, fault.id, fault.answer) == (HOSTILE[line], None, True)


@given(st.binary() | st.text().map(str.encode))
def test_no_line_raises(line: bytes) -> None:
    decode(line)


def call(**members: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "method": "m", **members}).encode()


@pytest.mark.parametrize("ident", [0, 1, -1, "", "1", "ü" * 1024, None, 2**63])
def test_an_id_keeps_its_value_and_type(ident: object) -> None:
    request = decode(call(id=ident))
    assert isinstance(request, Request)
    assert (request.id, type(request.id)) == (ident, type(ident))


@pytest.mark.parametrize("ident", [True, False, 1.0, 1.5, [], {}, [1], 2**64, "x" * 1025])
def test_an_odd_id_is_refused_under_null(ident: object) -> None:
    assert not is_id(ident)
    fault = decode(call(id=ident))
    assert isinstance(fault, Fault)
    assert (fault.code, fault.id, fault.answer) == (-32600, None, True)


@pytest.mark.parametrize("params", [[], [1], None, 5, "x"])
def test_params_are_an_object_or_absent(params: object) -> None:
    fault = decode(call(id=7, params=params))
    assert isinstance(fault, Fault)
    assert (fault.code, fault.id, fault.answer) == (-32602, 7, True)
    assert decode(call(id=7)) == Request(7, "m", {})
    assert decode(call(params={"a": 1})) == Notification("m", {"a": 1})


@pytest.mark.parametrize("members", [{"params": []}, {"method": 5}, {"jsonrpc": "1.0"}])
def test_a_bad_notification_is_never_answered(members: dict[str, object]) -> None:
    fault = decode(call(**members))
    assert isinstance(fault, Fault)
    assert not fault.answer


@pytest.mark.parametrize("members", [{"method": 5}, {"jsonrpc": "1.0"}, {"jsonrpc": 2.0}])
def test_a_bad_request_is_refused_under_its_id(members: dict[str, object]) -> None:
    fault = decode(call(id="a", **members))
    assert isinstance(fault, Fault)
    assert (fault.code, fault.id) == (-32600, "a")


@pytest.mark.parametrize(
    ("line", "response"),
    [
        (b'{"id":1,"result":null}', Response(1, None, None)),
        (b'{"id":1,"result":{},"error":null}', Response(1, {}, None)),
        (b'{"id":1,"error":{"code":1}}', Response(1, None, {"code": 1})),
        (b'{"id":1,"result":1,"error":{"code":1}}', Response(1, None, {"code": 1})),
        (b'{"id":1,"error":"bad"}', Response(1, None, {})),
        (b'{"id":1,"error":null}', Response(1, None, {})),
        (b'{"jsonrpc":"2.0","error":{"code":1}}', Response(None, None, {"code": 1})),
    ],
)
def test_responses(line: bytes, response: Response) -> None:
    assert decode(line) == response


def test_a_response_with_an_odd_id_is_never_answered() -> None:
    fault = decode(b'{"jsonrpc":"2.0","id":true,"result":{}}')
    assert isinstance(fault, Fault)
    assert not fault.answer


def test_a_lone_surrogate_costs_its_character_only() -> None:
    request = decode(
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"t":["\\ud83d x \\ud83d\\ude00"]}}'
    )
    assert request == Request(1, "m", {"t": ["\ufffd x \U0001f600"]})


def test_nesting_is_bounded_by_a_number_not_by_the_interpreter() -> None:
    def nested(levels: int) -> bytes:
        return b"[" * levels + b"]" * levels

    parse(nested(MAX_DEPTH))
    with pytest.raises(NotJson):
        parse(nested(MAX_DEPTH + 1))


def marks(value: object) -> int:
    """Opening brackets and commas of a JSON value."""
    if not isinstance(value, dict | list):
        return 0
    inside = list(value.values()) if isinstance(value, dict) else value
    return 1 + max(len(inside) - 1, 0) + sum(map(marks, inside))


@given(
    st.recursive(
        st.integers() | st.none() | st.text(st.sampled_from('",[{}]:\\a\n\u00e9')),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(st.sampled_from('",[{\\')), inner),
    ),
    st.booleans(),
)
def test_values_are_counted_whatever_their_texts_hold(value: object, ascii_only: bool) -> None:
    line = json.dumps(value, ensure_ascii=ascii_only).encode()
    count = marks(value)
    assert not crowded(line, count)
    assert count == 0 or crowded(line, count - 1)


@pytest.mark.parametrize("value", [b"1", b"{}", b'""', b"[]", b'{"a":1}', b'"\\ud800"'])
def test_a_line_of_many_values_is_refused_before_any_is_made(value: bytes) -> None:
    line = b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":[%b]}}'
    few = line % b",".join([value] * (MAX_VALUES // 4))
    many = line % b",".join([value] * (MAX_VALUES + 1))
    assert isinstance(decode(few), Request)
    fault = decode(many)
    assert isinstance(fault, Fault)
    assert (fault.code, fault.id, fault.answer) == (-32700, None, True)
    assert "65,536 values" in fault.message


@pytest.mark.parametrize("text", [",", "[{", '\\",', '{"a":[1,2,3]},\n'])
def test_a_prompt_may_be_full_of_what_separates_values(text: str) -> None:
    text *= DEFAULTS.prompt_chars // len(text)
    link = {"type": "resource_link", "name": "a, b", "uri": "file:///a", "_meta": {"x": [1, 2]}}
    prompt = [{"type": "text", "text": text}, *[link] * (PROMPT_BLOCKS - 1)]
    line = json.dumps(request(1, "session/prompt", {"prompt": prompt})).encode()
    assert decode(line) == Request(1, "session/prompt", {"prompt": prompt})
