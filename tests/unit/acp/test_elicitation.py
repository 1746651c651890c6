"""Forms as ACP shows them, and what of an answer reaches the server."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.acp import elicitation
from adapter.acp.framing import encode
from adapter.core import values as v
from adapter.upstream.decode import encode as encode_body
from contract.shapes import Form
from stubs.server.answers import fault_of_answer
from tests.support.oracle import Oracle

Json = dict[str, Any]

OPTIONS: Final = [
    {"value": "r", "label": "Red", "description": "warm"},
    {"value": "b", "label": "Blue"},
]
KINDS: Final[list[Json]] = [
    {"key": "name", "type": "string", "title": "Name", "minLength": 2, "maxLength": 9},
    {"key": "mail", "type": "string", "format": "email", "pattern": "@", "default": "a@b.co"},
    {"key": "one", "type": "string", "options": OPTIONS, "custom": False, "default": "r"},
    {"key": "own", "type": "string", "options": OPTIONS, "custom": True},
    {"key": "count", "type": "integer", "minimum": 1, "maximum": 5, "default": 2},
    {"key": "ratio", "type": "number", "minimum": 0.5, "maximum": 1.5},
    {"key": "ok", "type": "boolean", "default": False, "required": True},
    {"key": "many", "type": "multiselect", "options": OPTIONS, "minItems": 1, "maxItems": 2},
    {"key": "more", "type": "multiselect", "options": OPTIONS, "custom": True, "default": ["r"]},
    {"key": "free", "type": "multiselect", "options": [], "custom": True},
]


def form(*fields: Json, title: str = "T", **metadata: Any) -> Form:
    return Form.model_validate(
        {
            "id": "frm_1",
            "sessionID": "ses_1",
            "title": title,
            "metadata": metadata,
            "fields": fields or KINDS,
        }
    )


def ask(given: Form, tool: v.Tool | None = None, child: str | None = None) -> Json:
    return elicitation.request(v.ShowForm(1, given, tool, child), "ses_1")


def properties(*fields: Json) -> Json:
    shown: Json = ask(form(*fields))["requestedSchema"]["properties"]
    return shown


def accept(*fields: Json, **content: Any) -> Json:
    told, fate = elicitation.answer(form(*fields), {"action": "accept", "content": content})
    assert fate == "answered"
    return dict(told)


def faults(params: Json) -> list[str]:
    oracle = Oracle()
    oracle.received({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": params})
    return oracle.faults


# --- what is shown --------------------------------------------------------------------------


def test_every_kind_of_field_has_its_place_in_the_flat_schema() -> None:
    const = [{"const": "r", "title": "Red", "description": "warm"}, {"const": "b", "title": "Blue"}]
    shown = properties()
    titles = {key: field.pop("title") for key, field in shown.items()}
    assert titles == {key: key for key in shown} | {
        "name": "Name", "own_other": "own (other)", "more_other": "more (other)",
    }  # fmt: skip
    assert shown == {
        "name": {"type": "string", "minLength": 2, "maxLength": 9},
        "mail": {"type": "string", "format": "email", "pattern": "@", "default": "a@b.co"},
        "one": {"type": "string", "oneOf": const, "default": "r"},
        "own": {"type": "string", "oneOf": const},
        "own_other": {"type": "string", "description": "Your own words, instead of the choices."},
        "count": {"type": "integer", "minimum": 1, "maximum": 5, "default": 2},
        "ratio": {"type": "number", "minimum": 0.5, "maximum": 1.5},
        "ok": {"type": "boolean", "default": False},
        "many": {"type": "array", "items": {"anyOf": const}, "minItems": 1, "maxItems": 2},
        "more": {"type": "array", "items": {"anyOf": const}, "default": ["r"]},
        "more_other": {"type": "string", "description": "Your own words, beside the choices."},
        "free": {"type": "string"},
    }


@pytest.mark.parametrize("field", KINDS, ids=lambda field: field["key"])
def test_what_is_shown_is_the_published_schema(field: Json) -> None:
    assert faults(ask(form(field))) == []


def test_a_form_names_its_session_its_call_and_what_is_required() -> None:
    tool = v.Tool(1, "msg_1", "call_0", "question", v.ToolStatus.IN_PROGRESS)
    params = ask(form(), tool)
    assert (params["mode"], params["sessionId"]) == ("form", "ses_1")
    assert params["toolCallId"] == "msg_1/call_0"
    assert params["requestedSchema"]["required"] == ["ok"]
    assert faults(params) == []


def test_the_call_of_a_child_is_none_that_the_client_knows() -> None:
    tool = v.Tool(1, "msg_1", "call_0", "question", v.ToolStatus.IN_PROGRESS)
    params = ask(form(), tool, "Look around")
    assert "toolCallId" not in params
    assert params["message"] == "Sub-agent Look around: T"


@pytest.mark.parametrize(
    ("origin", "child"),
    [
        (
            v.OfChild("ses_c", "ses_1", "msg_1", "call_0"),
            {"sessionId": "ses_c", "parentSessionId": "ses_1", "toolCallId": "msg_1/call_0"},
        ),
        (v.OfChild("ses_c", "ses_1"), {"sessionId": "ses_c", "parentSessionId": "ses_1"}),
    ],
)
def test_whose_form_it_is_stands_in_meta(origin: v.OfChild, child: Json) -> None:
    params = elicitation.request(v.ShowForm(1, form(), None, "", origin), "ses_1")
    assert params["_meta"] == {"opencode-acp": {"child": child}}
    assert "_meta" not in ask(form())
    assert faults(params) == []


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (form(KINDS[0] | {"description": "Which name?"}), "Which name?"),
        (form(KINDS[0]), "T"),
        (form(title="Questions"), "Questions"),
        (form(title=""), "The agent asks for your input."),
        (form(message="Tell me"), "Tell me"),
    ],
)
def test_the_message_is_what_is_asked(given: Form, message: str) -> None:
    assert ask(given)["message"] == message


def test_a_hidden_field_is_not_shown_and_a_property_of_ours_takes_no_name_of_a_field() -> None:
    own = {"key": "a", "type": "string", "options": OPTIONS, "custom": True, "required": True}
    shown = ask(
        form(
            own, {"key": "a_other", "type": "string"}, {"key": "h", "type": "boolean", "hidden": 1}
        )
    )["requestedSchema"]
    assert list(shown["properties"]) == ["a", "a_other_", "a_other"]
    assert "required" not in shown


def test_a_condition_is_said_and_never_required() -> None:
    when = [{"key": "ok", "op": "eq", "value": True}, {"key": "name", "op": "neq", "value": "Bob"}]
    field = {"key": "why", "type": "string", "required": True, "description": "Why?", "when": when}
    schema = ask(form(KINDS[0], KINDS[6], field))["requestedSchema"]
    assert schema["properties"]["why"]["description"] == (
        "Why? Counts only if ok is yes. Counts only if Name is not Bob."
    )
    assert schema["required"] == ["ok"]


def test_a_choice_that_stands_twice_is_shown_once() -> None:
    shown = properties({"key": "a", "type": "string", "options": [*OPTIONS, OPTIONS[0]]})
    assert [one["const"] for one in shown["a"]["oneOf"]] == ["r", "b"]


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ([{"key": "a", "type": "string", "title": "Your password"}], "credential"),
        ([{"key": "e", "type": "external", "url": "https://example.com"}], "unable"),
        ([KINDS[0], {"key": "e", "type": "external", "url": "https://example.com"}], "unable"),
        ([{"key": "a", "type": "string", "hidden": True}], "unable"),
        ([{"key": "a", "type": "new kind"}], "unable"),
        ([{"type": "string"}], "unable"),
        ([{"key": "a", "type": "multiselect", "options": []}], "unable"),
        ([{"key": f"k{n}", "type": "string"} for n in range(65)], "unable"),
        ([{"key": "k" * 1025, "type": "string"}], "unable"),
        ([{"key": "a", "type": "string",
           "options": [{"value": "v" * 1025, "label": ""}]}], "unable"),
        ([{"key": "a", "type": "string", "options": [{"value": f"{n}", "label": "x" * 900}
                                                     for n in range(200)]}], "unable"),
        ([{"key": "a", "type": "string", "options": [{"value": f"{n}", "label": ""}
                                                     for n in range(257)]}], "unable"),
        (KINDS, None),
    ],
)  # fmt: skip
def test_what_may_not_be_shown_says_why(fields: list[Json], why: str | None) -> None:
    assert elicitation.why_not(form(*fields)) == why


def test_the_largest_form_fits_into_a_line() -> None:
    fields = [
        {"key": f"k{n}", "type": "string", "title": "\x01" * 1000, "description": "\x01" * 10_000}
        for n in range(40)
    ]
    given = form(*fields, title="\x01" * 10_000)
    assert elicitation.why_not(given) is None
    assert len(encode(ask(given))) < 1024 * 1024


# --- what is answered -----------------------------------------------------------------------


def test_a_whole_answer_reaches_the_server_as_it_is() -> None:
    told = accept(
        name="Joe", mail="j@b.co", one="b", own="b", count=3, ratio=1, ok=False,
        many=["r", "b"], more=["b"], free="anything", own_other="", more_other="green",
    )  # fmt: skip
    assert told == {
        "name": "Joe", "mail": "j@b.co", "one": "b", "own": "b", "count": 3, "ratio": 1,
        "ok": False, "many": ["r", "b"], "more": ["b", "green"], "free": ["anything"],
    }  # fmt: skip
    assert fault_of_answer(KINDS, told) is None


def test_own_words_stand_instead_of_a_choice() -> None:
    assert accept(own="r", own_other="green") == {"own": "green"}
    assert accept(own_other="green") == {"own": "green"}
    assert accept(own="green") == {"own": "green"}
    assert accept(one="r", one_other="green") == {"one": "r"}


@pytest.mark.parametrize(
    "content",
    [
        {"unknown": "x"}, {"name": 3}, {"name": "J"}, {"name": "J" * 10}, {"name": ""},
        {"name": "\U0001f600" * 5}, {"name": None}, {"name": ["Joe"]}, {"one": "Red"},
        {"one": ["r"]}, {"count": 1.5}, {"count": True}, {"count": "3"}, {"count": 0},
        {"count": 6}, {"ratio": 2}, {"ratio": True}, {"ok": "yes"}, {"ok": 1}, {"many": "r"},
        {"many": []}, {"many": ["green"]}, {"many": [3]}, {"many": [["r"]]}, {"more": {}},
        {"free": []}, {"free": ""}, {"own_other": 3}, {"name": "x" * 100_000},
        {"own": "x" * 100_000}, {"more_other": "x" * 100_000},
    ],
)  # fmt: skip
def test_what_does_not_fit_is_not_answered(content: Json) -> None:
    assert accept(**content) == {}


def test_one_value_that_does_not_fit_leaves_the_others() -> None:
    assert accept(name="Joe", count=99, many=["r", "x", "r"]) == {"name": "Joe", "many": ["r"]}


@pytest.mark.parametrize("number", [2.0, 2])
def test_a_whole_number_is_an_integer_however_it_is_written(number: float) -> None:
    assert type(accept(count=number)["count"]) is int


@pytest.mark.parametrize("kind", ["integer", "number"])
@pytest.mark.parametrize("number", [2**53, -(2**53), 2**53 + 2, 2**63, 2**64, 1e300, -1e300, 0.0])
def test_a_number_that_the_server_keeps_is_answered(kind: str, number: float) -> None:
    told = accept({"key": "n", "type": kind}, n=number)
    assert told == {"n": number}
    assert json.loads(encode_body(told), parse_int=float) == {"n": float(number)}


@pytest.mark.parametrize("kind", ["integer", "number"])
@pytest.mark.parametrize("number", [2**53 + 1, -(2**53) - 1, 2**64 + 1, 10**400, -(10**400)])
def test_a_number_that_the_server_would_round_or_refuse_is_not_answered(
    kind: str, number: int
) -> None:
    assert accept({"key": "n", "type": kind}, n=number) == {}


def test_an_answer_whose_condition_does_not_hold_is_left_out() -> None:
    when = [{"key": "name", "op": "eq", "value": "Joe"}]
    fields = [KINDS[0], {"key": "why", "type": "string", "when": when, "required": True}]
    assert accept(*fields, name="Joe", why="so") == {"name": "Joe", "why": "so"}
    assert accept(*fields, name="Bob", why="so") == {"name": "Bob"}
    assert accept(*fields, why="so") == {}


@pytest.mark.parametrize(
    "result",
    [
        None, {}, [], "accept", {"action": "decline"}, {"action": "cancel"}, {"action": "ACCEPT"},
        {"action": ["accept"]}, {"action": None, "content": {"name": "Joe"}},
        {"action": "decline", "content": {"name": "Joe"}}, {"content": {"name": "Joe"}},
        {"outcome": {"outcome": "selected", "optionId": "allow_once"}}, {"action": "_later"},
    ],
)  # fmt: skip
def test_everything_but_a_clear_accept_is_none(result: object) -> None:
    assert elicitation.answer(form(), result) == ({}, "declined")


@pytest.mark.parametrize("content", [None, [], "x", 3])
def test_an_accept_without_content_answers_nothing(content: object) -> None:
    result = {"action": "accept", "content": content}
    assert elicitation.answer(form(), result) == ({}, "answered")


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
NAMES = st.sampled_from([field["key"] for field in KINDS] + ["own_other", "more_other", "zz"])


@given(content=st.dictionaries(NAMES, ANYTHING | st.sampled_from(["r", "b", ["r"], 2, 1.5])))
def test_no_answer_makes_a_fault_and_the_server_takes_what_is_left_of_it(content: Json) -> None:
    told = accept(**content)
    told.pop("mail", None)
    fields = [{**field, "required": False} for field in KINDS]
    assert fault_of_answer(fields, told) is None
