"""The directory of a session: one spelling of each, and the server says whether it has it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from contract.errors import Code
from stubs.server import Rule
from stubs.server import Settings as StubSettings
from tests.unit.engine.front import AnswerError, Front, Stage, stage, words

UNSEEN = "/home/alice/of the server ü/project"


async def refused(front: Front, method: str, cwd: object, session: str = "ses_x") -> AnswerError:
    with pytest.raises(AnswerError) as caught:
        await front.call(method, cwd=str(cwd), mcpServers=[], sessionId=session)
    return caught.value


def made_in(scene: Stage) -> list[str]:
    """The directory of each session that the server was asked to make."""
    return [body["location"]["directory"] for body in scene.asked("POST", "/api/session")]


@pytest.mark.parametrize(
    "spelling",
    ["{}", "{}/", "{}//", "{}/.", "/{}", "//{}", "{}/x/..", "{}/../project", "/../..{}", "/.{}/./"],
)
async def test_every_spelling_is_one_directory_at_the_server(tmp_path: Path, spelling: str) -> None:
    """The server boots each string as a directory of its own."""
    root = tmp_path / "project"
    root.mkdir()
    async with stage(root) as scene:
        front = await scene.front()
        session = await front.new(Path(root))
        cwd = spelling.format(root)
        await front.call("session/new", cwd=cwd, mcpServers=[])
        await front.call("session/resume", cwd=cwd, mcpServers=[], sessionId=session)
        assert made_in(scene) == [str(root)] * 2


@pytest.mark.parametrize("name", ["a b", "ü", "u\u0308", "%2e%2e", "a\nb", "?x=1&y", "...", "~"])
async def test_a_name_is_kept_as_it_is(tmp_path: Path, name: str) -> None:
    root = tmp_path / name
    root.mkdir()
    async with stage(tmp_path) as scene:
        front = await scene.front()
        session = await front.new(root)
        assert made_in(scene) == [str(root)]
        listed = await front.call("session/list", cwd=str(root))
        assert [one["cwd"] for one in listed["sessions"]] == [str(root)]
        await front.call("session/resume", cwd=str(root), mcpServers=[], sessionId=session)


async def test_the_server_may_have_directories_that_cannot_be_seen_from_here(
    tmp_path: Path,
) -> None:
    """As from within a sandbox, a container, or another machine."""
    shape = StubSettings(project=str(tmp_path), unseen=frozenset({UNSEEN, f"{UNSEEN}/other"}))
    async with stage(tmp_path, stub=shape) as scene:
        front, second = await scene.front(), await scene.front()
        session = await front.new(Path(UNSEEN))
        await front.answer(front.prompt(session, "@@text 3@@"))
        assert front.text(session) == words(3)
        for method in ("session/resume", "session/load"):
            await second.call(method, cwd=f"{UNSEEN}/", mcpServers=[], sessionId=session)
        copy = await second.call("session/fork", cwd=UNSEEN, mcpServers=[], sessionId=session)
        listed = await second.call("session/list", cwd=UNSEEN)
        assert {one["sessionId"] for one in listed["sessions"]} == {session, copy["sessionId"]}
        error = await refused(second, "session/resume", f"{UNSEEN}/other", session)
        assert (error.code, error.data) == (Code.OTHER_DIRECTORY, {"directory": UNSEEN})


async def test_a_new_session_needs_a_directory_that_the_server_has(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    async with stage(tmp_path) as scene:
        front = await scene.front()
        for cwd in (tmp_path / "missing", file, file / "below"):
            error = await refused(front, "session/new", cwd)
            assert error.code == Code.INVALID_PARAMS
            assert f"no directory {cwd}" in error.message
        assert made_in(scene) == []
        assert front.connection.open_sessions == frozenset()


async def test_a_session_whose_directory_is_gone_is_not_thrown_away(tmp_path: Path) -> None:
    """acpx does so at -32602, and the directory may come back."""
    root = tmp_path / "project"
    async with stage(tmp_path) as scene:
        front, second = await scene.front(), await scene.front()
        session = await front.new(tmp_path)
        scene.stub.host.store.sessions[session].directory = str(root)
        for method in ("session/resume", "session/load", "session/fork"):
            error = await refused(second, method, root, session)
            assert error.code == Code.INTERNAL
            assert f"no directory {root}" in error.message
        assert second.connection.open_sessions == frozenset()
        root.mkdir()
        await second.call("session/resume", cwd=str(root), mcpServers=[], sessionId=session)


@pytest.mark.parametrize("status", [502, 503])
async def test_a_server_that_fails_has_not_said_that_there_is_none(
    tmp_path: Path, status: int
) -> None:
    async with stage(tmp_path) as scene:
        front = await scene.front()
        scene.stub.faults.add(Rule("status", "/api/location", times=100, status=status))
        error = await refused(front, "session/new", tmp_path)
        assert error.code == Code.INTERNAL
        assert "no directory" not in error.message
        scene.stub.faults.clear()
        # One failure alone is asked about again.
        scene.stub.faults.add(Rule("status", "/api/location", status=500))
        await front.new(tmp_path)


async def test_a_link_is_followed_where_it_can_be_seen(tmp_path: Path) -> None:
    root, link = tmp_path / "project", tmp_path / "link"
    root.mkdir()
    os.symlink(root, link)
    async with stage(tmp_path) as scene:
        front = await scene.front()
        session = await front.new(root)
        await front.call("session/resume", cwd=str(link), mcpServers=[], sessionId=session)
        by_link = await front.new(link)
        assert made_in(scene) == [str(root), str(link)]
        await front.call("session/resume", cwd=str(root), mcpServers=[], sessionId=by_link)
