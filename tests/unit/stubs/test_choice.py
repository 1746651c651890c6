"""Which step answers a request, from its messages alone."""

from __future__ import annotations

from typing import Any

from stubs.choice import ASKS_FOR_SUMMARY, ASKS_TO_GO_ON, SUMMARY, TITLE, choose
from stubs.script import NO_SCRIPT_TEXT, PAST_END_TEXT

SCRIPT = "go @@tool shell {} || text 1 || text 2@@"


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def answer(text: str = "x") -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def call() -> dict[str, Any]:
    return {"role": "assistant", "content": "", "tool_calls": [{"id": "call_0_0"}]}


TOOL_RESULT = {"role": "tool", "content": "ok", "tool_call_id": "call_0_0"}


def text(*messages: dict[str, Any], tools: bool = True) -> str:
    return choose("ses_1", messages, tools).step.text


def test_the_answers_since_the_script_count() -> None:
    assert choose("ses_1", [user(SCRIPT)], True).step.tools[0].name == "shell"
    assert text(user(SCRIPT), call(), TOOL_RESULT) == "w0 "
    assert text(user(SCRIPT), call(), TOOL_RESULT, call(), TOOL_RESULT) == "w0 w1 "
    assert text(user(SCRIPT), *[call(), TOOL_RESULT] * 3) == PAST_END_TEXT


def test_the_note_of_a_step_cap_is_no_answer() -> None:
    assert text(user(SCRIPT), call(), TOOL_RESULT, answer("MAXIMUM STEPS REACHED")) == "w0 "


def test_a_prompt_steered_into_a_turn_does_not_disturb_its_script() -> None:
    assert text(user(SCRIPT), call(), TOOL_RESULT, user("by the way")) == "w0 "


def test_a_turn_without_a_script_says_ok_whatever_came_before() -> None:
    assert text(user("hello")) == NO_SCRIPT_TEXT
    assert text(user("@@text 1@@"), answer(), user("hello")) == NO_SCRIPT_TEXT


def test_the_newest_script_counts() -> None:
    assert text(user("@@text 3@@"), answer(), user("@@text 1@@")) == "w0 "


def test_a_retry_after_partial_text_asks_for_the_same_step_under_the_same_key() -> None:
    first = choose("ses_1", [user("@@text 4 && drop@@")], True)
    again = choose("ses_1", [user("@@text 4 && drop@@"), answer(), user(ASKS_TO_GO_ON)], True)
    assert (first.key, first.step) == (again.key, again.step)


def test_keys_tell_sessions_turns_and_steps_apart() -> None:
    turn = user("@@text 1@@")
    keys = {
        choose("ses_1", [turn], True).key,
        choose("ses_2", [turn], True).key,
        choose("ses_1", [turn, answer(), turn], True).key,
        choose("ses_1", [turn, call(), TOOL_RESULT], True).key,
    }
    assert len(keys) == 4


def test_titles_and_summaries_use_up_no_step() -> None:
    assert text(user(SCRIPT), tools=False) == TITLE
    for beginning in ASKS_FOR_SUMMARY:
        assert text(user(SCRIPT), answer(), user(beginning + " ...")) == SUMMARY


def test_content_may_be_a_list_of_parts() -> None:
    parts = [{"type": "text", "text": "@@text 1@@"}, {"type": "image_url", "image_url": {}}]
    assert text({"role": "user", "content": parts}) == "w0 "


SUM_UP, UPDATE, MEND = (user(words) for words in ASKS_FOR_SUMMARY)


def test_a_script_of_a_summary_answers_the_request_for_one() -> None:
    slow = choose("ses_1", [user("hi %%wait 500%%"), answer(), SUM_UP], True)
    assert slow.step.text == SUMMARY
    assert len(slow.step.actions) == 2
    assert text(user("hi %%text 2%%"), answer(), UPDATE) == "w0 w1 "
    failing = choose("ses_1", [user("hi %%error 400%%"), answer(), SUM_UP], True)
    assert failing.step.error is not None
    assert choose("ses_1", [user("hi %%error 400%%"), answer(), SUM_UP], True).key == failing.key


def test_its_second_step_mends() -> None:
    said = [user('hi %%text 1 || say "mended"%%'), answer(), MEND]
    assert text(*said) == "mended"
    assert text(user("hi %%text 1%%"), answer(), MEND) == PAST_END_TEXT


def test_it_is_no_script_of_a_turn() -> None:
    assert text(user("hi %%text 2%%")) == NO_SCRIPT_TEXT
