"""The script language reads what it says it reads, and refuses the rest."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stubs.script import (
    PAST_END_TEXT,
    Drop,
    End,
    Error,
    ScriptError,
    Stream,
    Tool,
    Wait,
    find_script,
    parse,
)


def test_words_are_numbered_and_end_with_a_space() -> None:
    (step,) = parse("text 3 20 && think 2").steps
    assert step.actions == (
        Stream("text", ("w0 ", "w1 ", "w2 "), 20),
        Stream("reasoning", ("think0 ", "think1 ")),
    )
    assert (step.text, step.reasoning, step.finish) == ("w0 w1 w2 ", "think0 think1 ", "stop")


def test_steps_answer_in_order_and_then_done() -> None:
    script = parse('tool shell {"command":"true"} && tool read {"path":"a"} || text 1')
    assert [tool.name for tool in script.step(0).tools] == ["shell", "read"]
    assert script.step(0).finish == "tool_calls"
    assert script.step(1).text == "w0 "
    assert script.step(2).text == PAST_END_TEXT
    assert script.step(3).text == PAST_END_TEXT


def test_faults_and_finishes() -> None:
    (step,) = parse("error 500 2 && text 1 && drop && drop always && wait 5 && length").steps
    assert step.error == Error(500, 2)
    assert step.actions[2:] == (Drop(1), Drop(None), Wait(5), End("length"))
    assert parse("filter").step(0).finish == "content_filter"
    assert parse("error 429 always").step(0).error == Error(429, None)


def test_separators_inside_json_are_text() -> None:
    script = parse('say "a || b && \\"c\\"" 5 || tool shell {"command": "x && y || z"}')
    assert script.step(0).text == 'a || b && "c"'
    assert script.step(1).actions == (Tool("shell", '{"command": "x && y || z"}'),)
    assert script.step(1).tools[0].input == {"command": "x && y || z"}


def test_a_script_is_found_in_a_prompt() -> None:
    found = find_script("please @@text 1@@ now @@text 2@@")
    assert found is not None
    assert found.source == "text 1"
    assert find_script("no script, mail me at a@@b") is None


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_say_streams_any_text_in_small_pieces(text: str) -> None:
    (action,) = parse(f"say {json.dumps(text)} 1").step(0).actions
    assert isinstance(action, Stream)
    assert action.text == text
    assert all(0 < len(piece) <= 8 for piece in action.pieces)


@pytest.mark.parametrize(
    "source",
    [
        "",
        "text",
        "text x",
        "text -1",
        "text ²",
        "text 1 2 3",
        "text 99999999",
        "say hello",
        "say 5",
        'say "a" b',
        "tool shell",
        "tool shell []",
        "tool {}",
        "error 200",
        "error",
        "wait",
        "length 3",
        "sing 1",
        "text 1 || ",
    ],
)
def test_anything_else_is_refused(source: str) -> None:
    with pytest.raises(ScriptError):
        parse(source)
