"""The ACP methods of one connection, over its peer, with the stub behind it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from adapter.acp.framing import OUTBOUND_LIMIT
from adapter.limits import Bound, Limits
from contract.errors import Code
from stubs.server import Rule
from stubs.waiting import until
from tests.unit.engine.front import ASK, SHELL, AnswerError, Front, Json, Stage, stage, words


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Stage]:
    async with stage(tmp_path, ASK) as scene:
        yield scene


@pytest.fixture
async def front(scene: Stage) -> Front:
    return await scene.front()


async def refused(front: Front, method: str, **params: Any) -> AnswerError:
    with pytest.raises(AnswerError) as caught:
        await front.call(method, **params)
    return caught.value


# Opening


async def test_sessions_of_one_connection_keep_apart(scene: Stage, front: Front) -> None:
    one, two = await front.new(scene.root), await front.new(scene.root)
    first, second = front.prompt(one, "@@text 30 2@@"), front.prompt(two, "@@text 5@@")
    assert (await front.answer(second))["stopReason"] == "end_turn"
    assert (await front.answer(first))["stopReason"] == "end_turn"
    assert (front.text(one), front.text(two)) == (words(30), words(5))


async def test_a_session_shows_its_choices(scene: Stage, front: Front) -> None:
    result = await front.call("session/new", cwd=str(scene.root), mcpServers=[])
    assert [option["id"] for option in result["configOptions"]] == ["model", "effort", "mode"]
    assert result["modes"]["currentModeId"] == "build"


async def test_a_resumed_session_has_each_effort_once(scene: Stage, front: Front) -> None:
    session = await front.new(scene.root)
    for value in ("fake/fake-2", "fake/fake-1"):
        await front.call(
            "session/set_config_option", sessionId=session, configId="model", value=value
        )
    await front.call("session/close", sessionId=session)
    result = await front.call("session/resume", sessionId=session, cwd=str(scene.root))
    (effort,) = (option for option in result["configOptions"] if option["id"] == "effort")
    values = [option["value"] for option in effort["options"]]
    assert effort["currentValue"] == "default"
    assert len(values) == len(set(values))


@pytest.mark.parametrize(
    "params",
    [
        {"cwd": "relative"},
        {"cwd": "/srv\0x"},
        {"cwd": ""},
        {"cwd": None},
        {},
        {"cwd": "/", "additionalDirectories": ["/tmp"]},
        {"cwd": "/", "mcpServers": "none"},
    ],
)
async def test_a_bad_directory_is_a_bad_parameter(
    scene: Stage, front: Front, params: dict[str, Any]
) -> None:
    for method in ("session/new", "session/resume"):
        error = await refused(front, method, **{"sessionId": "ses_x", **params})
        assert error.code == Code.INVALID_PARAMS
    assert scene.asked("POST", "/api/session") == []


async def test_the_cap_holds_for_sessions_that_are_opened_at_once(tmp_path: Path) -> None:
    async with stage(tmp_path, limits=Limits(sessions_per_connection=2)) as scene:
        front = await scene.front()
        idents = [front.send("session/new", cwd=str(tmp_path), mcpServers=[]) for _ in range(5)]
        answers = await asyncio.gather(*map(front.answer, idents), return_exceptions=True)
        opened = [answer["sessionId"] for answer in answers if isinstance(answer, dict)]
        errors = [answer for answer in answers if isinstance(answer, AnswerError)]
        assert len(opened) == 2
        assert {error.code for error in errors} == {Code.LIMIT}
        # An open one may be resumed, and a closed one makes room.
        await front.call("session/resume", sessionId=opened[0], cwd=str(tmp_path))
        await front.call("session/close", sessionId=opened[0])
        await front.new(tmp_path)
        assert (await refused(front, "session/new", cwd=str(tmp_path))).code == Code.LIMIT


async def test_an_opening_that_failed_takes_no_room(tmp_path: Path) -> None:
    async with stage(tmp_path, limits=Limits(sessions_per_connection=1)) as scene:
        front = await scene.front()
        scene.stub.faults.add(Rule("status", "/api/agent", times=100))
        for _ in range(2):
            error = await refused(front, "session/new", cwd=str(tmp_path))
            assert error.code == Code.INTERNAL
        scene.stub.faults.clear()
        session = await front.new(tmp_path)
        # A resume that fails leaves the session open that was open before.
        scene.engine.catalogues.invalidate()
        scene.stub.faults.add(Rule("status", "/api/agent", times=100))
        await refused(front, "session/resume", sessionId=session, cwd=str(tmp_path))
        await front.answer(front.prompt(session, "@@text 1@@"))
        scene.stub.faults.clear()


@pytest.mark.parametrize("session", ["ses_none", "foo", "", "ses_../x", "ses_" + "x" * 5000])
async def test_a_session_that_the_server_cannot_have_is_gone(
    scene: Stage, front: Front, session: str
) -> None:
    error = await refused(front, "session/resume", sessionId=session, cwd=str(scene.root))
    assert error.code == Code.SESSION_GONE
    assert len(error.message) < 400


async def test_a_session_of_another_directory_is_kept(scene: Stage, front: Front) -> None:
    session = await front.new(scene.root)
    error = await refused(front, "session/resume", sessionId=session, cwd="/")
    assert (error.code, error.data) == (Code.OTHER_DIRECTORY, {"directory": str(scene.root)})
    # The same directory by another name is the same.
    link = scene.root / "link"
    link.symlink_to(scene.root)
    await front.call("session/resume", sessionId=session, cwd=f"{link}/")


async def test_servers_of_the_client_are_not_added_and_that_is_said(
    scene: Stage, front: Front
) -> None:
    result = await front.call("session/new", cwd=str(scene.root), mcpServers=[{"name": "x"}])
    (info,) = front.updates(result["sessionId"], "session_info_update")
    assert info["_meta"]["opencode-acp"]["notice"] == "mcp"


async def test_a_client_that_takes_notices_gets_one(scene: Stage, front: Front) -> None:
    capabilities: dict[str, Any] = {"session": {"notices": {}}}
    await front.call("initialize", protocolVersion=1, clientCapabilities=capabilities)
    result = await front.call("session/new", cwd=str(scene.root), mcpServers=[{"name": "x"}])
    (notice,) = front.updates(result["sessionId"], "notice")
    assert notice["severity"] == "warning"


# Prompts


@pytest.mark.parametrize(
    "method", ["session/prompt", "session/set_mode", "session/set_config_option"]
)
async def test_a_session_must_be_open_here(front: Front, method: str) -> None:
    params = {"prompt": [], "modeId": "plan", "configId": "mode", "value": "plan"}
    error = await refused(front, method, sessionId="ses_other", **params)
    assert (error.code, error.data["code"]) == (Code.INTERNAL, "not_open")
    assert "not found" not in error.message


async def test_a_second_prompt_of_a_connection_is_refused(scene: Stage, front: Front) -> None:
    session = await front.new(scene.root)
    first = front.prompt(session, "@@text 3 && wait 200@@")
    await front.until_text(session, "w2")
    with pytest.raises(AnswerError) as caught:
        await front.answer(front.prompt(session, "hi"))
    assert caught.value.code == Code.BUSY
    assert (await front.answer(first))["stopReason"] == "end_turn"


async def test_a_bad_prompt_leaves_the_session_free(scene: Stage, front: Front) -> None:
    session = await front.new(scene.root)
    assert (await refused(front, "session/prompt", sessionId=session, prompt=[])).code == (
        Code.INVALID_PARAMS
    )
    assert (await front.answer(front.prompt(session, "@@text 1@@")))["stopReason"] == "end_turn"


async def test_withdrawing_the_request_of_a_prompt_is_a_cancel(scene: Stage, front: Front) -> None:
    session = await front.new(scene.root)
    ident = front.prompt(session, "@@text 3 && wait 60000@@")
    await front.until_text(session, "w2")
    front.notify("$/cancel_request", requestId=ident)
    assert (await front.answer(ident))["stopReason"] == "cancelled"


async def test_a_turn_that_lasts_keeps_no_room_for_what_its_prompt_held(
    scene: Stage, front: Front
) -> None:
    session = await front.new(scene.root)
    answer = front.prompt(session, f"@@text 2 && wait 60000@@ {'x' * 1_000_000}")
    await front.until_text(session, words(2))
    assert scene.engine.inbound.unanswered == 0
    front.notify("session/cancel", sessionId=session)
    assert (await front.answer(answer))["stopReason"] == "cancelled"


async def test_what_is_no_cancel_of_a_turn_does_nothing(scene: Stage, front: Front) -> None:
    session = await front.new(scene.root)
    odd_ids: tuple[object, ...] = (session, "ses_other", None, 5, [session], {})
    for odd in odd_ids:
        front.notify("session/cancel", sessionId=odd)
    front.notify("session/cancel")
    front.notify("session/surprise", sessionId=session)
    assert (await front.answer(front.prompt(session, "@@text 2@@")))["stopReason"] == "end_turn"


async def test_an_unknown_method_is_named_and_not_at_length(front: Front) -> None:
    error = await refused(front, "x" * 10_000)
    assert error.code == Code.METHOD_UNKNOWN
    assert len(error.message) < 200


# Choices


async def test_choices_are_set_once_and_listed_whole(scene: Stage, front: Front) -> None:
    session = await front.new(scene.root)
    for _ in range(2):
        assert await front.call("session/set_mode", sessionId=session, modeId="plan") == {}
        result = await front.call(
            "session/set_config_option", sessionId=session, configId="effort", value="default"
        )
    assert [option["currentValue"] for option in result["configOptions"]][-1] == "plan"
    assert scene.asked("POST", f"{session}/agent") == [{"agent": "plan"}]
    assert scene.asked("POST", f"{session}/model") == []


# Lines that are too long


async def test_an_update_over_the_limit_is_left_out_and_ends_nothing(
    scene: Stage, front: Front, caplog: pytest.LogCaptureFixture
) -> None:
    session = await front.new(scene.root)
    title = "x" * OUTBOUND_LIMIT
    front.connection.update(session, {"sessionUpdate": "session_info_update", "title": title})
    asked: Json = {"sessionId": session, "toolCall": {"title": title}}
    assert await front.connection.ask("session/request_permission", asked) is None
    assert "was left out" in caplog.text
    await front.answer(front.prompt(session, "@@text 1@@"))
    titles = [update["title"] for update in front.updates(session, "session_info_update")]
    assert title not in titles


# Closing and leaving


async def test_a_close_in_mid_turn_cancels_it_first(scene: Stage, front: Front) -> None:
    session = await front.new(scene.root)
    prompt = front.prompt(session, "@@text 3 && wait 60000@@")
    await front.until_text(session, "w2")
    closing = front.send("session/close", sessionId=session)
    assert (await front.answer(prompt))["stopReason"] == "cancelled"
    assert await front.answer(closing) == {}
    assert [line["id"] for line in front.lines if "result" in line][-2:] == [prompt, closing]
    assert (await refused(front, "session/prompt", sessionId=session, prompt=[])).data["code"] == (
        "not_open"
    )
    # Closed twice, or never open: nothing to do.
    assert await front.call("session/close", sessionId=session) == {}


async def test_a_close_leaves_the_turn_of_another_connection(scene: Stage, front: Front) -> None:
    other = await scene.front()
    session = await front.new(scene.root)
    await other.call("session/resume", sessionId=session, cwd=str(scene.root))
    prompt = front.prompt(session, '@@text 3 && wait 300 && say "end"@@')
    await front.until_text(session, "w2")
    await other.call("session/close", sessionId=session)
    assert (await front.answer(prompt))["stopReason"] == "end_turn"
    assert other.text(session) == ""


async def test_a_client_without_a_turn_leaves_nothing_behind(scene: Stage, front: Front) -> None:
    session = await front.new(scene.root)
    await front.answer(front.prompt(session, "@@text 1@@"))
    assert await front.connection.leave() == ([], [])


async def test_a_client_that_leaves_stops_each_turn_of_its_own(scene: Stage, front: Front) -> None:
    sessions = [await front.new(scene.root) for _ in range(3)]
    for session in sessions[:2]:
        front.prompt(session, "@@text 3 && wait 60000@@")
        await front.until_text(session, "w2")
    assert await front.connection.leave() == (sessions[:2], [])


async def test_a_client_that_detaches_leaves_its_turn_running(tmp_path: Path) -> None:
    async with stage(tmp_path, ASK, interrupt_on_exit=False) as scene:
        front = await scene.front()
        session = await front.new(tmp_path)
        front.prompt(session, f"@@{SHELL} && {SHELL} || text 1@@")
        await front.ask(2)
        assert await front.connection.leave() == ([], [])
        # Nobody is left to ask: what was asked is refused.
        replies = await scene.until_asked("POST", "/reply")
        assert replies[0]["decision"] == "reject"


async def test_leaving_waits_for_a_post_and_takes_the_prompt_out(tmp_path: Path) -> None:
    async with stage(tmp_path) as scene:
        front, other = await scene.front(), await scene.front()
        session = await front.new(tmp_path)
        await other.call("session/resume", sessionId=session, cwd=str(tmp_path))
        other.prompt(session, "@@text 3 && wait 60000@@")
        await other.until_text(session, "w2")
        scene.stub.faults.add(Rule("delay", "/prompt", seconds=0.2))
        front.prompt(session, "@@text 1@@")
        await scene.until_asked("POST", "/prompt", 2)
        assert await front.connection.leave() == ([], [])
        assert not scene.stub.host.store.sessions[session].inbox
        deletes = [entry for entry in scene.stub.log if entry.method == "DELETE"]
        assert len(deletes) == 1


async def test_a_session_that_opens_while_the_client_leaves_is_no_obstacle(tmp_path: Path) -> None:
    async with stage(tmp_path) as scene:
        front = await scene.front()
        session = await front.new(tmp_path)
        scene.stub.faults.add(Rule("delay", "/prompt", seconds=0.3))
        front.prompt(session, "@@text 3 && wait 60000@@")
        await scene.until_asked("POST", "/prompt")
        opening = front.send("session/new", cwd=str(tmp_path), mcpServers=[])
        leaving = asyncio.create_task(front.connection.leave())
        await front.answer(opening)
        assert not leaving.done()
        # It was delivered at once, so that nothing but an interrupt could stop it.
        assert await leaving == ([], [])
        assert await scene.until_asked("POST", "/interrupt")


async def test_leaving_waits_no_longer_than_it_may(tmp_path: Path) -> None:
    async with stage(tmp_path, exit_post=0.05) as scene:
        front = await scene.front()
        session = await front.new(tmp_path)
        scene.stub.faults.add(Rule("delay", "/prompt", seconds=60))
        ident = front.prompt(session, "@@text 1@@")
        (post,) = await scene.until_asked("POST", "/prompt")
        began = asyncio.get_running_loop().time()
        assert await front.connection.leave() == ([], [(session, post["id"])])
        assert asyncio.get_running_loop().time() - began < 1
        assert (await front.answer(ident))["stopReason"] == "cancelled"


async def test_an_unreachable_server_is_said_to_be_so(tmp_path: Path) -> None:
    async with stage(tmp_path, feed_ready=0.1) as scene:
        front = await scene.front()
        session = await front.new(tmp_path)
        await scene.stub.__aexit__()

        async def down() -> bool:
            return not scene.engine.feed.is_connected

        await until("the feed is down", down)
        error = await refused(front, "session/new", cwd=str(tmp_path), mcpServers=[])
        assert (error.code, "cannot be reached" in error.message) == (Code.INTERNAL, True)
        with pytest.raises(AnswerError) as caught:
            await front.answer(front.prompt(session, "hi"))
        assert (caught.value.code, caught.value.data["retrySafe"]) == (Code.INTERNAL, True)
        assert caught.value.data["admitted"] is False


async def test_what_is_cut_of_a_line_is_counted_once_for_each(tmp_path: Path) -> None:
    async with stage(tmp_path, limits=Limits(line_chars=40)) as scene:
        front = await scene.front()
        session = await front.new(tmp_path)
        assert scene.engine.counters[Bound.LINE_CHARS] == 0
        with pytest.raises(AnswerError) as caught:
            await front.answer(front.prompt(session, "@@error 400@@"))
        assert caught.value.data["omitted"]["line_chars"] > 0
        assert scene.engine.counters[Bound.LINE_CHARS] == 1
