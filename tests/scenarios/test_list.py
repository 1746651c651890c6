"""session/list: which sessions, in what order, page by page."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from contract.limits import CURSOR_CHARS
from tests.scenarios.stage import FrontEnd, Json, Stage, fails, prompting, saw_text
from tests.scenarios.test_children import child
from tests.support.checked import CheckedClient

PAGE = 100


async def listed(agent: CheckedClient, **params: object) -> Json:
    return await agent.request("session/list", params)


def ids(result: Json) -> list[str]:
    return [one["sessionId"] for one in result["sessions"]]


def children(wanted: bool) -> Json:
    return {"_meta": {"opencode-acp": {"includeChildren": wanted}}}


async def make(front: FrontEnd, directory: Path, count: int) -> None:
    """Sessions of another front end."""
    body = {"location": {"directory": str(directory)}}
    for _ in range(count):
        await front.post("session", body)


async def test_a_session_is_listed_as_it_is(stage: Stage) -> None:
    agent = await stage.agent()
    project = stage.project()
    session = await agent.new_session(project)
    (fresh,) = (await listed(agent, cwd=str(project)))["sessions"]
    # No title is made up for a session that has none.
    assert set(fresh) == {"sessionId", "cwd", "updatedAt", "_meta"}
    assert (fresh["sessionId"], fresh["cwd"]) == (session, str(project))
    assert fresh["_meta"] == {"opencode-acp": {"running": False}}
    await agent.prompt(session, "@@text 1@@")
    (named,) = (await listed(agent, cwd=str(project)))["sessions"]
    assert named["title"]
    assert named["updatedAt"].endswith("Z")
    assert named["updatedAt"] > fresh["updatedAt"]


async def test_what_runs_is_marked(stage: Stage) -> None:
    agent = await stage.agent()
    project = stage.project()
    busy, _ = await agent.new_session(project), await agent.new_session(project)
    async with prompting(agent, busy, "@@text 200 30@@") as prompt:
        await saw_text(agent, busy, "w1 ")
        result = await listed(agent, cwd=str(project))
        await agent.cancel(busy)
        await prompt
    running = [
        one["sessionId"] for one in result["sessions"] if one["_meta"]["opencode-acp"]["running"]
    ]
    assert running == [busy]
    assert len(result["sessions"]) == 2


async def test_the_newest_change_comes_first_and_other_directories_do_not(stage: Stage) -> None:
    agent = await stage.agent()
    project = stage.project()
    one, two = await agent.new_session(project), await agent.new_session(project)
    other = await agent.new_session(stage.project())
    assert ids(await listed(agent, cwd=str(project))) == [two, one]
    await agent.prompt(one, "@@text 1@@")
    assert ids(await listed(agent, cwd=f"{project}/./x/..")) == [one, two]
    everything = ids(await listed(agent))
    assert {one, two, other} <= set(everything[:PAGE])


async def test_children_are_listed_when_they_are_asked_for(stage: Stage) -> None:
    agent, front = await stage.agent(), await stage.front_end()
    project = stage.project()
    session = await agent.new_session(project)
    await agent.prompt(session, f"@@{child('text 3')} || text 2@@")
    (kid,) = await front.get("session", parentID=session)
    assert ids(await listed(agent, cwd=str(project))) == [session]
    assert ids(await listed(agent, cwd=str(project), **children(False))) == [session]
    both = (await listed(agent, cwd=str(project), **children(True)))["sessions"]
    lineage = {one["sessionId"]: one["_meta"]["opencode-acp"] for one in both}
    assert lineage == {
        session: {"running": False},
        kid["id"]: {"running": False, "parentSessionId": session, "spawnedBy": session},
    }


async def test_a_link_lists_the_sessions_of_both_names(stage: Stage, tmp_path: Path) -> None:
    agent = await stage.agent()
    project = stage.project()
    alias = tmp_path / "alias"
    os.symlink(project, alias)
    one = await agent.new_session(project)
    two = await agent.new_session(alias)
    three = await agent.new_session(project)
    result = await listed(agent, cwd=str(alias))
    assert ids(result) == [three, two, one]
    # Each carries the path that its client gave.
    assert [item["cwd"] for item in result["sessions"]] == [str(project), str(alias), str(project)]


@pytest.mark.parametrize("count", [PAGE - 1, PAGE, PAGE + 1])
async def test_a_cursor_comes_only_where_a_session_follows(stage: Stage, count: int) -> None:
    agent, front = await stage.agent(), await stage.front_end()
    project = stage.project()
    await make(front, project, count)
    first = await listed(agent, cwd=str(project))
    assert len(first["sessions"]) == min(count, PAGE)
    assert ("nextCursor" in first) == (count > PAGE)
    if count > PAGE:
        second = await listed(agent, cwd=str(project), cursor=first["nextCursor"])
        assert len(second["sessions"]) == count - PAGE
        assert "nextCursor" not in second
        assert set(ids(first)).isdisjoint(ids(second))


async def test_a_link_is_walked_to_its_end(stage: Stage, tmp_path: Path) -> None:
    agent, front = await stage.agent(), await stage.front_end()
    project = stage.project()
    alias = tmp_path / "alias"
    os.symlink(project, alias)
    for directory in (project, alias, project):
        await make(front, directory, 60)
    pages = [await listed(agent, cwd=str(alias))]
    while "nextCursor" in pages[-1]:
        pages.append(await listed(agent, cwd=str(alias), cursor=pages[-1]["nextCursor"]))
    walked = [session for page in pages for session in ids(page)]
    changes = [one["updatedAt"] for page in pages for one in page["sessions"]]
    assert len(walked) == len(set(walked)) == 180
    assert changes == sorted(changes, reverse=True)
    assert all(page["sessions"] for page in pages)


async def test_a_cursor_of_nobody_is_a_bad_parameter(stage: Stage) -> None:
    agent, front = await stage.agent(), await stage.front_end()
    project = stage.project()
    await make(front, project, PAGE + 1)
    cursor = (await listed(agent, cwd=str(project)))["nextCursor"]
    bad: list[Json] = [
        {"cursor": ""},
        {"cursor": "garbage"},
        {"cursor": cursor[:-5]},
        {"cursor": "A" * (CURSOR_CHARS + 1)},
        {"cursor": 7},
        # Those of another list.
        {"cursor": cursor, "cwd": str(stage.project())},
        {"cursor": cursor, **children(True)},
        {"cursor": cursor, "cwd": None},
    ]
    for params in bad:
        async with fails(-32602):
            await listed(agent, **{"cwd": str(project), **params})
    assert len(ids(await listed(agent, cwd=str(project), cursor=cursor))) == 1


@pytest.mark.parametrize("cwd", ["", "relative", "~", "/a\0b", 7])
async def test_a_directory_that_is_none_is_a_bad_parameter(stage: Stage, cwd: object) -> None:
    agent = await stage.agent()
    async with fails(-32602):
        await listed(agent, cwd=cwd)


async def test_a_directory_that_is_gone_can_be_listed(stage: Stage) -> None:
    agent = await stage.agent()
    project = stage.project()
    session = await agent.new_session(project)
    project.rename(project.with_name(f"{project.name}-moved"))
    assert ids(await listed(agent, cwd=str(project))) == [session]
    assert await listed(agent, cwd=f"{project}/never") == {"sessions": []}


async def test_a_list_opens_nothing_and_wakes_nothing(stage: Stage) -> None:
    agent, front = await stage.agent(), await stage.front_end()
    project = stage.project()
    await make(front, project, 1)
    (session,) = ids(await listed(agent, cwd=str(project)))
    async with fails(-32603) as error:
        await agent.prompt(session, "@@text 1@@")
    assert error().data["code"] == "not_open"
    await asyncio.gather(*(listed(agent, cwd=str(project)) for _ in range(8)))
    assert await front.get(f"session/{session}/message") == []
