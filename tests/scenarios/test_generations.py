"""One opening of a session after another: what belongs to an older one changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from stubs.proxy import Proxy, Rule
from stubs.waiting import until
from tests.scenarios.stage import Json, Stage, fails, prompting, saw_text, words
from tests.support.checked import CheckedClient

ROWS: Final = "/session/[^/]+/message"


def shown(agent: CheckedClient, session: str) -> list[str]:
    """The messages that were shown of the conversation, by kind."""
    updates: list[Json] = [
        line.message["params"]["update"]
        for line in agent.updates
        if line.message.get("method") == "session/update"
        and line.message["params"]["sessionId"] == session
    ]
    kinds = [str(one["sessionUpdate"]) for one in updates]
    return [kind for kind in kinds if kind.endswith("_message_chunk")]


@asynccontextmanager
async def reading(
    agent: CheckedClient, proxy: Proxy, session: str, project: object
) -> AsyncIterator[asyncio.Task[Json]]:
    """A load whose reading of the rows takes a second."""
    slow = proxy.add(Rule(ROWS, "GET", delay=1.0))
    loading = asyncio.create_task(agent.load(session, str(project)))

    async def asked() -> bool:
        return slow.used == 1

    await until("the rows are read", asked)
    try:
        yield loading
    finally:
        loading.cancel()
        await asyncio.wait([loading])


async def test_a_close_ends_a_load_and_nothing_follows(stage: Stage) -> None:
    """S0-21."""
    proxy = await stage.proxy()
    agent = await stage.agent(url=proxy.url)
    project = stage.project()
    session = await agent.new_session(project)
    await agent.prompt(session, "@@text 2@@")
    before = shown(agent, session)
    async with reading(agent, proxy, session, project) as loading:
        await agent.close_session(session)
        async with fails(-32603) as error:
            await loading
        assert "closed or opened anew" in error().message
    async with fails(-32603) as error:
        await agent.prompt(session, "@@text 1@@")
    assert error().data["code"] == "not_open"
    assert shown(agent, session) == before
    await agent.resume(session, project)
    await agent.prompt(session, "@@text 1@@")
    assert agent.transcript(session).text() == words(2) + words(1)


async def test_a_later_load_ends_an_earlier_one_and_shows_everything_once(stage: Stage) -> None:
    """S0-07, S0-11."""
    proxy = await stage.proxy()
    agent = await stage.agent(url=proxy.url)
    project = stage.project()
    session = await agent.new_session(project)
    await agent.prompt(session, "one @@text 2@@")
    await agent.prompt(session, "two @@text 3@@")
    other = await stage.agent(url=proxy.url)
    async with reading(other, proxy, session, project) as earlier:
        await other.load(session, project)
        whole = shown(other, session)
        assert whole.count("user_message_chunk") == 2
        assert other.transcript(session).text() == words(2) + words(3)
        async with fails(-32603):
            await earlier
    assert shown(other, session) == whole
    await other.prompt(session, "@@text 4@@")
    assert other.transcript(session).text() == words(2) + words(3) + words(4)


async def test_a_turn_that_a_close_ended_says_nothing_in_the_next_opening(stage: Stage) -> None:
    """S0-11: a close stops one's own turn, and a resume is another opening."""
    agent = await stage.agent()
    project = stage.project()
    session = await agent.new_session(project)
    async with prompting(agent, session, "@@text 200 20@@") as prompt:
        await saw_text(agent, session, "w3 ")
        await agent.close_session(session)
        assert (await prompt)["stopReason"] == "cancelled"
    said = agent.transcript(session).text()
    assert words(200).startswith(said)
    await agent.resume(session, project)
    assert (await agent.prompt(session, "@@text 3@@"))["stopReason"] == "end_turn"
    assert agent.transcript(session).text() == said + words(3)


async def test_a_close_and_a_load_at_once_show_the_conversation_and_no_late_text(
    stage: Stage,
) -> None:
    """S0-21: the load shows what the turn said, and the turn adds nothing behind it."""
    agent = await stage.agent()
    project = stage.project()
    session = await agent.new_session(project)
    async with prompting(agent, session, "@@text 200 20@@") as prompt:
        await saw_text(agent, session, "w3 ")
        closing = asyncio.create_task(agent.close_session(session))
        loading = asyncio.create_task(agent.load(session, project))
        assert (await prompt)["stopReason"] == "cancelled"
        await closing
        await loading
    behind = len(shown(agent, session))
    said = agent.transcript(session).text()
    await agent.prompt(session, "@@text 3@@")
    assert agent.transcript(session).text() == said + words(3)
    assert "agent_message_chunk" in shown(agent, session)[behind:]


async def test_a_resume_in_mid_turn_keeps_the_turn(stage: Stage) -> None:
    """S0-11: the turn is the connection's, whatever it opens anew."""
    agent = await stage.agent()
    project = stage.project()
    session = await agent.new_session(project)
    async with prompting(agent, session, "@@text 40 20@@") as prompt:
        await saw_text(agent, session, "w3 ")
        await agent.resume(session, project)
        async with fails(-32051):
            await agent.prompt(session, "@@text 1@@")
        assert (await prompt)["stopReason"] == "end_turn"
    assert agent.transcript(session).text() == words(40)
