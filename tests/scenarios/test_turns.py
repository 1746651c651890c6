"""One turn at a time: text, tools, permissions, stop reasons, provider errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stubs.client import choose
from stubs.real_server import PASSWORD
from stubs.server import Settings
from tests.scenarios.backends import stub_backend
from tests.scenarios.stage import (
    ASKS,
    TEXT,
    THOUGHT,
    Stage,
    agent_argv,
    agent_env,
    audit,
    checked_agent,
    fails,
    notices,
    shell,
    statuses,
    words,
)

HARD_TEXT = "Grüße \u2028 \u2029 \x85 👩‍👩‍👧 \U0001f680 \ttab\nline\r\n\U0001d4b3 \u200f\ufeff end"


async def test_text(stage: Stage) -> None:
    agent = await stage.agent()
    session = await agent.new_session(stage.project())
    result = await agent.prompt(session, "please @@text 12 20@@")
    script = agent.transcript(session)
    assert result["stopReason"] == "end_turn"
    assert list(script.texts.values()) == [words(12)]
    assert (script.tools, script.asks, notices(script)) == ({}, [], [])
    told = audit(result)
    assert (told["gaps"], told["recoveredChars"], told["shared"], told["cancel"]) == (
        0,
        0,
        False,
        None,
    )
    assert result["usage"]["inputTokens"] == 800
    assert result["usage"]["cachedReadTokens"] == 200
    assert script.latest["usage_update"]["used"] == 1050
    assert script.latest["usage_update"]["size"] == 100_000
    assert stage.backend.admissions[told["messageId"]] == 1


async def test_thought_and_text_are_parts_of_one_message(stage: Stage) -> None:
    agent = await stage.agent()
    session = await agent.new_session(stage.project())
    await agent.prompt(session, "@@think 6 10 && text 6 10@@")
    texts = agent.transcript(session).texts
    assert {kind: text for (_, kind), text in texts.items()} == {
        THOUGHT: words(6, "think"),
        TEXT: words(6),
    }
    assert len({message for message, _ in texts}) == 1


async def test_long_text_loses_nothing(stage: Stage) -> None:
    agent = await stage.agent()
    session = await agent.new_session(stage.project())
    await agent.prompt(session, "@@text 2000@@")
    assert agent.transcript(session).text() == words(2000)


async def test_characters_of_every_kind_survive_both_ways(stage: Stage) -> None:
    agent = await stage.agent()
    session = await agent.new_session(stage.project())
    said = json.dumps(HARD_TEXT)
    await agent.prompt(session, f"{HARD_TEXT} @@say {said} 15@@")
    assert agent.transcript(session).text() == HARD_TEXT
    rows = await (await stage.front_end()).rows(session, "user")
    assert rows[0]["text"].startswith(HARD_TEXT)


async def test_text_that_repeats_itself_is_whole(stage: Stage) -> None:
    """The next piece may be the end of the last one and is news all the same."""
    agent = await stage.agent()
    session = await agent.new_session(stage.project())
    table = "| a | a | a |\n| --- | --- | --- |\n" * 3
    await agent.prompt(session, f"@@say {json.dumps(table)} 15@@")
    assert agent.transcript(session).text() == table


async def test_an_allowed_tool_runs(stage: Stage) -> None:
    agent = await stage.agent(choose("allow_once"))
    session = await agent.new_session(stage.project(ASKS))
    result = await agent.prompt(session, f"@@text 1 && {shell('echo hi')} || text 2@@")
    script = agent.transcript(session)
    assert result["stopReason"] == "end_turn"
    assert script.text() == words(1) + words(2)
    ((ident, tool),) = script.tools.items()
    assert (tool["status"], tool["kind"], tool["title"]) == ("completed", "execute", "echo hi")
    assert tool["rawInput"] == {"command": "echo hi"}
    assert "hi" in tool["rawOutput"]["output"]
    assert script.asks == [{"toolCallId": ident, "answer": "allow_once"}]


async def test_a_refused_tool_fails_and_the_turn_goes_on(stage: Stage) -> None:
    agent = await stage.agent(choose("reject_once"))
    session = await agent.new_session(stage.project(ASKS))
    result = await agent.prompt(session, f"@@{shell('echo hi')} || text 2@@")
    script = agent.transcript(session)
    assert result["stopReason"] == "end_turn"
    assert script.text() == words(2)
    assert statuses(script) == ["failed"]
    assert [ask["answer"] for ask in script.asks] == ["reject_once"]


async def test_of_two_asks_the_approval_goes_first(stage: Stage) -> None:
    async def one_of_each(params: dict[str, object]) -> str:
        return "reject_once" if "echo one" in json.dumps(params) else "allow_once"

    agent = await stage.agent(one_of_each)
    session = await agent.new_session(stage.project(ASKS))
    calls = f"{shell('echo one')} && {shell('echo two')}"
    result = await agent.prompt(session, f"@@{calls} || text 2@@")
    script = agent.transcript(session)
    assert result["stopReason"] == "end_turn"
    assert {tool["title"]: tool["status"] for tool in script.tools.values()} == {
        "echo one": "failed",
        "echo two": "completed",
    }
    assert script.text() == words(2)


async def test_two_rejections_end_the_turn_with_a_word(stage: Stage) -> None:
    agent = await stage.agent(choose("reject_once"))
    session = await agent.new_session(stage.project(ASKS))
    calls = f"{shell('echo one')} && {shell('echo two')}"
    result = await agent.prompt(session, f"@@{calls} || text 2@@")
    script = agent.transcript(session)
    assert result["stopReason"] == "end_turn"
    assert statuses(script) == ["failed", "failed"]
    assert "rejected" in notices(script)
    assert (await agent.prompt(session, "@@text 3@@"))["stopReason"] == "end_turn"
    assert script.text().endswith(words(3))


async def test_files_are_written_and_edited_with_diffs(stage: Stage) -> None:
    agent = await stage.agent()
    project = stage.project(ASKS)
    session = await agent.new_session(project)
    write = 'tool write {"path":"a.txt","content":"one\\ntwo\\n"}'
    edit = 'tool edit {"path":"a.txt","oldString":"two","newString":"three"}'
    await agent.prompt(session, f"@@{write} || {edit} || text 1@@")
    written, edited = agent.transcript(session).tools.values()
    path = str(project / "a.txt")
    for tool in (written, edited):
        assert (tool["status"], tool["kind"]) == ("completed", "edit")
        assert [place["path"] for place in tool["locations"]] == [path]
    (diff,) = [part for part in edited["content"] if part["type"] == "diff"]
    assert (diff["path"], diff["oldText"], diff["newText"]) == (
        path,
        "one\ntwo\n",
        "one\nthree\n",
    )
    assert (project / "a.txt").read_text(encoding="utf-8") == "one\nthree\n"


async def test_the_ask_for_an_edit_shows_the_change(stage: Stage) -> None:
    seen: list[dict[str, object]] = []

    async def look(params: dict[str, object]) -> str:
        seen.append(params)
        return "allow_once"

    agent = await stage.agent(look)
    project = stage.project(ASKS)
    (project / "a.txt").write_text("one\ntwo\n", encoding="utf-8")
    session = await agent.new_session(project)
    edit = 'tool edit {"path":"a.txt","oldString":"two","newString":"three"}'
    await agent.prompt(session, f"@@{edit} || text 1@@")
    (asked,) = seen
    call = asked["toolCall"]
    assert isinstance(call, dict)
    (diff,) = [part for part in call["content"] if part["type"] == "diff"]
    assert (diff["path"], diff["oldText"], diff["newText"]) == (
        str(project / "a.txt"),
        "one\ntwo\n",
        "one\nthree\n",
    )


async def test_reading_a_file(stage: Stage) -> None:
    agent = await stage.agent()
    project = stage.project()
    (project / "a.txt").write_text("first\nsecond\n", encoding="utf-8")
    session = await agent.new_session(project)
    await agent.prompt(session, '@@tool read {"path":"a.txt"} || text 1@@')
    (tool,) = agent.transcript(session).tools.values()
    assert (tool["status"], tool["kind"]) == ("completed", "read")
    assert "second" in tool["rawOutput"]["output"]


@pytest.mark.parametrize("call", ["tool nosuch {}", "tool shell {}"])
async def test_a_call_that_makes_no_sense_fails_and_the_turn_goes_on(
    stage: Stage, call: str
) -> None:
    agent = await stage.agent()
    session = await agent.new_session(stage.project())
    result = await agent.prompt(session, f"@@{call} || text 2@@")
    script = agent.transcript(session)
    assert (result["stopReason"], statuses(script), script.text()) == (
        "end_turn",
        ["failed"],
        words(2),
    )


async def test_the_step_cap_is_max_turn_requests(stage: Stage) -> None:
    agent = await stage.agent()
    session = await agent.new_session(stage.project())
    await agent.set_mode(session, "short")
    steps = " || ".join(shell(f"echo {n}") for n in range(6))
    result = await agent.prompt(session, f"@@{steps}@@")
    assert result["stopReason"] == "max_turn_requests"
    assert (await agent.prompt(session, "@@text 1@@"))["stopReason"] == "end_turn"


@pytest.mark.parametrize(("finish", "reason"), [("length", "max_tokens"), ("filter", "refusal")])
async def test_other_stop_reasons(stage: Stage, finish: str, reason: str) -> None:
    agent = await stage.agent()
    session = await agent.new_session(stage.project())
    result = await agent.prompt(session, f"@@text 3 && {finish}@@")
    assert result["stopReason"] == reason
    assert agent.transcript(session).text() == words(3)


async def test_a_provider_error_is_told_and_safe_to_retry(stage: Stage) -> None:
    agent = await stage.agent()
    session = await agent.new_session(stage.project())
    async with fails(-32603) as error:
        await agent.prompt(session, "@@error 400 always@@")
    assert "scripted error 400" in error().message
    assert error().data["retrySafe"] is True
    assert error().data["admitted"] is True
    assert (await agent.prompt(session, "@@text 1@@"))["stopReason"] == "end_turn"


async def test_a_failure_after_a_tool_is_not_safe_to_retry(stage: Stage) -> None:
    agent = await stage.agent()
    session = await agent.new_session(stage.project())
    async with fails(-32056) as error:
        await agent.prompt(session, f"@@{shell('echo hi')} || error 400 always@@")
    assert error().data["retrySafe"] is False
    assert statuses(agent.transcript(session)) == ["completed"]


async def test_a_retry_of_the_provider_is_told(stage: Stage) -> None:
    agent = await stage.agent()
    session = await agent.new_session(stage.project())
    result = await agent.prompt(session, "@@error 500 && text 3@@")
    script = agent.transcript(session)
    assert result["stopReason"] == "end_turn"
    assert list(script.texts.values()) == [words(3)]
    assert notices(script).count("retry") == 1


async def test_a_retry_after_partial_text_is_a_new_message(stage: Stage) -> None:
    agent = await stage.agent()
    session = await agent.new_session(stage.project())
    result = await agent.prompt(session, "@@text 4 60 && drop && text 2@@")
    script = agent.transcript(session)
    assert result["stopReason"] == "end_turn"
    assert list(script.texts.values()) == [words(4), words(4) + words(2)]
    first, second = (message for message, _ in script.texts)
    retry_of = [
        line.message["params"]["update"]["_meta"]["opencode-acp"].get("retryOf")
        for line in agent.updates
        if line.message.get("method") == "session/update"
        and line.message["params"]["update"].get("messageId") == second
        and "_meta" in line.message["params"]["update"]
    ]
    assert set(retry_of) == {first}
    assert notices(script).count("retry") == 1


async def test_a_provider_that_stays_away_is_an_error_in_its_own_words(tmp_path: Path) -> None:
    """On the stub alone: the server asks for a minute and a half before it gives up."""
    settings = Settings(password=PASSWORD, retry_base=0.01, retry_attempts=3)
    async with stub_backend(tmp_path, settings) as backend:
        argv, env = agent_argv(backend.url), agent_env(PASSWORD)
        async with checked_agent(argv, env) as agent:
            session = await agent.new_session(backend.project())
            async with fails(-32603) as error:
                await agent.prompt(session, "@@error 500 always@@")
            assert "scripted error 500" in error().message
            assert "retry" in notices(agent.transcript(session))
            assert (await agent.prompt(session, "@@text 1@@"))["stopReason"] == "end_turn"
