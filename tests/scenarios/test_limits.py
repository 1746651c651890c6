"""Lowered limits: what is over is refused, cut or left out, and everything else goes on."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from stubs.client import AcpClientError
from stubs.proxy import Rule
from stubs.waiting import until
from tests.scenarios.raw import raw_agent
from tests.scenarios.stage import (
    ASKS,
    TEXT,
    Json,
    Stage,
    agent_argv,
    agent_env,
    audit,
    checked_agent,
    fails,
    notices,
    prompting,
    saw_log,
    saw_text,
    shell,
    statuses,
    words,
)
from tests.scenarios.test_content import PIXEL
from tests.support.checked import CheckedClient


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "opencode-acp.toml"


def write(file: Path, limits: dict[str, float]) -> None:
    lines = [f"{name} = {value}\n" for name, value in limits.items()]
    file.write_text("".join(["[limits]\n", *lines]), encoding="utf-8")


async def limited(
    stage: Stage, file: Path, url: str | None = None, **limits: float
) -> CheckedClient:
    """An adapter with these limits."""
    write(file, limits)
    return await stage.agent(config=file, url=url)


def told(agent: CheckedClient, session: str) -> list[str]:
    """The limits that the client was told of."""
    found = [notice["_meta"]["opencode-acp"] for notice in agent.transcript(session).notices]
    return [one["limit"] for one in found if one["notice"] == "limit"]


async def test_one_prompt_too_many_is_refused_and_the_others_go_on(
    stage: Stage, file: Path
) -> None:
    agent = await limited(stage, file, prompts_per_connection=1)
    first, second = [await agent.new_session(stage.project()) for _ in range(2)]
    async with prompting(agent, first, "@@text 20 50@@") as prompt:
        await saw_text(agent, first, "w1 ")
        async with fails(-32053) as error:
            await agent.prompt(second, "@@text 1@@")
        assert error().data["retrySafe"] is True
        assert (await prompt)["stopReason"] == "end_turn"
    await agent.prompt(second, "@@text 1@@")
    assert agent.transcript(first).text() == words(20)
    assert agent.transcript(second).text() == words(1)


async def test_one_session_too_many_is_refused_and_a_prompt_too_long(
    stage: Stage, file: Path
) -> None:
    agent = await limited(stage, file, sessions_per_connection=1, prompt_chars=20)
    session = await agent.new_session(stage.project())
    async with fails(-32053):
        await agent.new_session(stage.project())
    async with fails(-32053) as error:
        await agent.prompt(session, "@@text 1@@" + "x" * 20)
    assert error().data["code"] == "too_large"
    await agent.prompt(session, "@@text 1@@")
    assert agent.transcript(session).text() == words(1)
    front = await stage.front_end()
    assert len(await front.rows(session, "user")) == 1


async def test_an_idle_session_comes_back_with_its_conversation(stage: Stage, file: Path) -> None:
    write(file, {"idle_seconds": 0.2})
    # It is no warning that a session is put aside.
    argv = [*agent_argv(stage.backend.url), "--config", str(file), "--log-level", "info"]
    async with checked_agent(argv, agent_env(stage.backend.password)) as agent:
        session = await agent.new_session(stage.project())
        await agent.prompt(session, "@@text 2@@")
        await until_log(agent, "INFO adapter.engine.counters: the limit idle_seconds")
        result = await agent.prompt(session, "@@text 3@@")
        assert result["stopReason"] == "end_turn"
        assert agent.transcript(session).text() == words(2) + words(3)


async def until_log(agent: CheckedClient, words: str) -> None:
    async def there() -> bool:
        return words.encode() in agent.stderr

    await until(f"{words} in the log", there)


async def test_text_over_the_limit_is_left_out_and_the_turn_ends(stage: Stage, file: Path) -> None:
    agent = await limited(stage, file, turn_output_bytes=30)
    session = await agent.new_session(stage.project())
    result = await agent.prompt(session, f"@@text 5 && {shell('echo long enough')} || text 50@@")
    assert result["stopReason"] == "end_turn"
    shown = agent.transcript(session)
    assert (words(5) + words(50)).startswith(shown.text())
    assert len(shown.text()) <= 30
    assert told(agent, session) == ["turn_output_bytes"]
    assert audit(result)["omittedChars"] > len(words(50)) - 30
    assert statuses(shown) == ["completed"]
    # The next turn has a budget of its own.
    await agent.prompt(session, "@@text 4@@")
    assert shown.text().endswith(words(4))
    await saw_log(agent, "turn_output_bytes")


async def test_chunks_and_results_are_cut_as_the_operator_says(stage: Stage, file: Path) -> None:
    agent = await limited(stage, file, text_chunk_chars=3, tool_output_bytes=10)
    session = await agent.new_session(stage.project())
    await agent.prompt(session, f"@@{shell('echo 0123456789abcdef')} || text 8@@")
    shown = agent.transcript(session)
    assert shown.text() == words(8)
    assert max(map(len, chunks(agent, session))) <= 3
    (tool,) = shown.tools.values()
    assert tool["rawOutput"]["output"].startswith("0123456789… [")
    await saw_log(agent, "tool_output_bytes")


def chunks(agent: CheckedClient, session: str) -> list[str]:
    found: list[dict[str, Any]] = [
        line.message["params"]["update"]
        for line in agent.updates
        if line.message.get("method") == "session/update"
        and line.message["params"]["sessionId"] == session
    ]
    return [one["content"]["text"] for one in found if one["sessionUpdate"] == TEXT]


async def test_calls_that_run_at_once_over_the_limit_are_not_shown(
    stage: Stage, file: Path
) -> None:
    agent = await limited(stage, file, open_tools=1)
    session = await agent.new_session(stage.project())
    result = await agent.prompt(
        session, f"@@{shell('sleep 0.3')} && {shell('sleep 0.4')} || {shell('echo x')} || text 2@@"
    )
    assert result["stopReason"] == "end_turn"
    shown = agent.transcript(session)
    assert statuses(shown) == ["completed", "completed"]
    assert told(agent, session) == ["open_tools"]
    assert shown.text() == words(2)


async def test_a_long_turn_that_is_forgotten_in_part_survives_a_gap(
    stage: Stage, file: Path
) -> None:
    """Its limit is so low that only the last steps are remembered when the feed is lost."""
    proxy = await stage.proxy()
    agent = await limited(stage, file, url=proxy.url, turn_context_bytes=2048)
    session = await agent.new_session(stage.project())
    steps = " || ".join(f"text {n} && {shell('echo hi')}" for n in range(1, 9))
    async with prompting(agent, session, f"@@{steps} || text 30 40 && wait 50@@") as prompt:
        await saw_text(agent, session, words(9))
        proxy.cut_feed()
        result = await prompt
    assert (result["stopReason"], audit(result)["gaps"]) == ("end_turn", 1)
    shown = agent.transcript(session)
    assert shown.text() == "".join(words(n) for n in range(1, 9)) + words(30)
    assert statuses(shown) == ["completed"] * 8
    assert notices(shown) == []


async def taken(call: Callable[[], Awaitable[Any]]) -> Any:
    """The answer of a request that is refused for a moment at most: an opening and a turn have
    a little to do behind their answers."""

    async def answer() -> list[Any] | None:
        try:
            return [await call()]
        except AcpClientError as error:
            assert error.code == -32053
            return None

    return (await until("it is taken", answer))[0]


async def test_a_full_engine_makes_room_by_what_is_idle_and_refuses_beside_a_turn(
    stage: Stage, file: Path
) -> None:
    agent = await limited(stage, file, sessions=1)
    project = stage.project()
    first = await agent.new_session(project)
    second = await taken(lambda: agent.new_session(project))
    async with prompting(agent, second, "@@text 20 50@@") as prompt:
        await saw_text(agent, second, "w1 ")
        for refused in (agent.new_session(project), agent.prompt(first, "@@text 1@@")):
            async with fails(-32053):
                await refused
        assert (await prompt)["stopReason"] == "end_turn"
    await taken(lambda: agent.prompt(first, "@@text 2@@"))
    assert (agent.transcript(first).text(), agent.transcript(second).text()) == (
        words(2),
        words(20),
    )
    front = await stage.front_end()
    assert len(await front.get("session", directory=str(project))) == 2


async def test_prompts_of_all_clients_have_a_limit_of_their_own(stage: Stage, file: Path) -> None:
    agent = await limited(stage, file, prompts=1)
    first, second = [await agent.new_session(stage.project()) for _ in range(2)]
    async with prompting(agent, first, "@@text 20 50@@") as prompt:
        await saw_text(agent, first, "w1 ")
        async with fails(-32053) as error:
            await agent.prompt(second, "@@text 1@@")
        assert error().data["retrySafe"] is True
        await prompt
    await agent.prompt(second, "@@text 1@@")
    await saw_log(agent, "the limit prompts was hit")


async def test_attachments_over_the_limit_are_refused_and_nothing_is_sent(
    stage: Stage, file: Path
) -> None:
    agent = await limited(stage, file, attachment_bytes=80)
    session = await agent.new_session(stage.project())
    picture = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
    text = {"type": "text", "text": "@@text 1@@"}
    async with fails(-32053) as error:
        await agent.prompt(session, [text, picture, picture])
    assert error().data["code"] == "too_large"
    await agent.prompt(session, [text, picture])
    (row,) = await (await stage.front_end()).rows(session, "user")
    assert len(row["files"]) == 1


@pytest.mark.parametrize("method", ["new", "resume", "load"])
async def test_an_opening_that_takes_too_long_fails_and_works_later(
    stage: Stage, file: Path, method: str
) -> None:
    proxy = await stage.proxy()
    project = stage.project()
    session = await (await stage.agent()).new_session(project)
    agent = await limited(stage, file, url=proxy.url, setup_seconds=1)
    calls: dict[str, Callable[[], Awaitable[Any]]] = {
        "new": lambda: agent.new_session(project),
        "resume": lambda: agent.resume(session, project),
        "load": lambda: agent.load(session, project),
    }
    slow = proxy.add(Rule("/api/session", delay=30.0, times=None))
    async with fails(-32603) as error:
        await calls[method]()
    assert "within 1 s" in error().message
    proxy.rules.remove(slow)
    opened = await calls[method]()
    await agent.prompt(opened if method == "new" else session, "@@text 1@@")
    await saw_log(agent, "the limit setup_seconds was hit")


def with_patches(project: Path) -> Path:
    """The project with a model that is given the tool `patch`, which touches several files."""
    path = project / "opencode.json"
    given = json.loads(path.read_text("utf-8"))
    models = given["provider"]["fake"]["models"]
    models["gpt-5"] = models["fake-1"]
    path.write_text(json.dumps(given | {"model": "fake/gpt-5"}), "utf-8")
    return project


async def test_places_over_the_limit_are_left_out(stage: Stage, file: Path) -> None:
    agent = await limited(stage, file, tool_locations=2)
    project = with_patches(stage.project())
    session = await agent.new_session(project)
    added = "".join(f"*** Add File: {name}\n+x\n" for name in "abc")
    given = json.dumps({"patchText": f"*** Begin Patch\n{added}*** End Patch"})
    await agent.prompt(session, f"@@tool patch {given} || text 1@@")
    (tool,) = agent.transcript(session).tools.values()
    assert tool["status"] == "completed"
    assert [place["path"] for place in tool["locations"]] == [str(project / n) for n in "ab"]
    assert all((project / name).exists() for name in "abc")
    await saw_log(agent, "the limit tool_locations was hit")


async def test_titles_and_sentences_are_cut(stage: Stage, file: Path) -> None:
    agent = await limited(stage, file, line_chars=20)
    session = await agent.new_session(stage.project())
    command = "echo one two three four five"
    async with fails(-32056) as error:
        await agent.prompt(session, f"@@{shell(command)} || error 400@@")
    assert error().message.startswith("The turn failed afte… [")
    (tool,) = agent.transcript(session).tools.values()
    assert tool["rawInput"]["command"] == command
    assert len(tool["title"]) == 20
    assert command.startswith(tool["title"].rstrip("…"))


async def test_asks_that_are_open_at_once_over_the_limit_are_declined(
    stage: Stage, file: Path
) -> None:
    agent = await limited(stage, file, open_asks=1)
    session = await agent.new_session(stage.project(ASKS))
    calls = " && ".join(shell(f"echo {word}") for word in ("one", "two"))
    result = await agent.prompt(session, f"@@{calls} || text 2@@")
    shown = agent.transcript(session)
    assert (result["stopReason"], len(shown.asks)) == ("end_turn", 1)
    assert sorted(statuses(shown)) == ["completed", "failed"]
    assert shown.text() == words(2)
    await saw_log(agent, "the limit open_asks was hit")


@pytest.mark.parametrize("limit", ["turn_asks", "open_asks"])
async def test_an_ask_over_the_limit_takes_no_sibling_along(
    stage: Stage, file: Path, limit: str
) -> None:
    """The server rejects the siblings of a rejected ask, so the refusal waits for them."""
    agent = await limited(stage, file, None, **{limit: 1})

    async def over() -> bool:
        return f"the limit {limit} was hit".encode() in agent.stderr

    async def policy(_: Json) -> str:
        await until("the second ask is over the limit", over)
        return "allow_once"

    agent.policy = policy
    session = await agent.new_session(stage.project(ASKS))
    calls = " && ".join(shell(f"echo {word}") for word in ("one", "two"))
    result = await agent.prompt(session, f"@@{calls} || text 2@@")
    shown = agent.transcript(session)
    assert (result["stopReason"], shown.text()) == ("end_turn", words(2))
    assert sorted(statuses(shown)) == ["completed", "failed"]
    assert len(shown.asks) == 1


async def test_asks_of_a_turn_over_the_limit_are_declined_and_the_next_turn_asks_again(
    stage: Stage, file: Path
) -> None:
    agent = await limited(stage, file, turn_asks=1)
    session = await agent.new_session(stage.project(ASKS))
    await agent.prompt(session, f"@@{shell('echo 1')} || {shell('echo 2')} || text 2@@")
    shown = agent.transcript(session)
    assert (statuses(shown), shown.text()) == (["completed", "failed"], words(2))
    await agent.prompt(session, f"@@{shell('echo 3')} || text 1@@")
    assert (statuses(shown)[2:], len(shown.asks)) == (["completed"], 2)
    await saw_log(agent, "the limit turn_asks was hit")


@pytest.mark.parametrize("named", ["flag", "environment"])
async def test_a_file_that_raises_a_limit_ends_the_start(file: Path, named: str) -> None:
    write(file, {"prompts": 33})
    argv, env = agent_argv("http://127.0.0.1:1"), agent_env("")
    if named == "flag":
        argv += ["--config", str(file)]
    else:
        env["OPENCODE_ACP_CONFIG"] = str(file)
    async with raw_agent(argv, env) as agent:
        await agent.ended()
        code, out, err = await agent.finish()
    assert (code, out) == (2, b"")
    assert len(err.decode().strip().splitlines()) == 1, err.decode()
    assert b"prompts" in err
    assert str(file).encode() in err
