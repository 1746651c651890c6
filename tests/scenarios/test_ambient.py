"""Work that a client did not prompt, shown to the one that asked for it and to nobody else."""

from __future__ import annotations

import json
from pathlib import Path

from tests.scenarios.stage import (
    TEXT,
    FrontEnd,
    Json,
    Stage,
    prompting,
    saw_text,
    saw_tool,
    shell,
    statuses,
    words,
)
from tests.support.checked import CheckedClient

AMBIENT = {"_meta": {"opencode-acp": {"ambient": True}}}
USER = "user_message_chunk"
THEIRS = "msg_theirs"


async def watched(stage: Stage, project: Path) -> tuple[CheckedClient, FrontEnd, str]:
    """A client that watches a new session, and another front end of it."""
    agent = await stage.agent()
    session = await agent.new_session(project, **AMBIENT)
    return agent, await stage.front_end(), session


async def ask(front: FrontEnd, session: str, text: str, item: str = "") -> None:
    """A prompt of another front end."""
    body = {"text": text} | ({"id": item} if item else {})
    await front.post(f"session/{session}/prompt", body)


def runs(agent: CheckedClient, session: str) -> list[tuple[str, str | None]]:
    """(kind, run) of every text and tool update, neighbours joined; None for its own turn's."""
    found: list[tuple[str, str | None]] = []
    for line in agent.updates:
        params: Json = line.message.get("params") or {}
        update = params.get("update") or {}
        kind = update.get("sessionUpdate")
        if params.get("sessionId") != session or kind not in (TEXT, USER, "tool_call"):
            continue
        meta = (update.get("_meta") or {}).get("opencode-acp") or {}
        assert ("run" in meta) == (meta.get("origin") == "ambient")
        if not found or found[-1] != (kind, meta.get("run")):
            found.append((kind, meta.get("run")))
    return found


async def test_a_prompt_of_another_front_end_is_shown_as_it_runs(stage: Stage) -> None:
    agent, front, session = await watched(stage, stage.project())
    script = f"Look @@{shell('echo hi')} || text 3@@"
    await ask(front, session, script, f"{THEIRS}_{session}")
    await saw_text(agent, session, words(3))
    run = f"{THEIRS}_{session}"
    assert runs(agent, session)[0] == (USER, run)
    assert {named for _, named in runs(agent, session)} == {run}
    assert agent.transcript(session).text(USER) == script
    assert statuses(agent.transcript(session)) == ["completed"]


async def test_nobody_else_is_shown_it(stage: Stage) -> None:
    project = stage.project()
    agent, front = await stage.agent(), await stage.front_end()
    session = await agent.new_session(project)
    await ask(front, session, "@@text 3@@")
    await front.until_answered(session, 1)
    await agent.prompt(session, "@@text 2@@")
    assert list(agent.transcript(session).texts.values()) == [words(2)]


async def test_a_turn_of_another_connection_is_shown_and_an_own_one_comes_once(
    stage: Stage,
) -> None:
    project = stage.project()
    agent, _, session = await watched(stage, project)
    other = await stage.agent()
    await other.resume(session, project)
    await other.prompt(session, "@@think 2 && text 5@@")
    await saw_text(agent, session, words(5))
    await agent.prompt(session, "@@text 7@@")
    texts = agent.transcript(session).texts.values()
    assert [text for text in texts if text.startswith("w")] == [words(5), words(7)]
    assert [named is None for kind, named in runs(agent, session) if kind == TEXT] == [False, True]
    # Who did not ask for it was shown its own turn alone.
    assert other.transcript(session).text() == words(5)


async def test_an_answer_that_nobody_prompted_is_a_run_of_its_own(stage: Stage) -> None:
    agent, front, session = await watched(stage, stage.project())
    given = {"agent": "general", "description": "a child", "prompt": "text", "background": True}
    await agent.prompt(session, f"@@tool subagent {json.dumps(given)} || text 1@@")
    (told,) = await front.until_rows(session, "synthetic", 1)
    await front.until_idle(session)
    await agent.wait_for(lambda: (TEXT, told["id"]) in runs(agent, session))
    assert agent.transcript(session).text(USER) == ""


async def test_a_cut_feed_repeats_and_loses_nothing(stage: Stage) -> None:
    proxy, front = await stage.proxy(), await stage.front_end()
    agent = await stage.agent(url=proxy.url)
    session = await agent.new_session(stage.project(), **AMBIENT)
    await ask(front, session, f"@@text 60 25 || {shell('true')} || text 2@@")
    await saw_text(agent, session, "w3 ")
    proxy.cut_feed()
    await saw_text(agent, session, words(60))
    await front.until_answered(session, 1)
    texts = list(agent.transcript(session).texts.values())
    assert next(text for text in texts if text.startswith("w")) == words(60)


async def test_a_load_in_mid_run_shows_the_rest_once(stage: Stage) -> None:
    project = stage.project()
    agent, front = await stage.agent(), await stage.front_end()
    session = await agent.new_session(project)
    script = f"Look @@text 4 && {shell('sleep 1')} || text 40 25@@"
    await ask(front, session, script)
    await front.until_rows(session, "assistant", 1)
    await agent.load(session, project, **AMBIENT)
    await saw_text(agent, session, words(40))
    transcript = agent.transcript(session)
    texts = [text for (_, kind), text in transcript.texts.items() if kind == TEXT]
    assert (transcript.text(USER), texts) == (script, [words(4), words(40)])
    assert statuses(transcript) == ["completed"]


async def test_it_ends_with_a_close_and_with_an_opening_without_it(stage: Stage) -> None:
    project = stage.project()
    agent, front, session = await watched(stage, project)
    await agent.resume(session, project)
    await ask(front, session, "@@text 3@@")
    await front.until_answered(session, 1)
    await agent.resume(session, project, **AMBIENT)
    await agent.close_session(session)
    await ask(front, session, "@@text 4@@")
    await front.until_answered(session, 2)
    await agent.resume(session, project, **AMBIENT)
    await ask(front, session, "@@text 5@@")
    await saw_text(agent, session, words(5))
    assert agent.transcript(session).text() == words(5)


async def test_asks_of_such_work_are_left_to_its_own_front_end(stage: Stage) -> None:
    agent, front, session = await watched(stage, stage.project({"shell": "ask"}))
    await ask(front, session, f"@@{shell('echo hi')} || text 2@@")
    asked = await front.until_ask(session)
    await saw_tool(agent, session, "in_progress")
    await front.post(f"session/{session}/permission/{asked['id']}/reply", {"decision": "once"})
    await saw_text(agent, session, words(2))
    assert agent.transcript(session).asks == []
    async with prompting(agent, session, "@@text 3@@") as prompt:
        assert (await prompt)["stopReason"] == "end_turn"
