"""session/list, delete and fork on one connection: what is asked of the server, and its faults."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from adapter.core.values import Oddity
from adapter.limits import Limits
from contract.errors import Code
from stubs.server import Rule
from tests.unit.engine.front import AnswerError, Front, Json, Stage, stage


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Stage]:
    async with stage(tmp_path, list_page=2) as scene:
        yield scene


@pytest.fixture
async def front(scene: Stage) -> Front:
    return await scene.front()


async def refused(front: Front, method: str, **params: Any) -> AnswerError:
    with pytest.raises(AnswerError) as caught:
        await front.call(method, **params)
    return caught.value


def lists(scene: Stage) -> int:
    """How often the server was asked for a page."""
    return len(scene.asked("GET", "/api/session"))


async def pages(front: Front, **params: Any) -> list[Json]:
    found = [await front.call("session/list", **params)]
    while "nextCursor" in found[-1]:
        params["cursor"] = found[-1]["nextCursor"]
        found.append(await front.call("session/list", **params))
    return found


@pytest.mark.parametrize(
    ("count", "sizes", "asked"), [(0, [0], 1), (1, [1], 1), (2, [2], 2), (3, [2, 1], 3)]
)
async def test_a_short_page_costs_one_request_and_a_full_one_two(
    scene: Stage, front: Front, count: int, sizes: list[int], asked: int
) -> None:
    for _ in range(count):
        await front.new(scene.root)
    found = await pages(front, cwd=str(scene.root))
    assert [len(page["sessions"]) for page in found] == sizes
    assert lists(scene) == asked


async def test_a_list_boots_no_directory(scene: Stage, front: Front, tmp_path: Path) -> None:
    """What the server holds of a directory that was used once stays until it ends."""
    for name in ("one", "two"):
        (folder := tmp_path / name).mkdir()
        await front.new(folder)
    other = await scene.front()
    before = len(scene.stub.log)
    listed = await other.call("session/list")
    assert {Path(one["cwd"]).name for one in listed["sessions"]} == {"one", "two"}
    paths = {seen.path for seen in list(scene.stub.log)[before:]}
    assert paths == {"/api/session", "/api/session/active"}


async def test_a_list_without_what_runs_is_a_list(scene: Stage, front: Front) -> None:
    session = await front.new(scene.root)
    scene.stub.faults.add(Rule("status", "/active$", times=100, status=400))
    (found,) = (await front.call("session/list"))["sessions"]
    assert found["sessionId"] == session
    assert "_meta" not in found


async def test_a_server_that_does_not_answer_is_no_empty_list(scene: Stage, front: Front) -> None:
    scene.stub.faults.add(Rule("status", "/api/session$", times=100, status=500))
    assert (await refused(front, "session/list")).code == Code.INTERNAL


async def test_a_cursor_that_the_server_does_not_know_is_a_bad_parameter(
    scene: Stage, front: Front
) -> None:
    for _ in range(3):
        await front.new(scene.root)
    text = (await front.call("session/list"))["nextCursor"]
    walk = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    walk["legs"][0]["cursor"] = "bm9uZQ"
    other = base64.urlsafe_b64encode(json.dumps(walk).encode()).decode().rstrip("=")
    assert (await refused(front, "session/list", cursor=other)).code == Code.INVALID_PARAMS
    # Without a cursor a refusal of the server is the server's.
    scene.stub.faults.add(Rule("status", "/api/session$", times=100, status=400))
    assert (await refused(front, "session/list")).code == Code.INTERNAL


async def test_a_list_that_cannot_be_continued_is_a_limit(scene: Stage, front: Front) -> None:
    """A path so long that its cursor is longer than a client may send back."""
    deep = scene.root.joinpath(*("x" * 200 for _ in range(16)))
    deep.mkdir(parents=True)
    for _ in range(3):
        await front.new(deep)
    error = await refused(front, "session/list", cwd=str(deep))
    assert error.code == Code.LIMIT
    # The others can be listed all the same.
    assert len((await front.call("session/list"))["sessions"]) == 2


async def test_what_no_client_could_open_is_left_out_and_counted(
    scene: Stage, front: Front
) -> None:
    session = await front.new(scene.root)
    scene.stub.host.store.sessions[session].directory = ""
    assert await front.call("session/list") == {"sessions": []}
    assert scene.engine.counters[Oddity.SESSIONS_NOT_LISTED] == 1


async def test_a_deletion_that_fails_leaves_the_session_open(scene: Stage, front: Front) -> None:
    session = await front.new(scene.root)
    scene.stub.faults.add(Rule("status", f"{session}$", method="DELETE", times=100, status=400))
    assert (await refused(front, "session/delete", sessionId=session)).code == Code.INTERNAL
    scene.stub.faults.clear()
    await front.answer(front.prompt(session, "@@text 1@@"))


async def test_a_deletion_without_an_answer_is_asked_again(scene: Stage, front: Front) -> None:
    session = await front.new(scene.root)
    scene.stub.faults.add(Rule("drop_after", f"{session}$", method="DELETE"))
    assert await front.call("session/delete", sessionId=session) == {}
    assert len(scene.asked("DELETE", session)) == 2


async def test_children_that_cannot_be_read_are_not_taken_for_none(
    scene: Stage, front: Front
) -> None:
    session = await front.new(scene.root)
    scene.stub.faults.add(Rule("status", "/api/session$", method="GET", times=100, status=400))
    assert (await refused(front, "session/delete", sessionId=session)).code == Code.INTERNAL
    assert scene.asked("DELETE", session) == []


async def test_a_fork_takes_a_place_of_its_own(tmp_path: Path) -> None:
    async with stage(tmp_path, limits=Limits(sessions_per_connection=1)) as scene:
        front = await scene.front()
        session = await front.new(tmp_path)
        await front.answer(front.prompt(session, "@@text 1@@"))
        error = await refused(front, "session/fork", sessionId=session, cwd=str(tmp_path))
        assert error.code == Code.LIMIT
        assert scene.asked("POST", "/fork") == []
        # A session that is not open here can be forked.
        await front.call("session/close", sessionId=session)
        await front.call("session/fork", sessionId=session, cwd=str(tmp_path))
