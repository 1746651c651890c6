"""session/delete: what goes, what is refused, and what becomes of a turn."""

from __future__ import annotations

import asyncio

import pytest

from stubs.proxy import Rule
from stubs.waiting import until
from tests.scenarios.stage import Json, Stage, fails, prompting, saw_text
from tests.scenarios.test_children import child
from tests.support.checked import CheckedClient

CASCADE = {"_meta": {"opencode-acp": {"cascade": True}}}


async def delete(agent: CheckedClient, session: str, **params: object) -> Json:
    return await agent.request("session/delete", {"sessionId": session, **params})


async def there(stage: Stage, session: str) -> bool:
    """Whether the server has the session."""
    front = await stage.front_end()
    return (await front.http.get(f"/api/session/{session}")).status_code == 200


async def test_a_deleted_session_is_gone_for_everybody(stage: Stage) -> None:
    agent = await stage.agent()
    project = stage.project()
    session = await agent.new_session(project)
    await agent.prompt(session, "@@text 1@@")
    assert await delete(agent, session) == {}
    assert not await there(stage, session)
    assert (await agent.request("session/list", {"cwd": str(project)}))["sessions"] == []
    async with fails(-32002):
        await agent.resume(session, project)
    # It is not open here any more either.
    async with fails(-32603) as error:
        await agent.prompt(session, "@@text 1@@")
    assert error().data["code"] == "not_open"


@pytest.mark.parametrize("session", ["ses_000000000000nobodyhasthis", "nonsense", "", "../../x"])
async def test_what_is_not_there_is_deleted(stage: Stage, session: str) -> None:
    agent = await stage.agent()
    for _ in range(2):
        assert await delete(agent, session) == {}


async def test_a_session_of_another_client_can_be_deleted(stage: Stage) -> None:
    first, second = await stage.agent(), await stage.agent()
    session = await first.new_session(stage.project())
    assert await delete(second, session) == {}
    async with fails(-32002):
        await first.prompt(session, "@@text 1@@")


async def test_a_turn_of_the_session_ends_first(stage: Stage) -> None:
    agent = await stage.agent()
    session = await agent.new_session(stage.project())
    async with prompting(agent, session, "@@text 300 30@@") as prompt:
        await saw_text(agent, session, "w1 ")
        assert await delete(agent, session) == {}
        assert (await prompt)["stopReason"] == "cancelled"
    assert not await there(stage, session)


async def test_a_prompt_that_waits_behind_another_client_ends_too(stage: Stage) -> None:
    first, second, front = await stage.agent(), await stage.agent(), await stage.front_end()
    project = stage.project()
    session = await first.new_session(project)
    await second.resume(session, project)
    async with prompting(first, session, "@@text 300 30@@") as running:
        await saw_text(first, session, "w1 ")
        async with prompting(second, session, "@@text 6@@") as waiting:
            await front.until_inbox(session, 1)
            assert await delete(second, session) == {}
            assert (await waiting)["stopReason"] == "cancelled"
            async with fails(-32055):
                await running


@pytest.mark.parametrize("cascade", [False, 1, "true", None])
async def test_children_are_not_deleted_unless_that_is_said(stage: Stage, cascade: object) -> None:
    agent, front = await stage.agent(), await stage.front_end()
    session = await agent.new_session(stage.project())
    await agent.prompt(session, f"@@{child('text 3')} || text 2@@")
    (kid,) = await front.get("session", parentID=session)
    async with fails(-32602) as error:
        await delete(agent, session, _meta={"opencode-acp": {"cascade": cascade}})
    assert error().data == {"code": "has_children"}
    assert await there(stage, session)
    assert await there(stage, kid["id"])
    # Nothing happened to it: it is still open here.
    assert (await agent.prompt(session, "@@text 1@@"))["stopReason"] == "end_turn"
    # A child by itself is no cascade.
    assert await delete(agent, kid["id"]) == {}
    assert await delete(agent, session) == {}


async def test_a_cascade_takes_the_children_along(stage: Stage) -> None:
    agent, front = await stage.agent(), await stage.front_end()
    session = await agent.new_session(stage.project())
    async with prompting(agent, session, f"@@{child('text 300 30')} || text 2@@") as prompt:
        await agent.wait_for(lambda: bool(agent.transcript(session).tools))

        async def born() -> bool:
            return bool(await front.get("session", parentID=session))

        await until("a child", born)
        (kid,) = await front.get("session", parentID=session)
        async with fails(-32602):
            await delete(agent, session)
        assert not prompt.done()
        assert await delete(agent, session, **CASCADE) == {}
        assert (await prompt)["stopReason"] == "cancelled"
    assert not await there(stage, session)
    assert not await there(stage, kid["id"])


async def test_a_server_that_is_away_is_no_success(stage: Stage) -> None:
    proxy = await stage.proxy()
    agent = await stage.agent(url=proxy.url)
    session = await agent.new_session(stage.project())
    await proxy.refuse()
    async with fails(-32603):
        await delete(agent, session)
    assert await there(stage, session)
    # Nothing happened to it: it is still open here.
    await proxy.accept()
    assert (await agent.prompt(session, "@@text 1@@"))["stopReason"] == "end_turn"


async def test_a_prompt_during_a_deletion_is_refused_and_not_forgotten(stage: Stage) -> None:
    """Also if the server tells of the deletion late, or never."""
    proxy = await stage.proxy()
    agent = await stage.agent(url=proxy.url)
    session = await agent.new_session(stage.project())
    slow = proxy.add(Rule(r"/session/[^/]+$", "DELETE", delay=1.0))
    deletion = asyncio.create_task(delete(agent, session))

    async def asked() -> bool:
        return slow.used > 0

    await until("the deletion is on its way", asked)
    proxy.hold()
    async with fails(-32603) as error:
        await agent.prompt(session, "@@text 1@@")
    assert error().data["code"] == "not_open"
    assert error().data["retrySafe"] is True
    assert await deletion == {}
    proxy.release()
    assert not await there(stage, session)
